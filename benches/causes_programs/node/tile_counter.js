// Workers take the next tile of a terrain from a shared counter (Atomics.add) until all are drawn
// into one shared picture. There are 160 tiles of equal work, some 3 ms each, so the counter's cache
// line travels 160 times at most, and no two tiles share a line worth mentioning. The main thread
// only ticks. Nothing limits, apart from the workers' start.
"use strict";
const { Worker, isMainThread, workerData } = require("node:worker_threads");

const TILES = 160, SIDE = 192, OCTAVES = 24;

function noise(x, y) {
  let value = 0;
  for (let octave = 0; octave < OCTAVES; octave++) {
    let hash = Math.imul(x + octave, 0x27d4eb2d) ^ Math.imul(y - octave, 0x165667b1);
    hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
    hash = Math.imul(hash ^ (hash >>> 12), 0x297a2d39);
    value = (Math.imul(value, 3) + ((hash ^ (hash >>> 15)) & 255)) >> 2;
  }
  return value & 255;
}

if (isMainThread) {
  const workers = Number(process.argv[2]);
  const next = new SharedArrayBuffer(4);
  const picture = new SharedArrayBuffer(TILES * SIDE * SIDE);
  let ticks = 0, running = workers;
  const ticker = setInterval(() => { ticks++; }, 40);
  for (let n = 0; n < workers; n++) {
    const worker = new Worker(__filename, { workerData: { next, picture } });
    worker.on("exit", () => {
      if (--running > 0) return;
      clearInterval(ticker);
      console.log(new Uint8Array(picture)[12345], ticks > 0);
    });
  }
} else {
  const next = new Int32Array(workerData.next);
  const picture = new Uint8Array(workerData.picture);
  for (;;) {
    const tile = Atomics.add(next, 0, 1);
    if (tile >= TILES) break;
    const start = tile * SIDE * SIDE;
    for (let y = 0; y < SIDE; y++) {
      for (let x = 0; x < SIDE; x++) picture[start + y * SIDE + x] = noise(x + tile * SIDE, y);
    }
  }
}
