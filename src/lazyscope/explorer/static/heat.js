// A matrix at a moment, as a table whose cells are coloured by their numbers.

import { byId, element, short } from "./format.js";

const STRONGEST = 45; // percent of a colour behind a number, so that the number can be read

/** An answer at the moment of its state: the page moves in time without asking. */
export function atMoment(answer, values) {
  const { frames } = answer;
  const now = frames && values[frames.control];
  if (!frames || now === undefined) return answer;
  const marks = answer.marks.map((mark) => (mark.label === frames.mark ? { ...mark, x: now } : mark));
  return { ...answer, marks, at: now, arguments: { ...answer.arguments, [frames.control]: now } };
}

/** Fill the heat map with an answer's matrix, or take it away. */
export function showHeat(answer) {
  const place = byId("heat");
  const frames = answer?.frames;
  place.hidden = !frames;
  if (!frames) return void place.replaceChildren();
  const near = (x) => Math.abs(x - answer.at); // as the reading has it
  const i = frames.x.reduce((best, x, k) => (near(x) < near(frames.x[best]) ? k : best), 0);
  const head = element("tr", {}, element("td"), ...frames.columns.map((name) => element("th", { scope: "col" }, name)));
  const rows = frames.rows.map((name, r) => element("tr", {}, element("th", { scope: "row" }, name), ...frames.values[i][r].map(heatCell)));
  const caption = element("caption", {}, `${frames.title}, at t = ${short(frames.x[i])}`);
  place.replaceChildren(element("table", {}, caption, element("thead", {}, head), element("tbody", {}, ...rows)));
}

function heatCell(value) {
  const made = element("td", {}, value.toFixed(2));
  const share = Math.round(STRONGEST * Math.min(1, Math.abs(value)));
  made.style.background = `color-mix(in srgb, var(--${value < 0 ? "nn" : "rf"}) ${share}%, var(--paper))`;
  return made;
}
