// Numbers and elements, as the page writes them.

/** A number in few digits: 0.0012, 12.3, 1e-6. */
export function short(value, digits = 3) {
  if (value === null || !Number.isFinite(value)) return "∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-3 || size >= 1e5) return Number(value.toPrecision(digits)).toExponential().replace("e+", "e");
  return String(Number(value.toPrecision(digits)));
}

/** An element with attributes and children. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name in made && name !== "list" && name !== "form") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export const byId = (id) => document.getElementById(id);

/** Whether a control has no effect at the moment: another choice is made, or its quantity is on the axis. */
export const isIdle = (control, values) =>
  control.name === values.axis || Object.entries(control.when ?? {}).some(([name, value]) => String(values[name]) !== String(value));

/** Call a function when nothing has asked for it for some milliseconds, or when the first to ask has waited for `most`. */
export function calm(wait, action, most = Infinity) {
  let timer = 0;
  let first = 0;
  const act = () => {
    timer = 0;
    action();
  };
  return () => {
    const now = performance.now();
    if (timer === 0) first = now;
    clearTimeout(timer);
    timer = setTimeout(act, Math.max(0, Math.min(wait, first + most - now)));
  };
}
