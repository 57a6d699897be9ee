// Tables that a user brings: a file goes to this machine's own server, and the view then names it by a key.

import { byId, element, short } from "./format.js";
import { source } from "./source.js";

const known = new Map(); // what there is to know of a table, by its key: name, rows, columns, target

/** Remember a table, as an upload or an answer describes it. */
export const learn = (table) => known.set(table.data, table);

const fileControl = (view) => view.controls.find((control) => control.kind === "file");

/** Whether a view takes files. */
export const takesFiles = (view) => source.live && fileControl(view) !== undefined;

function tell(text) {
  const place = byId("brought");
  if (place) Object.assign(place, { textContent: text, hidden: text === "" });
}

/** Send a file to the server, and show it; what is refused is said beside the button. */
export async function bring(file, state) {
  const { largest } = fileControl(state.view);
  const name = file.name;
  if (file.size > largest) {
    return void tell(`${name} has ${short(file.size / 1e6)} MB. A table must have at most ${largest / 1e6} MB.`);
  }
  tell(`Reading ${name} …`);
  try {
    const table = await source.bring(file);
    learn(table);
    tell("");
    state.apply({ data: table.data, target: "" });
  } catch (failure) {
    tell(failure.message);
  }
}

/** A choice of tables, and a place to bring one to. */
export function files(control, state) {
  const id = `c-${control.name}`;
  const select = element("select", { id });
  select.addEventListener("change", () => state.apply({ [control.name]: select.value, ...("target" in state.values ? { target: "" } : {}) }));
  state.shown.push(() => {
    const value = state.values[control.name];
    const examples = new Map(control.choices.map((choice) => [choice, choice.replaceAll("_", " ")]));
    const own = new Map([...known.values()].filter((table) => !examples.has(table.data)).map((table) => [table.data, table.name]));
    if (!examples.has(value) && !own.has(value)) own.set(value, "a file that is not here");
    const groups = [["Your files", own], ["Examples", examples]].filter(([, some]) => some.size);
    select.replaceChildren(...groups.map(([label, some]) =>
      element("optgroup", { label }, ...[...some].map(([key, name]) => element("option", { value: key }, name)))));
    select.value = value;
  });
  const row = element("div", { className: "control" }, element("label", { htmlFor: id }, control.label), select);
  if (!source.live) {
    row.append(element("p", { className: "hint" }, "A file of your own needs the server: run `lazyscope explore`."));
    return row;
  }
  const input = element("input", { type: "file", id: "file", accept: ".csv,.tsv,.npz", hidden: true });
  input.setAttribute("aria-label", "Your file");
  input.addEventListener("change", () => {
    if (input.files.length) bring(input.files[0], state);
    input.value = ""; // so that the same file can be chosen again
  });
  const button = element("button", { type: "button", id: "choose" }, "Choose a file …");
  button.addEventListener("click", () => input.click());
  const hint = `or drop it anywhere. CSV or NPZ, at most ${control.largest / 1e6} MB. It stays on this machine.`;
  const said = element("p", { id: "brought", hidden: true });
  said.setAttribute("role", "alert");
  row.append(element("div", { className: "bring" }, button, input, element("span", {}, hint), said));
  return row;
}

/** The columns of the table, of which one is predicted. */
export function column(control, state) {
  const id = `c-${control.name}`;
  const select = element("select", { id });
  select.addEventListener("change", () => state.set(control.name, select.value));
  state.shown.push(() => {
    const table = known.get(state.values.data);
    const value = state.values[control.name] || table?.target || "";
    const names = table?.columns ?? [value];
    select.replaceChildren(...names.map((name) => element("option", { value: name }, name)));
    select.value = value;
  });
  return element("div", { className: "control" }, element("label", { htmlFor: id }, control.label), select);
}
