// A ledger in shared memory, guarded by a mutex of Atomics.wait and notify. A booking is checked
// outside of it (8000 dependent steps, 10 microseconds); inside, it moves the amount and audits the
// sum of all 24,000 accounts (35 microseconds). So 78 % exclude each other: two workers gain 1.28 at
// most, and the lock takes the rest. Starting the workers is less than a tenth.
"use strict";
const { Worker, isMainThread, workerData } = require("node:worker_threads");

const ACCOUNTS = 24000, BOOKINGS = 10000;
const FREE = 0, HELD = 1, WAITED_FOR = 2;

function lock(mutex) {
  if (Atomics.compareExchange(mutex, 0, FREE, HELD) === FREE) return;
  while (Atomics.exchange(mutex, 0, WAITED_FOR) !== FREE) Atomics.wait(mutex, 0, WAITED_FOR);
}

function unlock(mutex) {
  if (Atomics.exchange(mutex, 0, FREE) === WAITED_FOR) Atomics.notify(mutex, 0, 1);
}

function check(seed) {
  for (let i = 0; i < 8000; i++) seed = (Math.imul(seed, 1103515245) + 12345) | 0;
  return seed;
}

function audit(accounts) {
  let sum = 7;
  for (let i = 0; i < ACCOUNTS; i++) sum = (Math.imul(sum, 31) + accounts[i]) | 0;
  return sum;
}

if (isMainThread) {
  const workers = Number(process.argv[2]);
  const mutex = new SharedArrayBuffer(4);
  const accounts = new SharedArrayBuffer(ACCOUNTS * 4);
  new Int32Array(accounts).fill(1000);
  for (let n = 0; n < workers; n++) {
    const bookings = Math.floor(BOOKINGS / workers);
    new Worker(__filename, { workerData: { mutex, accounts, bookings, seed: n + 1 } });
  }
} else {
  const mutex = new Int32Array(workerData.mutex);
  const accounts = new Int32Array(workerData.accounts);
  let seed = workerData.seed, audited = 0;
  for (let i = 0; i < workerData.bookings; i++) {
    seed = check(seed);
    const from = (seed >>> 8) % ACCOUNTS, to = (seed >>> 16) % ACCOUNTS, amount = seed & 15;
    lock(mutex);
    accounts[from] -= amount;
    accounts[to] += amount;
    audited ^= audit(accounts);
    unlock(mutex);
  }
  if (audited === 1234567890) console.log("a rare sum");
}
