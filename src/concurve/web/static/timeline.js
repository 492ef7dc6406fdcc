// Lines over time, a small chart for each: how busy CPUs are, or what a server does.

const NS = "http://www.w3.org/2000/svg";
const WIDTH = 240;
const HEIGHT = 48;
const KEPT = 2400;

function drawn(seconds, values, top) {
  const start = seconds[0] > 2 ? seconds[0] : 0; // the first readings may be kept no more
  const span = Math.max(seconds.at(-1) - start, 10);
  const x = (at) => (WIDTH * (at - start)) / span;
  let path = "";
  let pen = "M";
  values.forEach((value, i) => {
    if (value === null) {
      pen = "M";
      return;
    }
    path += `${pen}${x(seconds[i]).toFixed(1)} ${(HEIGHT - 1 - (HEIGHT - 2) * (value / top)).toFixed(1)}`;
    pen = "L";
  });
  return path;
}

export const percent = (share, digits = 0) => (share === null || share === undefined ? "–" : `${(100 * share).toFixed(digits)} %`);

export class Timeline {
  constructor(place) {
    this.place = place;
    this.clear();
  }

  clear() {
    this.seconds = [];
    this.rows = new Map();
    this.place.replaceChildren();
  }

  // Takes readings at some times: for each line its name, its values, what is said of the last one,
  // and the value at the upper edge; without it, the greatest so far.
  take(seconds, lines) {
    if (!seconds.length) return;
    const before = this.seconds.length;
    this.seconds = [...this.seconds, ...seconds].slice(-KEPT);
    for (const { name, values, said, top } of lines) {
      const row = this.rows.get(name) ?? this.add(name, before);
      row.values = [...row.values, ...values].slice(-KEPT);
      row.label.textContent = said;
      const most = top ?? Math.max(...row.values.filter((value) => value !== null), Number.MIN_VALUE);
      row.path.setAttribute("d", drawn(this.seconds, row.values, most));
    }
  }

  add(name, missing) {
    const figure = document.createElement("figure");
    const label = document.createElement("figcaption");
    const svg = document.createElementNS(NS, "svg");
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    const path = document.createElementNS(NS, "path");
    svg.append(path);
    figure.append(label, svg);
    this.place.append(figure);
    const row = { label, path, values: Array(missing).fill(null) };
    this.rows.set(name, row);
    return row;
  }
}
