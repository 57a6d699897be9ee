// The page: which view, which state, and what becomes of a slider that moves.

import { build, State } from "./controls.js";
import { draw, reading, refresh, resize, table, wipe } from "./chart.js";
import { csv, csvText, png, python, pythonText } from "./downloads.js";
import { Dots } from "./dots.js";
import { byId, calm, element } from "./format.js";
import { source } from "./source.js";
import { bring, learn, takesFiles } from "./tables.js";

const PATIENCE = 400; // milliseconds without an answer after which the page says that it computes
const SLOW = 150; // milliseconds after which a newer state does not wait for the answer to an older one

let views = [];
let state = null;
let answer = null;
const latencies = []; // from an input to its picture, for whoever measures
const dots = new Dots(() => showDots());

// -- from a state to its picture -------------------------------------------------------------------------

let asked = null; // the request that is under way: {query, controller, began}
let waiting = null; // when the latest change that no request carries yet was made

function change(group) {
  if (group === "theory" || group === "dots") dots.clear();
  waiting ??= performance.now();
  document.documentElement.dataset.wanted = address(); // what is wanted, and what is drawn: tests wait for the two to meet
  remember();
  if (!asked) requestAnimationFrame(ask);
  else if (performance.now() - asked.began > SLOW) asked.controller.abort();
}

async function ask() {
  if (asked || waiting === null) return;
  const changed = waiting;
  const wanted = address();
  waiting = null;
  const mine = { controller: new AbortController(), began: performance.now(), view: state.view.name };
  asked = mine;
  const long = setTimeout(() => (byId("reading").textContent = "Computing …"), PATIENCE);
  try {
    const found = await source.lines(mine.view, state.query(), mine.controller.signal);
    if (mine.view === state.view.name) await show(found, changed);
    document.documentElement.dataset.drawn = wanted;
  } catch (failure) {
    if (failure.name === "AbortError") waiting ??= changed;
    else {
      fail(failure.message);
      byId("reading").textContent = "";
      document.documentElement.dataset.drawn = wanted;
    }
  } finally {
    clearTimeout(long);
    asked = null;
    if (waiting !== null) requestAnimationFrame(ask);
  }
}

async function show(found, changed) {
  const first = answer?.view !== found.view;
  answer = found;
  fail("");
  if (answer.table) {
    learn(answer.table);
    state.show();
  }
  await draw(answer, dots.list);
  requestAnimationFrame(() => setTimeout(() => latencies.push(performance.now() - changed)));
  if (first) {
    describe();
    prefetch();
  } else later();
}

/** When the page has nothing else to do, ask for the other views: the first answer of some takes seconds. */
const prefetch = calm(1500, async () => {
  if (!source.live) return;
  for (const view of views) {
    if (waiting !== null || asked) return void prefetch();
    await source.lines(view.name, new State(view).query()).catch(() => {});
  }
});

/** Everything but the picture can wait until the slider rests. */
const later = calm(120, describe);

function describe() {
  if (!answer) return;
  byId("reading").textContent = reading(answer);
  const notes = [...answer.notes, ...dots.notes];
  byId("notes").replaceChildren(...notes.map((note) => element("li", { className: note.about === "Advice" ? "advice" : "" }, element("strong", {}, `${note.about}: `), note.message)));
  byId("claims").replaceChildren(...answer.claims.flatMap(claimItems));
  byId("command").textContent = [answer.command, dots.again?.command].filter(Boolean).join("\n");
  byId("python").textContent = pythonText(answer, dots.again);
  if (byId("table").open) fillTable();
}

function claimItems(claim) {
  const about = [claim.theorem, ...claim.assumptions, claim.citations.join(", ")];
  if (claim.erratum) about.push(`Erratum: ${claim.erratum}`);
  return [element("dt", {}, claim.title), ...about.map((text) => element("dd", {}, text))];
}

function fillTable() {
  if (answer) byId("table").querySelector(".scroll").replaceChildren(table(answer, dots.list));
}

function fail(message) {
  byId("failure").hidden = message === "";
  byId("failure").textContent = message;
}

// -- dots ----------------------------------------------------------------------------------------------

let drawing = false;

function showDots() {
  const { progress, running, status } = dots;
  byId("drop").disabled = running;
  byId("cancel").hidden = !running;
  byId("clear").hidden = running || dots.list.length === 0;
  const bar = byId("progress");
  bar.hidden = !running;
  if (progress?.total) Object.assign(bar, { max: progress.total, value: progress.done });
  else bar.removeAttribute("value");
  byId("status").textContent = status;
  later();
  if (!answer || drawing) return;
  drawing = true;
  requestAnimationFrame(async () => {
    drawing = false;
    await draw(answer, dots.list);
    document.documentElement.dataset.dots = String(dots.list.length);
  });
}

function drop() {
  if (source.live) dots.drop(state.view.name, state.values);
  else {
    const kept = source.dots(state.view.name);
    dots.clear();
    if (kept && state.query() === new State(state.view).query()) Object.assign(dots, kept);
    else dots.status = "This page keeps dots for the values it opens with.";
    showDots();
  }
  remember();
}

// -- links -----------------------------------------------------------------------------------------------

const address = () => `${state.view.name}?${state.query()}`;
const hash = () => `#${address()}${dots.list.length || dots.running ? "&dots=true" : ""}`;

const remember = calm(250, () => history.replaceState(null, "", hash()));

/** Show what an address says: a view, its state, and its dots if it had any. */
function open(url) {
  const [name, query = ""] = decodeURI(new URL(url).hash.slice(1)).split("?");
  const view = views.find((one) => one.name === name) ?? views[0];
  const said = new URLSearchParams(query);
  const moved = state?.view.name !== view.name;
  dots.clear();
  state = new State(view, change);
  state.read(said);
  if (moved) {
    answer = null;
    wipe();
    byId("reading").textContent = "Computing …";
    for (const part of ["notes", "claims", "command", "python"]) byId(part).replaceChildren();
    byId("title").textContent = view.title;
    byId("text").textContent = view.text;
    byId("theorem").textContent = view.theorem;
    document.title = `${view.title} · lazyscope explorer`;
    for (const link of byId("views").querySelectorAll("a"))
      if (link.dataset.view === view.name) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
  }
  build(byId("controls"), state);
  showDots();
  change("view");
  if (said.get("dots") === "true") drop();
}

/** A file that is dropped anywhere goes to the view that takes files. */
function dropped(event) {
  const [file] = event.dataTransfer?.files ?? [];
  if (!file) return;
  event.preventDefault();
  const view = views.find(takesFiles);
  if (!view) return;
  if (!takesFiles(state.view)) open(new URL(`#${view.name}`, location.href));
  bring(file, state);
}

async function copyLink() {
  history.replaceState(null, "", hash());
  const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
  byId("status").textContent = copied ? "Link copied." : "The link is in the address bar.";
}

// -- look --------------------------------------------------------------------------------------------------

function look(theme, size) {
  const root = document.documentElement;
  root.dataset.theme = theme;
  root.dataset.size = size;
  byId("theme").setAttribute("aria-pressed", String(theme === "dark"));
  byId("size").setAttribute("aria-pressed", String(size === "large"));
  refresh();
}

function startLook() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement.dataset;
  look(dark.matches ? "dark" : "light", "normal");
  dark.addEventListener("change", () => look(dark.matches ? "dark" : "light", root.size));
  byId("theme").addEventListener("click", () => look(root.theme === "dark" ? "light" : "dark", root.size));
  byId("size").addEventListener("click", () => look(root.theme, root.size === "large" ? "normal" : "large"));
}

// -- start -------------------------------------------------------------------------------------------------

async function start() {
  startLook();
  views = await source.views();
  byId("views").replaceChildren(...views.map((view) => {
    const link = element("a", { href: `#${view.name}` }, view.title);
    link.dataset.view = view.name;
    return element("li", {}, link);
  }));
  byId("drop").addEventListener("click", drop);
  byId("cancel").addEventListener("click", () => dots.cancel());
  byId("clear").addEventListener("click", () => {
    dots.clear();
    showDots();
    remember();
  });
  byId("link").addEventListener("click", copyLink);
  byId("png").addEventListener("click", () => png(answer));
  byId("csv").addEventListener("click", () => csv(answer, dots.list, dots.again));
  byId("py").addEventListener("click", () => python(answer, dots.again));
  byId("table").addEventListener("toggle", fillTable);
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  byId("skip").addEventListener("click", () => byId("controls").focus());
  addEventListener("hashchange", (event) => open(event.newURL)); // the bar itself may have been rewritten since
  addEventListener("dragover", (event) => event.dataTransfer?.types.includes("Files") && event.preventDefault());
  addEventListener("drop", dropped);
  new ResizeObserver(resize).observe(byId("chart"));
  addEventListener("pagehide", () => dots.stop()); // the server notices by itself; this is sooner
  globalThis.lazyscope = { latencies, csv: () => csvText(answer, dots.list, dots.again) };
  open(location.href);
}

start().catch((failure) => fail(failure.message));
