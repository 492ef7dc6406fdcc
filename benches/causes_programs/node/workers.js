// Worker threads that share nothing, each with an equal part of the work.
"use strict";
const { Worker, isMainThread, workerData } = require("node:worker_threads");

function compute(iterations, seed) {
  for (let i = 0; i < iterations; i++) seed = (Math.imul(seed, 1103515245) + 12345) | 0;
  return seed;
}

if (isMainThread) {
  const workers = Number(process.argv[2]);
  for (let n = 0; n < workers; n++) new Worker(__filename, { workerData: { parts: 1000 / workers } });
} else {
  let seed = 1;
  for (let part = 0; part < workerData.parts; part++) seed = compute(1000000, seed);
}
