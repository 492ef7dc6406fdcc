// Worker threads that send large objects to the first thread. Each is copied on its way, and the
// first thread, which reads and adds up all of them, needs longer than one worker.
"use strict";
const { Worker, isMainThread, parentPort, workerData } = require("node:worker_threads");

if (isMainThread) {
  const workers = Number(process.argv[2]);
  const totals = new Map();
  for (let n = 0; n < workers; n++) {
    const worker = new Worker(__filename, { workerData: { results: 24 / workers } });
    worker.on("message", (rows) => {
      for (const { name, value } of rows) totals.set(name, (totals.get(name) || 0) + value);
      worker.postMessage("next");
    });
  }
} else {
  let left = workerData.results;
  const send = () => {
    if (left-- === 0) return parentPort.close();
    const rows = [];
    for (let row = 0; row < 20000; row++) rows.push({ name: `row ${row}`, value: row % 7 });
    parentPort.postMessage(rows);
  };
  parentPort.on("message", send);
  send();
}
