// Passwords that are hashed in the threads of libuv's pool, as many as asked for: they share
// nothing.
"use strict";
const threads = Number(process.argv[2]);
process.env.UV_THREADPOOL_SIZE = String(threads);
const { pbkdf2 } = require("node:crypto");

let left = 40;
function next() {
  if (left-- > 0) pbkdf2("secret", `salt ${left}`, 20000, 64, "sha512", next);
}
for (let n = 0; n < threads; n++) next();
