// Workers ask the main thread for the next page, wait for it, and index it (some 80 us); main alone has
// the catalogue and renders it (some 250 us, and 30 us for the messages). One worker takes the sum, two
// or more are bound by main, which then never rests: 1.3. At 4 workers 1.3 CPUs are busy: stage.
"use strict";
const { Worker, isMainThread, parentPort } = require("node:worker_threads");

const PAGES = 1400;

function popularity(article) {
  let value = article + 1;
  for (let day = 0; day < 1500; day++) value = (Math.imul(value, 1103515245) + day) | 0;
  return value >>> 20;
}

function render(page) {
  let html = "<ul>";
  for (let row = 0; row < 120; row++) html += `<li>${page}-${row}: ${popularity(page * 120 + row)}</li>`;
  return Buffer.from(html + "</ul>", "latin1").toString("latin1");
}

function indexed(html) {
  let hash = 0;
  for (let pass = 0; pass < 25; pass++) {
    for (let i = 0; i < html.length; i++) hash = (Math.imul(hash, 31) + html.charCodeAt(i)) | 0;
  }
  return hash;
}

if (isMainThread) {
  let next = 0;
  for (let n = 0; n < Number(process.argv[2]); n++) {
    const worker = new Worker(__filename);
    worker.on("message", () => worker.postMessage(next < PAGES ? render(next++) : null));
  }
} else {
  let sum = 0;
  parentPort.on("message", (html) => {
    if (html === null) {
      parentPort.close();
      return;
    }
    sum = (sum + indexed(html)) | 0;
    parentPort.postMessage(sum);
  });
  parentPort.postMessage(sum);
}
