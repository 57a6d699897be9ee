// The tour of the first visit: four steps, each beside the part of the page that it is about.

import { byId } from "./format.js";
import { keep, recall } from "./look.js";

const STEPS = [
  ["#views", "Ten questions", "Each view is one: what lazy training costs, what training does in time, your own data."],
  ["#controls", "Move a slider", "The lines are theory and follow at once. Presets set several sliders together."],
  ["#drop", "Drop dots", "Networks of finite size, computed on your machine, land on the lines with bars of two standard errors."],
  ["#link", "Take it away", "A link to exactly this picture, its numbers and its Python. Below stand theorem, command and JSON address."],
];
let step = 0;

function mark(selector) {
  for (const part of document.querySelectorAll(".toured")) part.classList.remove("toured");
  if (selector) document.querySelector(selector).classList.add("toured");
}

function showStep() {
  const [selector, title, text] = STEPS[step];
  byId("tour-title").textContent = `${step + 1} of ${STEPS.length}: ${title}`;
  byId("tour-text").textContent = text;
  byId("tour-next").textContent = step === STEPS.length - 1 ? "Done" : "Next";
  byId("tour-back").disabled = step === 0;
  mark(selector);
  document.querySelector(selector).scrollIntoView({ block: "nearest" });
}

function endTour() {
  byId("tour").hidden = true;
  mark(null);
  keep("tour", "seen");
  byId("help").focus();
}

function beginTour() {
  step = 0;
  byId("tour").hidden = false;
  showStep();
  byId("tour-next").focus();
}

/** Show it on the first visit, and whenever it is asked for; a link to a picture opens the picture. A page inside another one
 * does not begin by itself: it would take the focus, and the reader of the outer page would be scrolled to it. */
export function startTour() {
  byId("help").addEventListener("click", beginTour);
  byId("tour-end").addEventListener("click", endTour);
  byId("tour-back").addEventListener("click", () => {
    step -= 1;
    showStep();
  });
  byId("tour-next").addEventListener("click", () => {
    if (step === STEPS.length - 1) return void endTour();
    step += 1;
    showStep();
  });
  addEventListener("keydown", (event) => event.key === "Escape" && !byId("tour").hidden && endTour());
  if (recall("tour") === null && location.hash === "" && window.parent === window) beginTour();
}
