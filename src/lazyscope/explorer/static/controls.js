// Controls made from a view's description, and the state that they hold.

import { element, isIdle, short } from "./format.js";
import { column, files } from "./tables.js";

const GROUPS = { time: "Time", theory: "Theory", picture: "Picture", dots: "Dots" };
const FRAMES = 120; // from one end of a time to the other
const BEAT = 60; // milliseconds from one to the next
const LOW_LEVEL = -2;
const HIGH_LEVEL = 3;

/** The state of a view: values by name, from its defaults, a link and its controls. */
export class State {
  constructor(view, onChange) {
    this.view = view;
    this.onChange = onChange;
    this.values = Object.fromEntries(view.controls.map((control) => [control.name, control.default]));
    this.shown = [];
  }

  /** Take over what a link says; returns a line for each part of it that the view cannot show. */
  read(query) {
    const controls = new Map(this.view.controls.map((control) => [control.name, control]));
    const wrong = [];
    for (const [name, text] of query) {
      const control = controls.get(name);
      if (!control) {
        if (name !== "dots") wrong.push(`It has ${name} = ${text}, which this view does not know.`);
        continue;
      }
      const { value, must } = readValue(control, text);
      if (must === undefined) this.values[name] = value;
      else wrong.push(`It has ${name} = ${text}, which must be ${must}. Shown with ${this.values[name]}.`);
    }
    return wrong;
  }

  query() {
    return new URLSearchParams(Object.entries(this.values).map(([name, value]) => [name, String(value)])).toString();
  }

  set(name, value) {
    this.values[name] = value;
    this.show();
    this.onChange(this.view.controls.find((control) => control.name === name).group);
  }

  apply(values) {
    Object.assign(this.values, values);
    this.show();
    this.onChange("theory");
  }

  show() {
    for (const one of this.shown) one();
  }
}

/** The value that a link's text stands for, or what it must be. What the page cannot know is the server's to refuse. */
function readValue(control, text) {
  if (["linear", "log", "time"].includes(control.kind)) {
    const value = Number(text);
    const least = control.zero ? 0 : control.low;
    if (text.trim() === "" || !(value >= least && value <= control.high)) return { must: `between ${least} and ${control.high}` };
    if (isWhole(control) && !Number.isInteger(value)) return { must: "a whole number" };
    return { value };
  }
  if (control.kind === "switch") return ["true", "false"].includes(text) ? { value: text === "true" } : { must: "true or false" };
  if (control.kind === "choice") return control.choices.includes(text) ? { value: text } : { must: `one of ${control.choices.join(", ")}` };
  return { value: text };
}

/** Fill the form with a view's presets and controls. */
export function build(form, state) {
  player?.stop();
  const parts = [];
  if (state.view.presets.length) {
    const buttons = state.view.presets.map((preset) => {
      const button = element("button", { type: "button" }, preset.name);
      button.addEventListener("click", () => state.apply(preset.state));
      return button;
    });
    const group = element("div", { className: "presets" }, ...buttons);
    parts.push(element("fieldset", {}, element("legend", {}, "Presets"), group));
  }
  for (const [group, title] of Object.entries(GROUPS)) {
    const some = state.view.controls.filter((control) => control.group === group);
    if (some.length) parts.push(element("fieldset", {}, element("legend", {}, title), ...some.map((one) => row(one, state))));
  }
  form.replaceChildren(...parts);
  state.show();
}

function row(control, state) {
  const make = { linear: slider, log: slider, choice, switch: toggle, levels, file: files, column, time }[control.kind];
  const made = make(control, state);
  made.title = control.help;
  const hint = element("p", { className: "hint", hidden: true }, "Has no effect on this picture.");
  made.append(hint);
  state.shown.push(() => {
    const idle = isIdle(control, state.values);
    made.hidden = idle && Object.values(control.when ?? {}).some((value) => typeof value === "string"); // another question's
    if (hint.hidden === !idle) return;
    hint.hidden = !idle;
    made.classList.toggle("idle", idle);
    for (const input of made.querySelectorAll("input, select")) input.disabled = idle;
  });
  return made;
}

/** A number in six digits, 1.047e-6 where zeros would not leave room for them. */
function tidied(value) {
  const kept = Number(Number(value).toPrecision(6));
  return kept !== 0 && Math.abs(kept) < 1e-3 ? kept.toExponential() : String(kept);
}

/** A slider and the number itself: the one for a feeling, the other for a value. */
function slider(control, state) {
  const id = `c-${control.name}`;
  const scale = scaleOf(control);
  const range = element("input", { type: "range", id, min: scale.low, max: scale.high, step: scale.step });
  const number = element("input", { type: "number", step: "any", "aria-label": `${control.label}, as a number` });
  if (control.stops) number.readOnly = true;
  else number.title = `${control.zero ? "0, or " : ""}${short(control.low)} to ${short(control.high)}`;
  const clamped = element("p", { className: "hint", role: "status", hidden: true });
  const least = control.zero ? 0 : control.low;
  let end; // where a number beyond the range was put
  range.addEventListener("input", () => state.set(control.name, scale.value(Number(range.value))));
  number.addEventListener("change", () => {
    if (number.value.trim() === "" || !Number.isFinite(Number(number.value))) return void (number.value = tidied(state.values[control.name]));
    const asked = Number(number.value);
    const value = Math.min(control.high, Math.max(least, asked));
    end = value === asked ? undefined : value;
    clamped.textContent = `${short(value)} is the ${asked > value ? "most" : "least"} here.`;
    state.set(control.name, isWhole(control) ? Math.round(value) : value);
    number.value = tidied(state.values[control.name]);
  });
  /** A step of a key; where it would be less than one, or would stay between zero and the least number, to the next. */
  const nudge = (way) => {
    const now = state.values[control.name];
    const step = scale.step === "any" ? (scale.high - scale.low) / 100 : scale.step;
    let value = scale.value(Math.min(scale.high, Math.max(scale.low, Number(range.value) + way * step)));
    if (value === now && isWhole(control)) value = Math.min(control.high, Math.max(least, now + way));
    else if (value === now && control.zero && now <= control.low) value = way > 0 ? control.low : 0;
    state.set(control.name, value);
  };
  number.addEventListener("keydown", (event) => {
    const way = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!way || number.readOnly) return;
    event.preventDefault(); // the browser would go by 1, which is from end to end of some
    if (Number(number.value) !== Number(tidied(state.values[control.name]))) number.dispatchEvent(new Event("change"));
    nudge(way);
    number.value = tidied(state.values[control.name]);
  });
  range.addEventListener("keydown", (event) => {
    const way = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (!way || control.stops || control.kind !== "log") return;
    event.preventDefault(); // the browser would be put back where a step comes to nothing
    nudge(way);
  });
  const made = element("div", { className: "control" }, element("label", { htmlFor: id }, control.label), number, range, clamped);
  state.shown.push(() => {
    const value = state.values[control.name];
    clamped.hidden = value !== end; // until it is moved, by whatever moves it
    range.value = scale.place(value);
    range.setAttribute("aria-valuetext", short(value, 4));
    if (document.activeElement !== number) number.value = tidied(value);
  });
  return made;
}

let player = null; // of the view on the screen, if it has a time

/** A slider that plays: from where it stands to its end, or from its beginning where it stands there. */
function time(control, state) {
  const made = slider(control, state);
  const button = element("button", { type: "button", id: "play" }, "Play");
  const scale = scaleOf(control);
  const mine = { timer: 0, stop: () => tell(clearInterval(mine.timer) ?? 0) };
  const tell = (timer) => {
    mine.timer = timer;
    button.textContent = timer ? "Pause" : "Play";
    state.playing = Boolean(timer);
  };
  const step = () => {
    const place = Math.min(scale.high, scale.place(state.values[control.name]) + (scale.high - scale.low) / FRAMES);
    state.set(control.name, scale.value(place));
    if (place === scale.high) mine.stop();
  };
  button.addEventListener("click", () => {
    if (mine.timer) return void mine.stop();
    if (scale.place(state.values[control.name]) > scale.high - 0.01) state.set(control.name, control.low);
    tell(setInterval(step, BEAT));
  });
  player = mine;
  made.append(button);
  return made;
}

const isWhole = (control) => control.step >= 1 && Number.isInteger(control.default) && Number.isInteger(control.step);

/** How the positions of a slider and its values belong together: equal steps, equal ratios, or given stops. */
function scaleOf(control) {
  if (control.stops) {
    const nearest = (value) =>
      control.stops.reduce((best, stop, i) => (Math.abs(stop - value) < Math.abs(control.stops[best] - value) ? i : best), 0);
    return { low: 0, high: control.stops.length - 1, step: 1, value: (i) => control.stops[i], place: nearest };
  }
  if (control.kind === "linear") {
    const tidy = (value) => Number(value.toFixed(6));
    return { low: control.low, high: control.high, step: control.step || "any", value: tidy, place: (value) => value };
  }
  const [a, b] = [Math.log10(control.low), Math.log10(control.high)];
  const step = 0.02;
  const low = control.zero ? a - 5 * step : a;
  const tidy = isWhole(control) ? (value) => Number(Math.round(value).toPrecision(4)) : (value) => Number(value.toPrecision(4));
  return {
    low,
    high: b,
    step,
    value: (place) => (place < a - step ? 0 : tidy(10 ** Math.min(b, Math.max(a, place)))),
    place: (value) => (value > 0 ? Math.log10(value) : low),
  };
}

function choice(control, state) {
  const id = `c-${control.name}`;
  const select = element("select", { id }, ...control.choices.map((value, i) => element("option", { value }, control.names?.[i] ?? value)));
  select.addEventListener("change", () => state.set(control.name, select.value));
  state.shown.push(() => (select.value = state.values[control.name]));
  return element("div", { className: "control" }, element("label", { htmlFor: id }, control.label), select);
}

function toggle(control, state) {
  const id = `c-${control.name}`;
  const box = element("input", { type: "checkbox", id });
  box.addEventListener("change", () => state.set(control.name, box.checked));
  state.shown.push(() => (box.checked = state.values[control.name]));
  return element("div", { className: "control" }, element("label", { htmlFor: id }, control.label), box);
}

const DRAWN = "paper,"; // before levels that the paper's own draw is moved to

/** Levels side by side, like an equaliser: quantiles of the spectrum from smallest to largest. */
function levels(control, state) {
  const bank = element("div", { className: "levels", role: "group", "aria-label": `${control.label}, quantiles` });
  const about = element("span", { className: "about" });
  const made = element("div", { className: "control" }, element("span", {}, control.label), about, bank);
  made.append(element("div", { className: "ends" }, element("span", {}, "smallest"), element("span", {}, "largest")));
  const text = () => state.values[control.name];
  const current = () => (text() === "" ? control.paper : text().replace(DRAWN, "")).split(",").map(Number);
  const choose = (values) => {
    const drawn = text() === "" || text().startsWith(DRAWN); // it stays a draw, moved, so that nothing jumps
    const wanted = values.join(",");
    state.set(control.name, !drawn ? wanted : wanted === control.paper ? "" : DRAWN + wanted);
  };
  state.shown.push(() => {
    const values = current();
    about.textContent = text() === "" ? "as the paper draws it" : text().startsWith(DRAWN) ? "the paper's draw, moved" : "";
    if (bank.children.length !== values.length) fill(bank, control, current, choose);
    values.forEach((value, i) => {
      const [range, output] = bank.children[i].children;
      range.value = value;
      range.setAttribute("aria-valuetext", short(value));
      output.textContent = short(value, 3);
    });
  });
  return made;
}

function fill(bank, control, current, choose) {
  const count = current().length;
  const parts = [];
  for (let i = 0; i < count; i++) {
    const range = element("input", { type: "range", min: LOW_LEVEL, max: HIGH_LEVEL, step: control.step });
    range.setAttribute("aria-label", `Level ${i + 1} of ${count}`);
    range.setAttribute("aria-orientation", "vertical");
    range.disabled = Boolean(control.stops);
    range.addEventListener("input", () => {
      const values = current();
      values[i] = Number(Number(range.value).toFixed(3));
      choose(values);
    });
    parts.push(element("div", {}, range, element("output")));
  }
  bank.replaceChildren(...parts);
}
