"use strict";
// Tooltips: every mark of a chart that describes itself.
(() => {
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const show = (event) => {
    const mark = event.target.closest && event.target.closest(".chart [aria-label][aria-roledescription]");
    const text = mark && /point|circle|symbol/.test(mark.getAttribute("aria-roledescription"))
      ? mark.getAttribute("aria-label") : "";
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const x = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
    const y = event.clientY + 18 + tip.offsetHeight > innerHeight
      ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18;
    tip.style.left = `${Math.max(x, 4)}px`;
    tip.style.top = `${y}px`;
  };
  document.addEventListener("pointermove", show);
  document.addEventListener("pointerdown", show);
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
