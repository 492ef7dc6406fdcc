// Bundles of a log, compressed by libuv's pool of threads (UV_THREADPOOL_SIZE is the level): in each
// round the main thread writes and sorts the lines of eight bundles (some 20 ms), then the pool
// compresses the eight, of equal size (some 25 ms in all), and the main thread waits for them. While
// it writes, the pool has nothing to do: 40 to 50 % are serial, and the bundles divide evenly.
"use strict";
const workers = Number(process.argv[2]);
process.env.UV_THREADPOOL_SIZE = String(workers);
const zlib = require("node:zlib");

const ROUNDS = 10, BUNDLES = 8, LINES = 1000;
let random = 1;

function next() {
  random = (Math.imul(random, 1103515245) + 12345) >>> 0;
  return random >>> 8;
}

function write(round) {
  const lines = [];
  for (let i = 0; i < LINES; i++) {
    const when = String(next() % 86400000).padStart(8, "0");
    lines.push(`${when} host-${next() % 40} GET /item/${next() % 5000}?user=${next()} 200 ${next() % 900} ${round}\n`);
  }
  lines.sort();
  return Buffer.from(lines.join(""), "latin1");
}

function compress(bundle) {
  return new Promise((resolve, reject) => {
    zlib.deflate(bundle, { level: 9, chunkSize: 1 << 18 }, (error, packed) => {
      if (error) reject(error);
      else resolve(packed.length);
    });
  });
}

async function main() {
  let size = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const bundles = [];
    for (let b = 0; b < BUNDLES; b++) bundles.push(write(round));
    const sizes = await Promise.all(bundles.map(compress));
    for (const one of sizes) size += one;
  }
  console.log(size);
}

main();
