// A page with a report, or with a run that goes on.
import { ask, once, tell } from "/static/asking.js";

const AGAIN_MS = 10000;
const report = document.getElementById("report");
const live = document.getElementById("live");
const id = location.pathname.split("/").pop();

async function show(now) {
  const address = now ? `${report.dataset.src}${report.dataset.src.includes("?") ? "&" : "?"}now=1` : report.dataset.src;
  let text;
  try {
    text = await (await ask(address)).text();
  } catch (error) {
    tell(error);
    report.removeAttribute("aria-busy");
    const status = report.querySelector("[role=status]");
    if (status) status.textContent = "";
    if (error.status === 409 && !now && !document.getElementById("now")) {
      const button = document.createElement("button");
      button.type = "button";
      button.id = "now";
      button.textContent = "Show it now";
      button.addEventListener("click", () => { button.remove(); tell(null); show(true); });
      document.getElementById("said").after(button);
    }
    if (error.status === 409 && !now) setTimeout(() => { if (document.getElementById("now")) show(false); }, AGAIN_MS);
    return;
  }
  tell(null);
  document.getElementById("now")?.remove();
  const made = document.createElement("template");
  made.innerHTML = text;
  if (report.dataset.inner) made.content.querySelector("h1")?.remove();
  report.replaceChildren(made.content);
  report.removeAttribute("aria-busy");
  const script = document.createElement("script");
  script.src = "/report.js";
  document.body.append(script);
}

// -- a run that goes on -----------------------------------------------------------------------

const rows = new Map();
const NS = "http://www.w3.org/2000/svg";
let bounds = [Infinity, -Infinity];

// Where the bars of a cell stand: "" where there is nothing to show.
function placesOf(cell) {
  if (cell.value === null) return "";
  const [low, high] = bounds;
  const x = (value) => (high > low ? 3 + (94 * (value - low)) / (high - low) : 50).toFixed(1);
  const has = cell.low !== null && cell.high !== null;
  const line = has ? `M${x(cell.low)} 5H${Math.max(x(cell.high), Number(x(cell.low)) + 0.5)}` : "";
  return `${line}M${x(cell.value)} 1V9`;
}

// A page that is looked at while a program is measured takes CPU time from it: what looks the same is
// not drawn again, and what changed is changed in its place.
function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function place(row) {
  const places = placesOf(row.cell);
  if (row.places === places) return;
  row.places = places;
  row.bars.setAttribute("d", places);
}

function newRow() {
  const element = document.createElement("tr");
  const setting = document.createElement("th");
  setting.scope = "row";
  const figure = document.createElement("td");
  figure.className = "number";
  const span = document.createElement("td");
  const svg = document.createElementNS(NS, "svg");
  svg.setAttribute("class", "span");
  svg.setAttribute("viewBox", "0 0 100 10");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const bars = document.createElementNS(NS, "path");
  svg.append(bars);
  span.append(svg);
  const trials = document.createElement("td");
  trials.className = "number";
  const count = document.createElement("span");
  const note = document.createElement("small");
  trials.append(count, note);
  element.append(setting, figure, span, trials);
  document.getElementById("cells").append(element);
  return { element, setting, figure, bars, count, note, places: "", cell: null };
}

function draw(state) {
  document.getElementById("done").value = state.planned ? state.done / state.planned : 0;
  write(document.getElementById("count"), `${state.done} of ${state.planned} trials`);
  write(document.getElementById("left"), state.left && `, ${state.left}`);
  write(document.getElementById("under-way"), state.under_way);
  const told = document.getElementById("told");
  if ([...told.children].map((item) => item.textContent).join("\n") !== state.told.join("\n")) {
    told.replaceChildren(...state.told.map((text) => {
      const item = document.createElement("li");
      item.textContent = text;
      return item;
    }));
  }
  const before = bounds.join();
  for (const cell of state.cells) {
    for (const value of [cell.low, cell.value, cell.high]) {
      if (value !== null) bounds = [Math.min(bounds[0], value), Math.max(bounds[1], value)];
    }
  }
  const changed = new Set();
  for (const cell of state.cells) {
    if (rows.has(cell.cell)) changed.add(cell.cell);
    else rows.set(cell.cell, newRow());
    const row = rows.get(cell.cell);
    row.cell = cell;
    write(row.setting, cell.setting);
    write(row.figure, cell.figure);
    write(row.count, `${cell.trials} of ${cell.target}`);
    write(row.note, cell.note);
    place(row);
  }
  for (const [number, row] of rows) {
    const look = state.version > 1 && changed.has(number) ? "fresh" : "";
    if (row.element.className !== look) row.element.className = look;
    if (before !== bounds.join()) place(row);
  }
}

function follow() {
  const source = new EventSource(`/runs/${live.dataset.run}/live`);
  source.addEventListener("state", (event) => {
    const state = JSON.parse(event.data);
    draw(state);
    if (state.state !== "running") {
      source.close();
      location.reload();
    }
  });
  source.addEventListener("failed", (event) => {
    const { what, remedy } = JSON.parse(event.data);
    source.close();
    tell(new Error(`${what}. Try: ${remedy}`));
  });
  source.onerror = () => {
    if (source.readyState === EventSource.CLOSED) tell(new Error("The server does not answer. Try: is concurve web still running?"));
  };
}

// -- what can be done -------------------------------------------------------------------------

document.getElementById("stop")?.addEventListener("click", (event) => once(event.target, async () => {
  await ask(`/runs/${id}/stop`, {});
  event.target.textContent = "Stopping …";
}));

// What is known of a measurement once its run has begun, or it has ended.
async function begun(said) {
  while (!said.run && said.code === null) {
    await new Promise((done) => setTimeout(done, 500));
    said = await (await ask(`/measurements/${said.number}`)).json();
  }
  if (said.code) throw new Error(said.lines.join("\n") || `it ended with the exit code ${said.code}`);
  return said;
}

document.getElementById("resume")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const form = event.target;
  once(form.querySelector("button"), async () => {
    const kind = form.dataset.kind ?? "runs";
    await begun(await (await ask(`/${kind}/${id}/resume`, { max_time: form.elements.max_time.value })).json());
    location.reload();
  });
});

document.getElementById("more")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const form = event.target;
  once(form.querySelector("button"), async () => {
    const content = { cell: Number(form.elements.cell.value), trials: Number(form.elements.trials.value) };
    const said = await begun(await (await ask(`/runs/${id}/more`, content)).json());
    location.assign(`/runs/${said.run}`);
  });
});

document.getElementById("only-differences")?.addEventListener("change", (event) => {
  report.classList.toggle("only-differences", event.target.checked);
});

if (report) show(false);
if (live) follow();
