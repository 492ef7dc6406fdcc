// 60 epochs of five logistic models: workers sum the gradients of their rows (some 3 ms in all), then
// main alone takes the step and judges the models on rows kept back (some 4 ms), then the next epoch.
// While main judges nobody has work, and while they sum it waits; the rows are dealt out evenly, the
// messages are 40 numbers (0.1 ms). More than half of the time is not shared out: serial.
"use strict";
const { Worker, isMainThread, parentPort, workerData } = require("node:worker_threads");

const ROWS = 20000;
const KEPT = 30000;
const COLUMNS = 8;
const MODELS = 5;

function predicted(data, row, weights, model) {
  let sum = 0;
  for (let c = 0; c < COLUMNS; c++) sum += data[row * COLUMNS + c] * weights[model * COLUMNS + c];
  return 1 / (1 + Math.exp(-sum));
}

function answer(data, row) {
  return data[row * COLUMNS] + data[row * COLUMNS + 1] > 0 ? 1 : 0;
}

function gradient(data, start, end, weights) {
  const sums = new Float64Array(MODELS * COLUMNS);
  for (let row = start; row < end; row++) {
    for (let model = 0; model < MODELS; model++) {
      const error = predicted(data, row, weights, model) - answer(data, row);
      for (let c = 0; c < COLUMNS; c++) sums[model * COLUMNS + c] += error * data[row * COLUMNS + c];
    }
  }
  return sums;
}

function loss(data, weights) {
  let sum = 0;
  for (let row = 0; row < KEPT; row++) {
    for (let model = 0; model < MODELS; model++) {
      const chance = predicted(data, row, weights, model);
      sum -= Math.log(answer(data, row) === 1 ? chance + 1e-9 : 1 - chance + 1e-9);
    }
  }
  return sum / KEPT / MODELS;
}

function shared(length) {
  return new Float64Array(new SharedArrayBuffer(length * 8));
}

if (isMainThread) {
  const count = Number(process.argv[2]);
  const data = shared(ROWS * COLUMNS);
  const kept = new Float64Array(KEPT * COLUMNS);
  const weights = shared(MODELS * COLUMNS);
  for (let i = 0; i < data.length; i++) data[i] = Math.random() - 0.5;
  for (let i = 0; i < kept.length; i++) kept[i] = Math.random() - 0.5;
  for (let i = 0; i < weights.length; i++) weights[i] = (i % 7) / 10;
  const workers = [];
  let epoch = 0;
  let missing = count;
  let last = 0;
  const total = new Float64Array(MODELS * COLUMNS);
  const collect = (sums) => {
    for (let i = 0; i < total.length; i++) total[i] += sums[i];
    if (--missing > 0) return;
    for (let i = 0; i < total.length; i++) weights[i] -= total[i] / ROWS;
    last = loss(kept, weights);
    total.fill(0);
    missing = count;
    const going = ++epoch < 60;
    for (const worker of workers) worker.postMessage(going);
    if (!going) console.log(last > 0);
  };
  for (let n = 0; n < count; n++) {
    const start = Math.floor((ROWS * n) / count);
    const end = Math.floor((ROWS * (n + 1)) / count);
    const worker = new Worker(__filename, { workerData: { data, weights, start, end } });
    worker.on("message", collect);
    workers.push(worker);
  }
} else {
  const { data, weights, start, end } = workerData;
  const work = () => parentPort.postMessage(gradient(data, start, end, weights));
  parentPort.on("message", (going) => (going ? work() : parentPort.close()));
  work();
}
