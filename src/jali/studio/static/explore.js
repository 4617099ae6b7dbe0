// Signs of a chart that can be chosen: a button lies over each; the arrow keys go from one to the next.
"use strict";

let before = "", focused = "";

function placed(box) {
  const frame = box.getBoundingClientRect();
  for (const button of box.querySelectorAll(":scope > .spot")) {
    const sign = button.sign.getBoundingClientRect();
    button.style.left = sign.left + sign.width / 2 - frame.left + "px";
    button.style.top = sign.top + sign.height / 2 - frame.top + "px";
  }
}

function overlay(box, number, labels, chosen) {
  const signs = [];
  for (const group of box.querySelectorAll("[data-marks]")) {
    const uses = group.querySelectorAll("use");
    group.dataset.marks.split(" ").forEach((mark, at) => uses[at] && signs.push([mark, uses[at]]));
  }
  const buttons = signs.map(([mark, sign]) => {
    const button = document.createElement("button"), text = labels(mark);
    button.type = "button";
    button.className = "spot";
    button.id = "spot-" + number + "-" + mark;
    button.sign = sign;
    button.title = text;
    button.setAttribute("aria-label", text);
    button.tabIndex = -1;
    button.addEventListener("click", () => chosen(mark));
    return button;
  });
  if (!buttons.length) return;
  buttons[0].tabIndex = 0;
  box.append(...buttons);
  box.addEventListener("keydown", event => {
    const at = buttons.indexOf(event.target), step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    if (at < 0 || !step) return;
    event.preventDefault();
    buttons[at].tabIndex = -1;
    const next = buttons[(at + step + buttons.length) % buttons.length];
    next.tabIndex = 0;
    next.focus();
  });
  new ResizeObserver(() => placed(box)).observe(box);
  placed(box);
}

export function attach(root, studio) {
  const point = root.querySelector("[data-point]");
  const take = levels => studio.act("node", {point: point.dataset.point, levels})
    .then(() => studio.say("Taken: " + Object.entries(levels).map(one => one.join(" ")).join(", ")));
  root.querySelectorAll(".marks").forEach((box, number) => {
    if (box.dataset.go) {
      const known = new Map([...root.querySelectorAll("[data-name]")].map(one => [one.dataset.name, one.textContent]));
      overlay(box, number, mark => known.get(mark) || mark, mark => studio.go(box.dataset.go + encodeURIComponent(mark)));
    } else if (point) {
      const names = JSON.parse(box.dataset.node);
      const levels = mark => Object.fromEntries(mark.split(",").map((level, at) => [names[at], Number(level)]));
      overlay(box, number, mark => "take " + Object.entries(levels(mark)).map(one => one.join(" ")).join(", "),
        mark => take(levels(mark)));
    }
  });
  for (const button of root.querySelectorAll("[data-levels]"))
    button.addEventListener("click", () => take(JSON.parse(button.dataset.levels)));
  const other = root.querySelector("#with");
  if (other) other.addEventListener("change", () => {
    if (other.value) studio.go("#explore?point=" + encodeURIComponent(point.dataset.point) + "&with=" + encodeURIComponent(other.value));
  });
  const again = document.getElementById(focused);
  if (again && document.activeElement === document.body) again.focus({preventScroll: true});
  const page = location.hash.replace(/&start=\d+/, "");
  if (before && before !== page) { scrollTo(0, 0); root.focus({preventScroll: true}); }
  before = page;
}

document.addEventListener("focusin", event => { focused = event.target.id || ""; });
