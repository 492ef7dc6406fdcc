// The window: the picture as its lines come, its part chosen by a frame or by buttons, bookmarks.
import { ask, once, tell } from "/static/asking.js";
import { Painted, threadColour } from "/static/picture.js";
import { Timeline, percent } from "/static/timeline.js";

// So often the end is asked for once the picture is there whole.
const END_MS = 100;
const END_TIMES = 20;
const place = (name) => document.getElementById(name);
const home = JSON.parse(place("window").dataset.bookmark);
const form = place("setting");
const canvas = place("picture");
const painted = new Painted(canvas);
const overTime = new Timeline(place("cpus"));
let readings = 0;
let bookmark = { ...home };
let number = null;
// How often a picture was asked for: what one that was replaced by a later one says is old.
let attempt = 0;
let started = Promise.resolve();

// -- the setting ----------------------------------------------------------------------------------

// What stands for the six priority classes here, as in test case 4 of document 002.
const CLASSES = {
  idle: ["idle", 0], below: ["other", 5], normal: ["other", 0], above: ["other", -5], high: ["other", -10], realtime: ["rr:1", 0],
};

function showWhatApplies() {
  const field = form.elements;
  place("of-jvm").hidden = field.kernel.value !== "jvm";
  place("of-native").hidden = field.kernel.value === "jvm";
  place("of-tile").hidden = field.grain.value !== "tile";
}

function settingNow() {
  const field = form.elements;
  const boxes = [...form.querySelectorAll("[name=cpu]")];
  const chosen = boxes.filter((box) => box.checked).map((box) => Number(box.value));
  const isJvm = field.kernel.value === "jvm";
  return {
    bookmark,
    kernel: field.kernel.value,
    ...(isJvm ? {
      jvm: {
        java: field.java.value,
        collector: field.collector.value,
        kind: field.kind.value,
        priority: Number(field.priority.value),
        maps_priority: field.maps_priority.checked,
        after_loop: field.after_loop.value,
      },
    } : {}),
    iterations: Number(field.iterations.value),
    threads: Number(field.threads.value),
    sync: field.sync.value,
    grain: field.grain.value,
    tile_size: Number(field.tile_size.value),
    simd: !isJvm && field.simd.checked,
    repeat: Number(field.repeat.value),
    cpus: chosen.length === boxes.length ? [] : chosen,
    nice: Number(field.nice.value),
    policy: field.policy.value,
  };
}

form.elements.class.addEventListener("change", () => {
  const meant = CLASSES[form.elements.class.value];
  if (meant) [form.elements.policy.value, form.elements.nice.value] = meant;
});
for (const name of ["nice", "policy"]) {
  form.elements[name].addEventListener("change", () => { form.elements.class.value = ""; });
}
for (const name of ["kernel", "grain"]) form.elements[name].addEventListener("change", showWhatApplies);

// -- the picture ----------------------------------------------------------------------------------

async function show(answer, own) {
  const bytes = painted.lineBytes;
  const reader = answer.body.getReader();
  let rest = new Uint8Array(0);
  for (;;) {
    const { done, value } = await reader.read();
    if (done || own !== number) return;
    let all = value;
    if (rest.length) {
      all = new Uint8Array(rest.length + value.length);
      all.set(rest);
      all.set(value, rest.length);
    }
    let first = 0;
    for (; first + bytes <= all.length; first += bytes) painted.take(all.subarray(first, first + bytes));
    rest = all.slice(first);
  }
}

const figure = (value, digits) => (value === null ? "–" : value.toFixed(digits));

function rowOf(thread) {
  const row = document.createElement("tr");
  const name = document.createElement("th");
  name.scope = "row";
  if (thread.number) {
    const patch = document.createElement("span");
    patch.className = "patch";
    patch.style.background = threadColour(thread.number);
    name.append(patch, " ");
  }
  name.append(thread.name);
  row.append(name);
  const figures = [
    figure(thread.compute_seconds, 3), figure(thread.cpu_seconds, 3), thread.voluntary_switches ?? "–",
    thread.involuntary_switches ?? "–", thread.priority ?? "–", thread.pixels ?? "–",
  ];
  for (const text of figures) {
    const cell = document.createElement("td");
    cell.className = "number";
    cell.textContent = text;
    row.append(cell);
  }
  return row;
}

function describe(state, repeat) {
  const times = state.compute_seconds === null ? "" : `, the last in ${state.compute_seconds.toFixed(3)} s`;
  const sum = state.pixel_sum === null ? "" : `, pixel sum ${state.pixel_sum}`;
  const collector = state.collector ? ` Collector: ${state.collector}.` : "";
  const done = `${state.computations} of ${repeat} computed`;
  place("state").textContent = `${state.is_computing ? "Computing" : "Ended"}: ${done}${times}${sum}${collector && `.${collector}`}`;
  place("thread-rows").replaceChildren(...state.threads.map(rowOf));
  showCpus(state.utilisation);
  place("stop").disabled = !state.is_computing;
  if (!state.is_computing && state.said) tell(new Error(state.said));
}

function showCpus({ first, cpus, seconds, busy }) {
  readings = first + seconds.length;
  place("cpus-part").hidden = readings === 0;
  overTime.take(seconds, cpus.map((cpu, i) => {
    const values = busy.map((all) => all[i]);
    return { name: cpu, values, said: `CPU ${cpu}: ${percent(values.at(-1))}`, top: 1 };
  }));
}

const sleep = (ms) => new Promise((done) => { setTimeout(done, ms); });

async function compute(mine) {
  const setting = settingNow();
  // One after another: the last one that was asked for is the one that is computed.
  const answer = started.then(() => (mine === attempt ? ask("/window/start", setting) : null));
  started = answer.catch(() => {});
  const begun = await answer;
  if (mine !== attempt) return;
  let state = await begun.json();
  if (mine !== attempt) return;
  number = state.number;
  const own = number;
  painted.begin(setting.bookmark.width, setting.bookmark.height, setting.iterations);
  overTime.clear();
  readings = 0;
  describe(state, setting.repeat);
  let soon = 0;
  const shown = ask(`/window/${own}/picture`).then((answer) => show(answer, own)).then(() => { soon = END_TIMES; }).catch((error) => { if (mine === attempt) tell(error); });
  let isOver = false;
  shown.then(() => { isOver = true; });
  while (state.is_computing && mine === attempt) {
    soon -= 1;
    const again = sleep(soon > 0 ? END_MS : 1000 * state.ask_again_seconds);
    await (isOver ? again : Promise.race([again, shown]));
    if (mine !== attempt) return;
    state = await (await ask(`/window/${own}?since=${readings}`)).json();
    // "Ended" is said of a picture that is there whole: its last lines may still be on their way.
    if (!state.is_computing) await shown;
    if (mine !== attempt) return;
    describe(state, setting.repeat);
  }
}

place("colours").addEventListener("change", (event) => painted.repaint(event.target.value === "threads"));

// As many places as tell the pixels of such a span apart; what is saved has them all.
const rounded = (value, span) => value.toFixed(Math.min(20, Math.max(0, 4 - Math.floor(Math.log10(span)))));

function tellRegion() {
  const { x_min, x_max, y_min, y_max } = bookmark;
  place("region").textContent = `x from ${rounded(x_min, x_max - x_min)} to ${rounded(x_max, x_max - x_min)}, y from ${rounded(y_min, y_max - y_min)} to ${rounded(y_max, y_max - y_min)}`;
}

// -- the part of the picture --------------------------------------------------------------------

function choose(x0, x1, y0, y1) {
  const across = bookmark.x_max - bookmark.x_min;
  const up = bookmark.y_max - bookmark.y_min;
  const part = {
    ...bookmark,
    x_min: bookmark.x_min + x0 * across,
    x_max: bookmark.x_min + x1 * across,
    y_min: bookmark.y_max - y1 * up,
    y_max: bookmark.y_max - y0 * up,
  };
  if (!(part.x_min < part.x_max && part.y_min < part.y_max)) {
    tell(new Error("No smaller part can be shown: numbers of 64 bits tell no more points apart. Try: Zoom out"));
    return;
  }
  bookmark = part;
  tellRegion();
  form.requestSubmit();
}

const MOVES = {
  in: [0.25, 0.75, 0.25, 0.75], out: [-0.5, 1.5, -0.5, 1.5],
  left: [-0.25, 0.75, 0, 1], right: [0.25, 1.25, 0, 1], up: [0, 1, -0.25, 0.75], down: [0, 1, 0.25, 1.25],
};

for (const button of document.querySelectorAll("[data-move]")) {
  button.addEventListener("click", () => {
    if (button.dataset.move === "home") {
      bookmark = { ...home };
      form.elements.iterations.value = home.iterations_quick;
      tellRegion();
      form.requestSubmit();
    } else {
      choose(...MOVES[button.dataset.move]);
    }
  });
}

// A frame has the shape of the picture, so that pixels stay square.
let from = null;
const chosen = place("chosen");

function frameOf(event) {
  const box = canvas.getBoundingClientRect();
  const width = Math.abs(event.clientX - from.x);
  const x = event.clientX < from.x ? from.x - width : from.x;
  const height = width * (box.height / box.width);
  const y = event.clientY < from.y ? from.y - height : from.y;
  return { x: x - box.left, y: y - box.top, width, height, box };
}

canvas.addEventListener("pointerdown", (event) => {
  from = { x: event.clientX, y: event.clientY };
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  if (!from) return;
  const frame = frameOf(event);
  chosen.hidden = false;
  Object.assign(chosen.style, { left: `${frame.x}px`, top: `${frame.y}px`, width: `${frame.width}px`, height: `${frame.height}px` });
});
canvas.addEventListener("pointerup", (event) => {
  if (!from) return;
  const { x, y, width, height, box } = frameOf(event);
  from = null;
  chosen.hidden = true;
  if (width > 4) choose(x / box.width, (x + width) / box.width, y / box.height, (y + height) / box.height);
});
canvas.addEventListener("pointercancel", () => { from = null; chosen.hidden = true; });

// -- what can be done -----------------------------------------------------------------------------

form.addEventListener("submit", (event) => {
  event.preventDefault();
  tell(null);
  const mine = ++attempt;
  compute(mine).catch((error) => { if (mine === attempt) tell(error); });
});
place("measure").addEventListener("click", (event) => once(event.target, async () => {
  const asked = await (await ask("/window/measure", settingNow())).json();
  location.assign(`/new?${new URLSearchParams(asked)}`);
}));
place("stop").addEventListener("click", (event) => once(event.target, async () => { await ask(`/window/${number}/stop`, {}); }));
for (const box of form.querySelectorAll("[name=cpu]")) {
  box.addEventListener("change", () => {
    const cpus = [...form.querySelectorAll("[name=cpu]:checked")].map((one) => Number(one.value));
    if (!place("stop").disabled && cpus.length) ask(`/window/${number}/cpus`, cpus).catch(tell);
  });
}
for (const button of document.querySelectorAll("[data-save]")) {
  button.addEventListener("click", () => once(button, async () => {
    const deeper = { ...bookmark, iterations_quick: Number(form.elements.iterations.value) };
    const text = await (await ask(`/bookmark/${button.dataset.save}`, deeper)).text();
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    link.download = `benchmark-location.${button.dataset.save}`;
    link.click();
    URL.revokeObjectURL(link.href);
  }));
}
place("load").addEventListener("change", async (event) => {
  const [file] = event.target.files;
  if (!file) return;
  tell(null);
  try {
    if (file.size > 60000) throw new Error("This file is too large for a bookmark.");
    bookmark = await (await ask("/bookmark/read", await file.text())).json();
    form.elements.iterations.value = bookmark.iterations_quick;
    tellRegion();
    form.requestSubmit();
  } catch (error) {
    tell(error);
  }
});
showWhatApplies();
tellRegion();
