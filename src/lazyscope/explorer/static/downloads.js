// What one can take away: the picture, the numbers, the Python.

import { redraw } from "./chart.js";
import { byId, element } from "./format.js";

function save(name, href) {
  element("a", { href, download: name }).click();
}

function saveText(name, kind, text) {
  const address = URL.createObjectURL(new Blob([text], { type: kind }));
  save(name, address);
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

export async function png(answer) {
  await redraw(); // Plotly learns of a line that moves only when it rests
  save(`lazyscope-${answer.view}.png`, await Plotly.toImage(byId("chart"), { format: "png", width: 1600, height: 1000 }));
}

const cell = (value) => (value === null || value === undefined ? "" : /[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value));

/** Where the numbers on the screen stand as JSON: the lines, then the dots of each fidelity. */
export function addresses(answer, dots) {
  const query = new URLSearchParams(Object.entries(answer.arguments).map(([name, value]) => [name, String(value)]));
  return ["limit", ...new Set(dots.map((one) => one.fidelity))].map((kind) => `/api/${kind}/${answer.view}?${query}`);
}

/** One row a point, the command that computes them again in front. */
export function csvText(answer, dots, again) {
  const lines = [answer.command, again?.command].filter(Boolean).map((command) => `# ${command}`);
  const bands = answer.lines.some((line) => line.low);
  lines.push(`kind,name,claim,x,y,stderr${bands ? ",low,high" : ""}`);
  const cells = (one, i) => [one.x[i], one.y[i], one.stderr?.[i], ...(bands ? [one.low?.[i], one.high?.[i]] : [])];
  const rows = (kind, one, claim) => one.x.map((_, i) => [kind, one.name, claim, ...cells(one, i)].map(cell).join(","));
  for (const line of answer.lines) lines.push(...rows(answer.table ? "forecast" : "limit", line, line.claim));
  for (const one of dots) lines.push(...rows(answer.table ? "measured" : one.fidelity, one, one.claim.key));
  return lines.join("\n") + "\n";
}

export function csv(answer, dots, again) {
  saveText(`lazyscope-${answer.view}.csv`, "text/csv", csvText(answer, dots, again));
}

export const pythonText = (answer, again) => answer.python + (again ? `\n# the dots\n${again.python}` : "");

export function python(answer, again) {
  saveText(`lazyscope-${answer.view}.py`, "text/x-python", pythonText(answer, again));
}
