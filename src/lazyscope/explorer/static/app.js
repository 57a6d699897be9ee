// The page: which view, which state, and what becomes of a slider that moves.

import { build, State } from "./controls.js";
import { draw, reading, resize, table, wipe } from "./chart.js";
import { addresses, csv, csvText, png, python, pythonText } from "./downloads.js";
import { Dots } from "./dots.js";
import { byId, calm, element } from "./format.js";
import { atMoment, showHeat } from "./heat.js";
import { startLook } from "./look.js";
import { source } from "./source.js";
import { bring, learn, takesFiles } from "./tables.js";
import { startTour } from "./tour.js";

const PATIENCE = 400; // milliseconds without an answer after which the page says that it computes
const COMPUTING = "Computing …";
const SLOW = 150; // milliseconds after which a newer state does not wait for the answer to an older one

let views = [];
let state = null;
let answer = null;
const latencies = []; // from an input to its picture, for whoever measures
const dots = new Dots(() => showDots());

// -- from a state to its picture -------------------------------------------------------------------------

const flying = new Set(); // the requests that are under way
const MOST_FLYING = 2; // a second leaves before the first is back, so that a slider in motion does not wait for two
let waiting = null; // when the latest change that no request carries yet was made
let asked = 0; // how many requests were made
let drawn = 0; // the number of the request on the screen: an older one comes too late

function change(group) {
  if (group === "time" && answer?.frames) return void moveInTime();
  if (group !== "view") linkNotes = [];
  if (group === "theory" || group === "dots") dots.clear();
  waiting ??= performance.now();
  document.documentElement.dataset.wanted = address(); // what is wanted, and what is drawn: tests wait for the two to meet
  remember();
  if (flying.size < MOST_FLYING) return void ask();
  const [oldest] = flying;
  if (performance.now() - oldest.began > SLOW) oldest.controller.abort();
}

async function ask() {
  const changed = waiting;
  waiting = null;
  const mine = { number: ++asked, controller: new AbortController(), began: performance.now(), view: state.view.name, wanted: address() };
  flying.add(mine);
  const long = setTimeout(() => (byId("reading").textContent = COMPUTING), PATIENCE);
  const timely = () => {
    if (mine.number < drawn || mine.view !== state.view.name) return false;
    drawn = mine.number;
    return true;
  };
  const arrived = () => {
    const latest = waiting === null && mine.number === asked; // a moment may have passed since
    if (drawn === mine.number) document.documentElement.dataset.drawn = latest ? address() : mine.wanted;
  };
  try {
    const found = await source.lines(mine.view, state.query(), mine.controller.signal);
    if (timely()) {
      await show(found, changed);
      arrived();
    }
  } catch (failure) {
    if (failure.name !== "AbortError" && timely()) {
      empty(failure.message);
      arrived();
    }
  } finally {
    clearTimeout(long);
    flying.delete(mine);
    if (waiting !== null && flying.size < MOST_FLYING) ask();
  }
}

/** Another moment of the answer on the screen. */
function moveInTime() {
  answer = atMoment(answer, state.values);
  showHeat(answer);
  draw(answer, dots.list);
  read();
  const root = document.documentElement.dataset;
  root.wanted = address();
  if (flying.size === 0) root.drawn = root.wanted;
  later();
  remember();
}

async function show(found, changed) {
  const first = answer?.view !== found.view || byId("reading").textContent === COMPUTING;
  answer = atMoment(found, state.values);
  fail("");
  offer();
  if (answer.table) {
    learn(answer.table);
    state.show();
  }
  if (answer.kept && !answer.lines.length && !dots.list.length && !dots.running) dots.take(answer.kept);
  showHeat(answer);
  read();
  await draw(answer, dots.list);
  requestAnimationFrame(() => setTimeout(() => latencies.push(performance.now() - changed)));
  if (first) {
    describe();
    prefetch();
  } else later();
}

/** What the picture says in words goes with its lines; it is read aloud when they rest. */
function read() {
  byId("reading").setAttribute("aria-live", "off"); // nobody listens to a film
  byId("reading").textContent = reading(answer, dots.list);
}

/** When the page has nothing else to do, ask for the other views: the first answer of some takes seconds. */
const prefetch = calm(1500, async () => {
  if (!source.live) return;
  for (const view of views) {
    if (waiting !== null || flying.size) return void prefetch();
    await source.lines(view.name, new State(view).query()).catch(() => {});
  }
});

/** What stands below the picture follows when the slider rests, or a quarter of a second behind one that does not. */
const later = calm(120, describe, 250);

function describe() {
  if (!answer) return;
  if (!state.playing) byId("reading").setAttribute("aria-live", "polite");
  byId("reading").textContent = reading(answer, dots.list);
  const notes = [...linkNotes, ...answer.notes, ...dots.notes];
  byId("notes").replaceChildren(...notes.map((note) => element("li", { className: note.about === "Advice" ? "advice" : "" }, element("strong", {}, `${note.about}: `), note.message)));
  byId("claims").replaceChildren(...answer.claims.flatMap(claimItems));
  byId("command").textContent = [answer.command, dots.again?.command].filter(Boolean).join("\n");
  byId("python").textContent = pythonText(answer, dots.again);
  byId("address").replaceChildren(...addresses(answer, dots.list).map(addressItem));
  if (byId("table").open) fillTable();
}

function claimItems(claim) {
  const about = [claim.theorem, ...claim.assumptions, claim.citations.join(", ")];
  if (claim.erratum) about.push(`Erratum: ${claim.erratum}`);
  return [element("dt", {}, claim.title), ...about.map((text) => element("dd", {}, text))];
}

/** A number's address: a link where a server stands behind it. */
function addressItem(address) {
  return element("li", {}, source.live ? element("a", { href: address, target: "_blank", rel: "noopener" }, address) : element("code", {}, address));
}

function fillTable() {
  if (answer) byId("table").querySelector(".scroll").replaceChildren(table(answer, dots.list));
}

/** Leave no number of another state standing, on the screen or in a file: an empty frame, and why it is empty. */
function empty(message, reading = "") {
  answer = null;
  wipe();
  showHeat(null);
  byId("reading").textContent = reading;
  for (const part of ["notes", "claims", "command", "python", "address"]) byId(part).replaceChildren();
  byId("table").querySelector(".scroll").replaceChildren();
  fail(message);
  offer();
}

/** What can be taken away, or dropped on, is the answer on the screen; what is said of dots is of those on it. */
function offer() {
  for (const id of ["link", "png", "csv", "py"]) byId(id).disabled = answer === null;
  byId("drop").disabled = answer === null || dots.running;
  byId("cancel").hidden = byId("progress").hidden = !dots.running;
  byId("clear").hidden = dots.running || dots.list.length === 0;
  byId("status").textContent = dots.status;
}

function fail(message) {
  byId("failure").hidden = message === "";
  byId("failure").textContent = message;
}

// -- dots ----------------------------------------------------------------------------------------------

let drawing = false;

function showDots() {
  const { progress } = dots;
  offer();
  const bar = byId("progress");
  if (progress?.total) Object.assign(bar, { max: progress.total, value: progress.done });
  else bar.removeAttribute("value");
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
  else if (answer?.kept) dots.take(answer.kept);
  else {
    dots.clear();
    dots.status = "This page has no dots for these values: it keeps those of the values it opens with.";
    showDots();
  }
  remember();
}

// -- links -----------------------------------------------------------------------------------------------

const address = () => `${state.view.name}?${state.query()}`;
const hash = () => `#${address()}${dots.list.length || dots.running ? "&dots=true" : ""}`;

const remember = calm(250, () => history.replaceState(null, "", hash()));

let linkNotes = []; // what the link that opened this state asked for in vain

/** Show what an address says: a view, its state, and its dots if it had any. */
function open(url) {
  const [name, query = ""] = new URL(url).hash.slice(1).split("?");
  const known = views.find((one) => one.name === name);
  const view = known ?? views[0];
  const said = new URLSearchParams(query);
  const moved = state?.view.name !== view.name;
  dots.clear();
  state = new State(view, change);
  const wrong = known ? state.read(said) : name ? [`There is no view ${name}. Shown instead: ${view.title}.`] : [];
  linkNotes = wrong.map((message) => ({ about: "The link", message }));
  if (moved) {
    empty("", COMPUTING);
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
  byId("png").addEventListener("click", () => answer && png(answer));
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
  globalThis.lazyscope = { latencies, csv: () => (answer ? csvText(answer, dots.list, dots.again) : "") };
  startTour();
  open(location.href);
}

start().catch((failure) => fail(failure.message));
