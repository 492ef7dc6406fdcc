// N asynchronous tasks that compute: they take turns in the one thread of the event loop.
"use strict";

function compute(iterations, seed) {
  for (let i = 0; i < iterations; i++) seed = (Math.imul(seed, 1103515245) + 12345) | 0;
  return seed;
}

async function task(parts, seed) {
  for (let part = 0; part < parts; part++) {
    seed = compute(1000000, seed);
    await new Promise(setImmediate);
  }
  return seed;
}

const tasks = Number(process.argv[2]);
Promise.all(Array.from({ length: tasks }, (_, n) => task(400 / tasks, n + 1)));
