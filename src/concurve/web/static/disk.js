// The simulated disk under two schedulers, side by side, on one clock: head, queue, who is served.
import { ask, once, tell } from "/static/asking.js";
import { threadColour } from "/static/picture.js";

const NS = "http://www.w3.org/2000/svg";
const WIDTH = 400;
const HEIGHT = 220;
const QUEUE = 26; // for the marks of requests that wait
const SHOWN = 0.25; // this part of the whole time is on the chart at once
const place = (name) => document.getElementById(name);
const form = place("disk");
let disks = [];
let end = 0;
let now = 0;
let playing = false;

const colour = (process) => threadColour(process + 1);

function element(name, attributes) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// -- what happened until a time -------------------------------------------------------------------

// The first place in a list whose time is after `at`.
function after(list, at, time) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (time(list[middle]) <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

class Disk {
  constructor({ scheduler, cylinders, events, figures, line }) {
    Object.assign(this, { scheduler, cylinders, figures, line });
    this.serves = events.filter((event) => event.event === "serve");
    this.end = events.at(-1)?.at_ns ?? 0;
    this.waits = []; // of each request that waited: from when to when, where, whose
    const open = new Map();
    for (const event of events) {
      if (event.event === "arrive") {
        open.set(event.ticket ?? 0, { from: event.at_ns ?? 0, to: Infinity, cylinder: event.cylinder ?? 0, process: event.process ?? 0 });
      } else if (event.event !== "end") {
        const wait = open.get(event.ticket ?? 0);
        if (wait && event.at_ns !== undefined) wait.to = event.at_ns;
        else if (wait) wait.to = 0;
        if (wait) this.waits.push(wait);
        open.delete(event.ticket ?? 0);
      }
    }
    this.waits.sort((a, b) => a.from - b.from);
  }

  at(time) {
    const last = after(this.serves, time, (serve) => serve.at_ns ?? 0) - 1;
    const serve = this.serves[last];
    const isBusy = serve !== undefined && serve.end_ns > time;
    let cylinder = serve?.to ?? 0;
    if (isBusy) {
      const share = (time - (serve.at_ns ?? 0)) / (serve.end_ns - (serve.at_ns ?? 0));
      cylinder = (serve.from ?? 0) + ((serve.to ?? 0) - (serve.from ?? 0)) * share;
    }
    const waiting = this.waits.slice(0, after(this.waits, time, (wait) => wait.from)).filter((wait) => wait.to > time);
    return { served: last + 1, serve: isBusy ? serve : null, cylinder, waiting };
  }
}

// -- what is drawn --------------------------------------------------------------------------------

function panelOf(disk) {
  const section = document.createElement("section");
  const title = document.createElement("h2");
  title.textContent = disk.scheduler;
  const svg = element("svg", { class: "head", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
  const paths = element("g", {});
  const queue = element("g", {});
  const arm = element("circle", { r: 4, class: "arm" });
  svg.append(element("line", { x1: WIDTH - QUEUE, x2: WIDTH - QUEUE, y1: 0, y2: HEIGHT, class: "edge" }), paths, queue, arm);
  const said = document.createElement("p");
  said.className = "facts";
  const figures = document.createElement("pre");
  figures.tabIndex = 0;
  figures.setAttribute("role", "group");
  figures.setAttribute("aria-label", `Figures with ${disk.scheduler}`);
  figures.textContent = `${disk.line.join(" ")}\n\n${disk.figures}`;
  section.append(title, svg, said, figures);
  return { section, svg, paths, queue, arm, said };
}

function draw() {
  const span = end * SHOWN;
  const first = Math.max(0, now - span);
  const x = (time) => ((WIDTH - QUEUE - 6) * (time - first)) / span;
  for (const { disk, panel } of disks) {
    const y = (cylinder) => HEIGHT - 4 - ((HEIGHT - 8) * cylinder) / disk.cylinders;
    const { served, serve, cylinder, waiting } = disk.at(now);
    const shown = disk.serves.slice(after(disk.serves, first, (one) => one.end_ns), served);
    panel.paths.replaceChildren(...shown.map((one) => {
      const isLast = one === serve;
      return element("line", {
        x1: x(one.at_ns ?? 0), y1: y(one.from ?? 0),
        x2: x(isLast ? now : one.end_ns), y2: y(isLast ? cylinder : one.to ?? 0),
        stroke: colour(one.process ?? 0), "stroke-dasharray": one.direction === "write" ? "3 2" : "none",
      });
    }));
    panel.queue.replaceChildren(...waiting.map((wait) => element("rect", {
      x: WIDTH - QUEUE + 4, y: y(wait.cylinder) - 1.5, width: QUEUE - 8, height: 3, fill: colour(wait.process),
    })));
    panel.arm.setAttribute("cx", x(now));
    panel.arm.setAttribute("cy", y(cylinder));
    const whose = serve ? `serves process ${(serve.process ?? 0) + 1} (${serve.direction})` : now >= disk.end ? `has ended after ${(disk.end / 1e6).toFixed(1)} ms` : "is idle";
    const text = `${(now / 1e6).toFixed(1)} ms: ${whose}; ${waiting.length} waiting; ${served} served`;
    panel.said.textContent = text;
    panel.svg.setAttribute("aria-label", `${disk.scheduler}, ${text}`);
  }
  place("time").value = now;
  place("now").textContent = `${(now / 1e6).toFixed(1)} of ${(end / 1e6).toFixed(1)} ms`;
}

function play(is) {
  playing = is;
  place("play").setAttribute("aria-pressed", String(is));
  place("play").textContent = is ? "Pause" : "Play";
  if (!is) return;
  if (now >= end) now = 0;
  let before = performance.now();
  const step = (at) => {
    if (!playing) return;
    now = Math.min(end, now + (at - before) * 1e6 * Number(place("speed").value));
    before = at;
    draw();
    if (now >= end) play(false);
    else requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}

// -- what can be done -----------------------------------------------------------------------------

function contentOf() {
  const field = form.elements;
  const numbers = ["sequential_readers", "random_readers", "writers", "think_ms", "depth", "request_kib", "requests", "seed"];
  return {
    schedulers: [field.first.value, field.second.value],
    ...Object.fromEntries(numbers.map((name) => [name, Number(field[name].value)])),
  };
}

function nameOf(content, process) {
  if (process < content.sequential_readers) return "reads on and on";
  return process < content.sequential_readers + content.random_readers ? "reads anywhere" : "writes";
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  once(form.querySelector("button"), async () => {
    const content = contentOf();
    const found = await (await ask("/disk/simulate", content)).json();
    play(false);
    disks = found.map((one) => {
      const disk = new Disk(one);
      return { disk, panel: panelOf(disk) };
    });
    end = Math.max(...disks.map(({ disk }) => disk.end));
    now = 0;
    const processes = content.sequential_readers + content.random_readers + content.writers;
    place("processes").replaceChildren(...Array.from({ length: processes }, (_, process) => {
      const item = document.createElement("li");
      const patch = document.createElement("span");
      patch.className = "patch";
      patch.style.background = colour(process);
      item.append(patch, ` process ${process + 1}: ${nameOf(content, process)}`);
      return item;
    }));
    place("disks").replaceChildren(...disks.map(({ panel }) => panel.section));
    place("time").max = end;
    place("time").step = end / 1000;
    place("shown").hidden = false;
    draw();
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) play(true);
  });
});
place("play").addEventListener("click", () => play(!playing));
place("time").addEventListener("input", (event) => {
  play(false);
  now = Number(event.target.value);
  draw();
});
