"use strict";
// Charts: a mark says its figure under the pointer or the focus; arrow keys lead from mark to mark;
// buttons hide curves, change the axes, and stretch time.
(() => {
  const ZOOM_MAX = 16;
  const shifted = /^translate\(([-\d.]+),\s*([-\d.]+)\)/;

  // Stretches the horizontal axis: marks are scaled, text and lines move. What stands left of the
  // axes stays as it is.
  const stretch = (picture, factor) => {
    const whole = picture.dataset;
    whole.box ??= picture.getAttribute("viewBox");
    whole.style ??= picture.getAttribute("style") ?? "";
    if (Number(whole.factor ?? 1) === 1) whole.width = picture.getBoundingClientRect().width;
    whole.factor = factor;
    const [left, top, width, height] = whole.box.split(/\s+/).map(Number);
    let plot = 0;
    picture.querySelectorAll(".mark-area, .mark-rect").forEach((marks) => {
      if (!marks.closest(".role-legend")) marks.setAttribute("transform", `scale(${factor},1)`);
    });
    picture.querySelectorAll(".role-axis").forEach((axis) => {
      const line = axis.querySelector(".role-axis-domain line");
      if (!line) return;
      line.dataset.end ??= line.getAttribute("x2") ?? "0";
      const end = Number(line.dataset.end);
      if (!end) return;
      plot = Math.max(plot, end);
      line.setAttribute("x2", end * factor);
      axis.querySelectorAll("text[transform], line[transform]").forEach((part) => {
        part.dataset.place ??= part.getAttribute("transform");
        part.setAttribute("transform", part.dataset.place.replace(shifted,
          (_, x, y) => `translate(${x * factor},${y})`));
      });
    });
    const wide = width + plot * (factor - 1);
    picture.setAttribute("viewBox", `${left} ${top} ${wide} ${height}`);
    picture.setAttribute("style", factor === 1 ? whole.style
      : `width:${whole.width * wide / width}px;max-width:none;min-width:0`);
  };

  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  tip.setAttribute("role", "status");
  document.body.append(tip);

  const marksOf = (root) => [...root.querySelectorAll("[aria-label][aria-roledescription]")].filter(
    (mark) => /point|circle|symbol|bar|rect/.test(mark.getAttribute("aria-roledescription"))
      && mark.getAttribute("role") === "graphics-symbol");
  const isMark = (node) => node.dataset && node.dataset.mark === "";
  const show = (mark, x, y) => {
    tip.textContent = mark.getAttribute("aria-label");
    tip.hidden = false;
    const left = Math.min(x + 14, innerWidth - tip.offsetWidth - 8);
    const top = y + 18 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 10 : y + 18;
    tip.style.left = `${Math.max(left, 4)}px`;
    tip.style.top = `${Math.max(top, 4)}px`;
  };
  const hide = () => { tip.hidden = true; };

  document.querySelectorAll("figure").forEach((figure) => {
    const pictures = [...figure.querySelectorAll("svg.chart")];
    pictures.forEach((picture) => marksOf(picture).forEach((mark, number) => {
      mark.dataset.mark = "";
      mark.setAttribute("tabindex", number ? "-1" : "0");
    }));
    const shown = () => pictures.flatMap((picture) =>
      picture.closest("[hidden]") ? [] : [...picture.querySelectorAll("[data-mark]")]
        .filter((mark) => !mark.classList.contains("off")));

    const point = (event) => {
      const mark = event.target.closest && event.target.closest("[data-mark]");
      if (mark) show(mark, event.clientX, event.clientY); else hide();
    };
    figure.addEventListener("pointermove", point);
    figure.addEventListener("pointerdown", point);
    figure.addEventListener("pointerleave", hide);
    figure.addEventListener("focusin", (event) => {
      if (!isMark(event.target)) return;
      const box = event.target.getBoundingClientRect();
      show(event.target, box.right, box.bottom);
    });
    figure.addEventListener("focusout", hide);
    figure.addEventListener("keydown", (event) => {
      if (event.key === "Escape") hide();
      if (!isMark(event.target)) return;
      const all = shown(), at = all.indexOf(event.target);
      const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1,
        Home: 0, End: all.length - 1 }[event.key];
      if (to === undefined || !all[to]) return;
      event.preventDefault();
      event.target.setAttribute("tabindex", "-1");
      all[to].setAttribute("tabindex", "0");
      all[to].focus();
    });

    const tools = figure.querySelector(".tools");
    if (!tools) return;
    tools.hidden = false;
    tools.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      if (button.classList.contains("zoom")) {
        const now = Number(pictures[0].dataset.factor ?? 1) * Number(button.dataset.by);
        const factor = Math.min(ZOOM_MAX, Math.max(1, now));
        pictures.forEach((picture) => stretch(picture, factor));
        tools.querySelectorAll(".zoom").forEach((other) => {
          other.disabled = factor === (Number(other.dataset.by) > 1 ? ZOOM_MAX : 1);
        });
        return;
      }
      const pressed = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(pressed));
      if (button.classList.contains("axes")) {
        figure.querySelectorAll(".scroll").forEach((box) => {
          box.hidden = box.classList.contains("other") !== pressed;
        });
      } else {
        const colour = button.dataset.colour;
        pictures.forEach((picture) => picture
          .querySelectorAll(`.mark-symbol [fill="${colour}"], .mark-symbol [stroke="${colour}"],`
            + `.mark-line [stroke="${colour}"], .mark-rule [stroke="${colour}"],`
            + `.mark-area [fill="${colour}"]`)
          .forEach((mark) => { if (!mark.closest(".role-legend")) mark.classList.toggle("off", !pressed); }));
      }
      // The focus must be able to enter the chart again.
      const marks = shown();
      if (marks.length && !marks.some((mark) => mark.getAttribute("tabindex") === "0")) {
        marks[0].setAttribute("tabindex", "0");
      }
    });
  });
})();

// Paper shows what is folded.
(() => {
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach((details) => { details.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach((details) => { details.open = false; }));
})();

// Sorting: a click on a heading sorts, another turns round, a third restores the order.
document.querySelectorAll("table.figures").forEach((table) => {
  const body = table.tBodies[0];
  const original = [...body.rows];
  const key = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.value ?? cell.textContent.trim();
    const number = Number(text.replace(/,/g, ""));
    return text === "" || Number.isNaN(number) ? text : number;
  };
  const absent = (value) => value === "–";
  const compare = (a, b) =>
    absent(a) || absent(b) ? absent(a) - absent(b)
      : typeof a === "number" && typeof b === "number" ? a - b
      : String(a).localeCompare(String(b), undefined, { numeric: true });
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const now = heading.getAttribute("aria-sort");
      const next = now === "ascending" ? "descending" : now === "descending" ? null : "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      if (next) heading.setAttribute("aria-sort", next);
      const sign = next === "descending" ? -1 : 1;
      const rows = next
        ? [...original].sort((a, b) => {
            const x = key(a, column), y = key(b, column);
            return absent(x) || absent(y) ? compare(x, y) : sign * compare(x, y);
          })
        : original;
      body.append(...rows);
    });
  });
});

// Commands, copied where the browser allows it.
document.querySelectorAll(".command").forEach((command) => {
  const button = command.querySelector(".copy");
  if (!navigator.clipboard) return;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(command.querySelector("code").textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy the command"; }, 2000);
  });
});
