"use strict";
// Long tables can be searched and sorted. The page says the same without this. The studio calls it for what it shows.
globalThis.searchable = root => {
  for (const table of root.querySelectorAll("table.long")) {
    const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
    const caption = table.caption.textContent;
    const box = document.createElement("p"), label = document.createElement("label");
    const field = document.createElement("input"), count = document.createElement("span");
    box.className = "find";
    field.type = "search";
    field.autocomplete = "off";
    label.append("Search “" + caption + "” ", field);
    count.setAttribute("role", "status");
    field.addEventListener("input", () => {
      const wanted = field.value.trim().toLowerCase();
      let shown = 0;
      for (const row of rows) {
        row.hidden = !row.textContent.toLowerCase().includes(wanted);
        shown += row.hidden ? 0 : 1;
      }
      count.textContent = wanted ? " " + shown + " of " + rows.length + " rows" : "";
    });
    box.append(label, count);
    table.parentElement.before(box);
    const number = text => {
      const found = text.replace(/[,\s\u00a0]/g, "").match(/^[^\d-]*(-?\d+(\.\d+)?)/);
      return found ? Number(found[1]) : NaN;
    };
    heads.forEach((head, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach(other => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const text = row => row.cells[at].textContent.trim();
        const order = (a, b) => {
          const x = number(text(a)), y = number(text(b));
          return Number.isNaN(x) || Number.isNaN(y) ? text(a).localeCompare(text(b)) : x - y;
        };
        body.append(...[...rows].sort((a, b) => (up ? order(a, b) : order(b, a))));
      });
    });
  }
};
searchable(document);
