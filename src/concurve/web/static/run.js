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

function spanOf(cell) {
  const svg = document.createElementNS(NS, "svg");
  svg.setAttribute("class", "span");
  svg.setAttribute("viewBox", "0 0 100 10");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  if (cell.value === null) return svg;
  const [low, high] = bounds;
  const x = (value) => (high > low ? 3 + (94 * (value - low)) / (high - low) : 50);
  if (cell.low !== null && cell.high !== null) {
    const line = document.createElementNS(NS, "line");
    line.setAttribute("x1", x(cell.low));
    line.setAttribute("x2", Math.max(x(cell.high), x(cell.low) + 0.5));
    line.setAttribute("y1", 5);
    line.setAttribute("y2", 5);
    svg.append(line);
  }
  const dot = document.createElementNS(NS, "line");
  dot.setAttribute("x1", x(cell.value));
  dot.setAttribute("x2", x(cell.value));
  dot.setAttribute("y1", 1);
  dot.setAttribute("y2", 9);
  svg.append(dot);
  return svg;
}

function rowOf(cell) {
  const row = document.createElement("tr");
  const setting = document.createElement("th");
  setting.scope = "row";
  setting.textContent = cell.setting;
  const figure = document.createElement("td");
  figure.className = "number";
  figure.textContent = cell.figure;
  const span = document.createElement("td");
  span.append(spanOf(cell));
  const trials = document.createElement("td");
  trials.className = "number";
  trials.textContent = `${cell.trials} of ${cell.target}`;
  if (cell.note) {
    const note = document.createElement("small");
    note.textContent = cell.note;
    trials.append(document.createElement("br"), note);
  }
  row.append(setting, figure, span, trials);
  return row;
}

function draw(state) {
  document.getElementById("done").value = state.planned ? state.done / state.planned : 0;
  document.getElementById("count").textContent = `${state.done} of ${state.planned} trials`;
  document.getElementById("left").textContent = state.left && `, ${state.left}`;
  document.getElementById("under-way").textContent = state.under_way;
  document.getElementById("told").replaceChildren(...state.told.map((text) => {
    const item = document.createElement("li");
    item.textContent = text;
    return item;
  }));
  const before = bounds.join();
  for (const cell of state.cells) {
    for (const value of [cell.low, cell.value, cell.high]) {
      if (value !== null) bounds = [Math.min(bounds[0], value), Math.max(bounds[1], value)];
    }
  }
  const body = document.getElementById("cells");
  const changed = new Set(state.cells.map((cell) => cell.cell));
  for (const cell of state.cells) {
    const row = rowOf(cell);
    const old = rows.get(cell.cell);
    if (old) {
      if (state.version > 1) row.className = "fresh";
      old.row.replaceWith(row);
    } else {
      body.append(row);
    }
    rows.set(cell.cell, { row, cell });
  }
  for (const [number, kept] of rows) {
    if (changed.has(number)) continue;
    kept.row.className = "";
    if (before !== bounds.join()) kept.row.cells[2].replaceChildren(spanOf(kept.cell));
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
