// Worker threads that count each item in one counter of a SharedArrayBuffer: its line of the cache
// goes to and fro.
"use strict";
const { Worker, isMainThread, workerData } = require("node:worker_threads");

if (isMainThread) {
  const workers = Number(process.argv[2]);
  const shared = new SharedArrayBuffer(4);
  const items = 60000000 / workers;
  for (let n = 0; n < workers; n++) new Worker(__filename, { workerData: { shared, items } });
} else {
  const counter = new Int32Array(workerData.shared);
  let seed = 1;
  for (let item = 0; item < workerData.items; item++) {
    seed = (Math.imul(seed, 1103515245) + 12345) | 0;
    Atomics.add(counter, 0, seed & 1);
  }
}
