// The frame of the page: asks for views, does what their elements say, follows what the server tells.
// The token of the tab came in the fragment of the first address. It stays in this tab, and goes into every request.
"use strict";

const at = id => document.getElementById(id);
const arrived = location.hash.slice(1);
if (/^[\w-]{40,}$/.test(arrived)) {
  sessionStorage.setItem("tab", arrived);
  history.replaceState(null, "", "/");
}
const tab = sessionStorage.getItem("tab") || "";
const links = [...document.querySelectorAll("nav.steps a")];
const names = links.map(link => link.hash.slice(1));
const running = new Map();
let state = {}, shown = "", shownAt = "", last = "", loading = false, again = false;

async function ask(path, body) {
  const options = {headers: {"X-Jali-Tab": tab}, cache: "no-store"};
  if (body !== undefined) Object.assign(options, {method: "POST", body: JSON.stringify(body)});
  return fetch(path, options);
}

// -- what the page says ----------------------------------------------------------------------------------------------

function complain(text) {
  at("message").textContent = text;
  at("message").hidden = !text;
}

function say(text) {
  at("status").textContent = text;
}

function unreachable() {
  complain("The studio does not answer. If it was stopped, start it again with: jali studio " +
    (state.table || "") + " — nothing is lost: the job and its history are kept beside the table.");
}

// -- views -----------------------------------------------------------------------------------------------------------

function place() {
  const [name, query = ""] = location.hash.slice(1).split("?");
  return {name: names.includes(name) ? name : names[0], query};
}

function opened(root) {
  return new Set([...root.querySelectorAll("details[id][open]")].map(one => one.id));
}

async function load() {
  if (loading) { again = true; return; }
  loading = true;
  at("view").setAttribute("aria-busy", "true");
  const {name, query} = place();
  let html = null;
  try {
    const answer = await ask("/api/views/" + name + (query ? "?" + query : ""));
    answer.ok ? html = await answer.text() : complain(await answer.text());
  } catch { unreachable(); }
  try { if (html !== null) await show(name, html); } finally {
    loading = false;
    if (again) { again = false; load(); } else at("view").removeAttribute("aria-busy");
  }
}

async function show(name, html) {
  const root = at("view"), same = shown === name, open = opened(root);
  const focus = document.activeElement && root.contains(document.activeElement) ? document.activeElement.id : "";
  const typing = one => one.name || "narrows" in one.dataset || one === document.activeElement; // a field that acts by itself, while somebody types in it
  const typed = shownAt === location.hash ? [...root.querySelectorAll("form [name], input[type=text][data-act], [data-narrows]")].filter(typing)
    .map(one => [one.id, one.type === "checkbox" ? one.checked : one.value]) : [];
  if (same && html === last) return; // what is in use stays as it is
  root.innerHTML = last = html;
  for (const one of root.querySelectorAll("[data-style]")) one.style.cssText = one.dataset.style;
  for (const id of same ? open : []) if (at(id)) at(id).open = true;
  for (const [id, value] of typed) if (at(id)) at(id)[typeof value === "boolean" ? "checked" : "value"] = value;
  searchable(root);
  for (const field of root.querySelectorAll("[data-narrows]")) narrow(field);
  if (same && focus && at(focus)) at(focus).focus({preventScroll: true});
  if (!same) {
    if (shown) root.focus({preventScroll: true});
    scrollTo(0, 0);
  }
  shown = name;
  shownAt = location.hash;
  for (const link of links) {
    const here = state.open !== false && link.hash.slice(1) === name;
    here ? link.setAttribute("aria-current", "step") : link.removeAttribute("aria-current");
    if (here && !same) link.scrollIntoView({block: "nearest", inline: "center"}); // on a telephone the steps are a line
    if (here) document.title = link.textContent.replace(/^\d+/, "") + " – jali studio";
    if (here && link.dataset.script) (await import("/static/" + link.dataset.script)).attach(root, studio);
  }
}

// -- actions ---------------------------------------------------------------------------------------------------------

async function act(action, given = {}, form = null) {
  complain("");
  try {
    const answer = await ask("/api/act/" + place().name + "/" + action, given);
    const told = answer.headers.get("content-type").includes("json") ? await answer.json() : {error: await answer.text()};
    if (!answer.ok) { complain(told.error); last = ""; load(); return null; }
    if (form && "once" in form.dataset) shownAt = ""; // what was typed is done with
    await refresh();
    load();
    return told.told;
  } catch { unreachable(); return null; }
}

const studio = {act, ask, say, complain, load, go: hash => { location.hash = hash; }, state: () => state};

// A link to a part of the view, such as those of the report, moves there and changes no address.
document.addEventListener("click", event => {
  const link = event.target.closest("main a[href^='#']"), id = link && link.getAttribute("href").slice(1);
  if (!id || names.includes(id.split("?")[0]) || !at(id)) return;
  event.preventDefault();
  for (let one = at(id).parentElement; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
  at(id).scrollIntoView();
});
const given = element => JSON.parse(element.dataset.args || "{}");
document.addEventListener("click", event => {
  const button = event.target.closest("button[data-act]");
  if (button) { button.disabled = true; act(button.dataset.act, given(button)).finally(() => { button.disabled = false; }); }
});
at("view").addEventListener("change", event => {
  const field = event.target;
  if (field.dataset.act) act(field.dataset.act, {...given(field), value: field.type === "checkbox" ? field.checked : field.value});
});
at("view").addEventListener("submit", event => {
  event.preventDefault();
  const form = event.target, fields = {};
  for (const one of form.elements) if (one.name) fields[one.name] = one.type === "checkbox" ? one.checked : one.value;
  if (form.dataset.listed) fields.columns = listed(form.dataset.listed).map(item => item.dataset.own);
  if (form.dataset.act) act(form.dataset.act, {...given(form), ...fields}, form);
});

// -- lists that a field narrows --------------------------------------------------------------------------------------

const listed = id => [...at(id).children].filter(item => !item.hidden);

function narrow(field) {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean), items = [...at(field.dataset.narrows).children];
  for (const item of items) item.hidden = !words.every(word => item.dataset.text.includes(word));
  const left = listed(field.dataset.narrows).length;
  at(field.id + "-left").textContent = (left === items.length ? "" : left.toLocaleString("en") + " of ") + items.length.toLocaleString("en") + " listed";
}

document.addEventListener("input", event => { if (event.target.dataset.narrows) narrow(event.target); });
document.addEventListener("keydown", event => {
  const list = event.target.closest("[data-chosen], .files"), step = {ArrowDown: 1, ArrowUp: -1}[event.key] || 0;
  if (!list || !(step || event.key === "Enter" && event.target.dataset.narrows)) return;
  const field = list.dataset.narrows ? list : document.querySelector("[data-narrows='" + list.id + "']");
  const stops = [field, ...listed(field.dataset.narrows).map(item => item.firstElementChild)];
  event.preventDefault();
  if (!step) { if (stops[1]) stops[1].click(); return; }
  const next = stops[stops.indexOf(event.target) + step];
  if (next) next.focus();
});

// -- the state: history and progress ---------------------------------------------------------------------------------

async function refresh() {
  const answer = await ask("/api/state");
  if (!answer.ok) { complain(await answer.text()); return false; }
  state = await answer.json();
  running.clear();
  for (const run of state.running) running.set(run.number, run);
  progress();
  at("table").textContent = state.table || "";
  at("undo").disabled = !(state.at > 0);
  at("redo").disabled = !(state.history && state.at < state.history.length - 1);
  document.querySelector("nav.steps ol").hidden = !state.open;
  at("steps").hidden = !state.history || !state.history.length;
  at("history").replaceChildren(...(state.history || []).map((said, number) => {
    const item = document.createElement("li"), button = document.createElement("button");
    button.type = "button";
    button.textContent = said;
    if (number === state.at) button.setAttribute("aria-current", "true");
    if (number > state.at) button.className = "later";
    button.addEventListener("click", () => act("step", {at: number}));
    item.append(button);
    return item;
  }));
  return true;
}

const WORDS = {profile: "Looking at the table", hierarchy: "Making the hierarchy", reached: "Looking at promises", decide: "Making and judging the release",
  save: "Saving", explore: "Comparing methods", look: "Looking at a release", prepare: "Making the release"};
const SHORT = new Set(["rows", "beside", "ask", "sample"]); // no sign of progress of their own
function progress() {
  const run = [...running.values()].find(one => !SHORT.has(one.task));
  at("progress").hidden = !run;
  if (!run) return;
  at("doing").textContent = run.said || WORDS[run.task] || run.task;
  run.total ? (at("done").max = run.total, at("done").value = run.done) : at("done").removeAttribute("value");
  at("stop").onclick = () => { at("doing").textContent = "Stopping"; act("stop", {number: run.number}); };
}

function hear(news) {
  if (news.event === "state" || news.event === "hello") { refresh().then(load); }
  if (news.event === "part") load();
  if (news.event === "bye") unreachable();
  if (news.event !== "run") return;
  if (news.status === "running") running.set(news.number, news);
  else {
    running.delete(news.number);
    if (!SHORT.has(news.task)) say(news.status === "done" ? "Done." : news.said);
    load();
  }
  progress();
}

async function follow() {
  for (;;) {
    try {
      const answer = await ask("/api/events");
      if (!answer.ok) { complain(await answer.text()); return; }
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      complain("");
      for (let kept = ""; ;) {
        const {value, done} = await reader.read();
        if (done) break;
        const parts = (kept + value).split("\n\n");
        kept = parts.pop();
        for (const part of parts) hear(JSON.parse(part.replace(/^data: /, "")));
      }
    } catch { /* said below */ }
    unreachable();
    await new Promise(done => setTimeout(done, 2000));
  }
}

at("undo").addEventListener("click", () => act("step", {by: -1}));
at("redo").addEventListener("click", () => act("step", {by: 1}));
at("skip").addEventListener("click", event => { event.preventDefault(); at("view").focus(); });
document.addEventListener("keydown", event => {
  const typing = /^(INPUT|TEXTAREA)$/.test(event.target.tagName);
  if (!(event.ctrlKey || event.metaKey) || typing) return;
  const key = event.key.toLowerCase(), forward = key === "y" || (key === "z" && event.shiftKey);
  if (key !== "z" && key !== "y") return;
  event.preventDefault();
  if (!at(forward ? "redo" : "undo").disabled) act("step", {by: forward ? 1 : -1});
});
document.addEventListener("click", event => {
  if (at("steps").open && !at("steps").contains(event.target)) at("steps").open = false;
});
document.addEventListener("keydown", event => {
  if (event.key === "Escape" && at("steps").open) { at("steps").open = false; at("steps").firstElementChild.focus(); }
});
addEventListener("hashchange", load);
follow();
