// The forms of a new measurement: its plan, its start, and what it says until its run has begun.
import { ask, once, tell } from "/static/asking.js";

const LOOK_MS = 500;
const entries = new Map(JSON.parse(document.getElementById("catalogue").dataset.entries).map((entry) => [entry.name, entry]));
const shown = (name, is) => { document.getElementById(name).hidden = !is; };
const command = (line) => {
  document.getElementById("line").textContent = line;
  shown("of-command", line !== "");
};
const title = (text) => { document.getElementById("result-title").textContent = text; };
let counted = 0;
let number = null;

function labelled(text, name, example) {
  const box = document.createElement("div");
  const label = document.createElement("label");
  const input = document.createElement("input");
  input.id = `field-${++counted}`;
  input.dataset.name = name;
  input.placeholder = example;
  label.htmlFor = input.id;
  label.textContent = text;
  box.append(label, input);
  return box;
}

// -- a sweep ------------------------------------------------------------------------------------

function addParameter() {
  const row = document.createElement("div");
  row.className = "parameter";
  const remove = document.createElement("button");
  remove.type = "button";
  remove.textContent = "Remove";
  remove.addEventListener("click", () => row.remove());
  row.append(labelled("Name", "name", "threads"), labelled("Levels", "levels", "1,2,4"), remove);
  document.getElementById("parameters").append(row);
  return row;
}

document.getElementById("add").addEventListener("click", () => addParameter().querySelector("input").focus());
addParameter();

// -- a study ------------------------------------------------------------------------------------

const study = document.getElementById("study-study");
const effort = document.getElementById("study-effort");

function showStudy() {
  const entry = entries.get(study.value);
  document.getElementById("question").textContent = entry ? entry.question + (entry.source ? ` (after ${entry.source})` : "") : "";
  const place = document.getElementById("factors");
  const kept = new Map([...place.querySelectorAll("input")].map((input) => [input.dataset.name, input.value]));
  place.replaceChildren();
  for (const factor of entry ? entry.factors : []) {
    const box = labelled(`Levels of ${factor.name}`, factor.name, factor.levels[effort.value] ?? "");
    box.className = "field";
    box.querySelector("input").value = kept.get(factor.name) ?? "";
    place.append(box);
  }
}

study.addEventListener("change", showStudy);
effort.addEventListener("change", showStudy);
showStudy();

// -- both ---------------------------------------------------------------------------------------

function contentOf(form) {
  const content = {};
  for (const field of form.elements) if (field.name) content[field.name] = field.type === "checkbox" ? field.checked : field.value;
  if (form.dataset.kind === "sweep") {
    content.parameters = [...form.querySelectorAll(".parameter")].map((row) => {
      const [name, levels] = row.querySelectorAll("input");
      return { name: name.value, levels: levels.value };
    }).filter((parameter) => parameter.name || parameter.levels);
  } else {
    content.levels = Object.fromEntries([...form.querySelectorAll("#factors input")]
      .filter((input) => input.value.trim()).map((input) => [input.dataset.name, input.value]));
  }
  return content;
}

async function plan(form) {
  const made = await (await ask(`/new/plan/${form.dataset.kind}`, contentOf(form))).json();
  command(made.line);
  document.getElementById("plan").textContent = made.plan;
  shown("plan", made.plan !== "");
  shown("progress", false);
  if (made.is_refused) throw new Error(made.said);
}

async function start(form) {
  let said = await (await ask(`/new/start/${form.dataset.kind}`, contentOf(form))).json();
  number = said.number;
  shown("plan", false);
  shown("progress", true);
  shown("stop", true);
  for (;;) {
    command(said.line);
    document.getElementById("lines").textContent = said.lines.join("\n");
    document.getElementById("state").textContent = said.code === null ? "It begins …" : `It ended with the exit code ${said.code}.`;
    if (said.run) {
      location.assign(said.run.startsWith("c") ? `/campaigns/${said.run}` : `/runs/${said.run}`);
      return;
    }
    if (said.code !== null) {
      shown("progress", false); // its lines are the reason, told above the command
      throw new Error(said.lines.join("\n") || `it ended with the exit code ${said.code}`);
    }
    await new Promise((done) => setTimeout(done, LOOK_MS));
    said = await (await ask(`/measurements/${said.number}`)).json();
  }
}

for (const form of document.querySelectorAll("#sweep, #study")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const button = event.submitter ?? form.querySelector("button[type=submit]");
    shown("result", true);
    for (const name of ["plan", "progress"]) shown(name, false);
    command("");
    title("What will be done");
    once(button, async () => {
      try {
        await (button.value === "start" ? start(form) : plan(form));
      } catch (error) {
        title("Nothing is measured");
        throw error;
      }
    })
      .then(() => document.getElementById("result").scrollIntoView({ block: "nearest" }));
  });
}

document.getElementById("stop").addEventListener("click", (event) => once(event.target, async () => {
  if (number !== null) await ask(`/measurements/${number}/stop`, {});
}));

// What another page has filled in: the window's setting as a sweep.
const asked = new URLSearchParams(location.search);
for (const name of ["command", "cpus", "nice", "policy"]) {
  const field = document.getElementById(`sweep-${name}`);
  if (asked.get(name)) field.value = asked.get(name);
}
for (const name of ["name", "levels"]) {
  const field = document.querySelector(`.parameter input[data-name=${name}]`);
  if (asked.get(name)) field.value = asked.get(name);
}
