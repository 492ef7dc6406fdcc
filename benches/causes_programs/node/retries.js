// A client that tries 20 uploads again after a pause of 20 ms, each twice; so many of them at a time
// as it is told. The pauses are all its time (0.8 s with one, 0.4 s with two), what runs in between
// are some us. Node starts in 40 ms, which is 5 % of one worker's time: it scales as it should, none.
"use strict";
const { setTimeout: pause } = require("node:timers/promises");

const waiting = Array.from({ length: 20 }, (_, number) => ({ number, attempts: 0 }));
let done = 0;

async function worker() {
  for (let upload = waiting.shift(); upload !== undefined; upload = waiting.shift()) {
    while (upload.attempts < 2) {
      await pause(20);
      upload.attempts++;
    }
    done += JSON.parse(JSON.stringify(upload)).attempts;
  }
}

const workers = Array.from({ length: Number(process.argv[2]) }, worker);
Promise.all(workers).then(() => console.log(done));
