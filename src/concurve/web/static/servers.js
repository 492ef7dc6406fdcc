// A server, second by second, as long as somebody looks. It begins when its reader says so: an address
// of this page, which another page may link to, sends no password anywhere.
import { ask, once, tell } from "/static/asking.js";
import { Timeline, percent } from "/static/timeline.js";

const AGAIN_MS = 3000;
const STATES = ["busy", "spinning", "disk", "asleep"];
const NS = "http://www.w3.org/2000/svg";
const place = (name) => document.getElementById(name);
const form = place("watch");
const pause = place("pause");
const overTime = new Timeline(place("over-time"));
const wait = (time) => new Promise((done) => setTimeout(done, time));
let watched = null;
let elapsed = 0;
let isLost = false;

const rate = (value) => (value === null ? "–" : Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : value.toPrecision(3));
const count = (value) => value.toLocaleString("en");

function row(name, ...cells) {
  const made = document.createElement("tr");
  const head = document.createElement("th");
  head.scope = "row";
  head.textContent = name;
  made.append(head);
  for (const content of cells) {
    const cell = document.createElement("td");
    cell.className = "number";
    cell.append(content);
    made.append(cell);
  }
  return made;
}

// Both meters of an engine: what it says of its time, and below what the kernel says.
function meters(engine) {
  const svg = document.createElementNS(NS, "svg");
  svg.setAttribute("class", "meters");
  svg.setAttribute("viewBox", "0 0 100 12");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  let x = 0;
  const part = (name, width, y, height) => {
    const rect = document.createElementNS(NS, "rect");
    rect.setAttribute("class", name);
    rect.setAttribute("x", x);
    rect.setAttribute("y", y);
    rect.setAttribute("width", Math.max(0, Math.min(width, 100 - x)));
    rect.setAttribute("height", height);
    svg.append(rect);
  };
  for (const state of STATES.slice(0, 3)) {
    const width = 100 * (engine.own[state] ?? 0);
    part(state, width, 0, 7);
    x += width;
  }
  x = 0;
  part("cpu", 100 * (engine.cpu ?? 0), 8, 4);
  return svg;
}

function fill(name, rows) {
  place(name).replaceChildren(...rows);
  place(name).closest(".scroll").hidden = !rows.length;
}

function show({ place: address, interval, dials }) {
  const facts = interval.server;
  const about = ["service", "engines", "execution", "idle", "latching", "io_threads", "generation"]
    .filter((name) => facts[name] !== undefined).map((name) => `${name.replace("_", " ")} ${facts[name]}`);
  place("head").textContent = [address, ...about, `${facts.connected_clients ?? "?"} clients`].join(" · ");
  elapsed += interval.seconds;
  overTime.take([elapsed], [
    { name: "cpus", values: [interval.cpus], said: `whole server: ${percent(interval.cpus)} of a CPU` },
    ...interval.work.map((work) => ({ name: work.name, values: [work.per_second], said: `${work.name}: ${rate(work.per_second)} a second` })),
  ]);
  fill("engines", interval.engines.map((engine) => row(
    engine.died ? `${engine.name} (died)` : engine.name, ...STATES.map((state) => percent(engine.own[state], 1)), percent(engine.cpu, 1), meters(engine),
  )));
  for (const name of ["work", "statements"]) {
    fill(name, interval[name].map((work) => row(work.name, rate(work.per_second), rate(work.per_cpu_second))));
  }
  if (interval.statements.length) place("statements").append(row("found, of all lookups", percent(interval.found_share, 1), ""));
  fill("utilisation", interval.utilisation.map((use) => row(use.name, count(use.used), count(use.size), percent(use.share, 1))));
  fill("latches", interval.latches.map((latch) => row(
    latch.name, count(latch.acquisitions), percent(latch.contention, 2), rate(latch.spins_per_wait), count(latch.sleeps),
  )));
  showDials(dials);
}

// -- dials ----------------------------------------------------------------------------------------

let shownDials = "";

function showDials(dials) {
  place("dials").hidden = !dials;
  place("no-dials").hidden = Boolean(dials);
  const now = JSON.stringify(dials);
  if (!dials || now === shownDials || place("dials").contains(document.activeElement)) return;
  shownDials = now;
  place("dial-nice").value = dials.nice;
  place("dial-cpus").replaceChildren(...dials.allowed.map((cpu) => {
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.name = "cpu";
    box.value = cpu;
    box.checked = dials.cpus.includes(cpu);
    label.append(box, ` ${cpu}`);
    return label;
  }));
}

place("dials").addEventListener("submit", (event) => {
  event.preventDefault();
  const dials = event.target;
  const button = dials.querySelector("button");
  once(button, async () => {
    const cpus = [...dials.querySelectorAll("[name=cpu]:checked")].map((box) => Number(box.value));
    await ask("/servers/turn", { ...watched, cpus, nice: Number(dials.elements.nice.value) });
    button.blur();
  });
});

// -- watching -------------------------------------------------------------------------------------

async function watch() {
  for (;;) {
    if (document.hidden || pause.getAttribute("aria-pressed") === "true") {
      await wait(500);
      continue;
    }
    const asked = watched;
    try {
      const second = await (await ask("/servers/read", asked)).json();
      if (asked === watched) {
        if (isLost) tell(null); // and nothing that a dial has said
        isLost = false;
        place("server").hidden = false;
        show(second);
      }
    } catch (error) {
      if (asked === watched) {
        tell(error);
        isLost = true;
      }
      await wait(AGAIN_MS);
    }
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const isFirst = watched === null;
  watched = { place: form.elements.place.value, password_from: form.elements.password_from.value };
  history.replaceState(null, "", `?place=${encodeURIComponent(watched.place)}`);
  pause.hidden = false;
  overTime.clear();
  elapsed = 0;
  if (isFirst) watch();
});
pause.addEventListener("click", () => {
  pause.setAttribute("aria-pressed", String(pause.getAttribute("aria-pressed") !== "true"));
});
