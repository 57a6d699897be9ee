// The picture: lines of theory, dots of finite networks.

import { byId, calm, element, short } from "./format.js";

const DASH = { solid: "solid", dash: "dash", dot: "dot" };
const SYMBOL = { exact: "x-thin-open", simulate: "circle" };
const KIND = { exact: "exact, this d", simulate: "simulated" };
const BAR = 2; // standard errors from a dot to an end of its bar
const OPTIONAL = new Set(["bias", "variance", "train"]); // dots of these show where their line does

const colours = new Map();

function colour(name) {
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return colours.get(name);
}

const rootSize = () => parseFloat(getComputedStyle(document.documentElement).fontSize);

/** A width in pixels, larger where letters are: a lecture hall is to see lines, too. */
const thick = (pixels) => pixels * Math.max(1, rootSize() / 16);

const axisName = (panel) => (panel === 0 ? "y" : `y${panel + 1}`);

/** Whether a colour stands for the same thing in a panel above, where the legend names it. */
const named = (answer, line) => answer.lines.some((other) => other.panel < line.panel && other.role === line.role);

function lineTraces(answer) {
  return answer.lines.map((line) => ({
    showlegend: !named(answer, line),
    x: line.x,
    y: line.y,
    name: line.name,
    yaxis: axisName(line.panel),
    mode: "lines",
    line: { color: colour(line.role), dash: DASH[line.dash], width: thick(line.dash === "solid" ? 3 : 2) },
    hovertemplate: "%{y:.4~g}",
  }));
}

/** Places that mean something, as vertical lines from bottom to top. */
function markTraces(answer) {
  return answer.marks.map((mark, i) => ({
    ...markLine(mark),
    name: mark.label,
    xaxis: "x9",
    yaxis: "y9",
    mode: "lines",
    line: { color: colour("soft"), dash: ["dot", "dash", "longdashdot"][i % 3], width: thick(1.5) },
    hoverinfo: "skip",
  }));
}

/** The band around a line, where it has one: up one side and down the other. */
function bandOf(line) {
  const places = line.x.map((_, i) => i).filter((i) => line.low[i] !== null && line.high[i] !== null);
  const back = [...places].reverse();
  return { x: [...places, ...back].map((i) => line.x[i]), y: [...places.map((i) => line.high[i]), ...back.map((i) => line.low[i])] };
}

const banded = (answer) => answer.lines.filter((line) => line.low);

function bandTraces(answer) {
  return banded(answer).map((line) => ({
    ...bandOf(line),
    name: `${line.name}, band`,
    yaxis: axisName(line.panel),
    mode: "none",
    fill: "toself",
    fillcolor: `${colour(line.role)}2b`,
    hoverinfo: "skip",
    showlegend: false,
  }));
}

/** Where a panel has no lines, its axes are drawn all the same: Plotly leaves out those that nothing stands on. */
function frameTraces(answer) {
  const bare = answer.panels.map((_, i) => i).filter((i) => !answer.lines.some((line) => line.panel === i));
  return bare.map((i) => ({ x: [null], y: [null], yaxis: axisName(i), mode: "markers", showlegend: false, hoverinfo: "skip" }));
}

const markLine = (mark) => ({ x: [mark.x, mark.x], y: [0, 1] });

/** Dots of one name and fidelity in one trace, and one entry of the legend for each fidelity. */
function dotTraces(answer, dots) {
  const here = new Set(answer.lines.map((line) => line.role));
  const lonely = (one) => !here.has(one.role); // dots without a line: only the legend says whose they are
  const traces = new Map();
  for (const one of dots) {
    if (OPTIONAL.has(one.role) && !here.has(one.role)) continue;
    const key = `${one.name}|${one.fidelity}|${one.panel}`;
    if (!traces.has(key)) traces.set(key, { ...dotTrace(one), showlegend: lonely(one) });
    const trace = traces.get(key);
    trace.x.push(...one.x);
    trace.y.push(...one.y);
    trace.error_y.array.push(...one.stderr.map((value) => BAR * (value ?? 0)));
  }
  const kinds = [...new Set(dots.filter((one) => !lonely(one)).map((one) => one.fidelity))];
  const keys = kinds.map((kind) => ({
    x: [null],
    y: [null],
    name: `${answer.table ? "measured, other rows" : KIND[kind]}${kind === "simulate" ? ` ± ${BAR} s.e.` : ""}`,
    mode: "markers",
    marker: marker(kind, colour("ink")),
    hoverinfo: "skip",
  }));
  return [...traces.values(), ...keys];
}

function dotTrace(one) {
  return {
    x: [],
    y: [],
    name: `${one.name}, ${one.fidelity}`,
    yaxis: axisName(one.panel),
    mode: "markers",
    marker: marker(one.fidelity, colour(one.role)),
    error_y: { type: "data", array: [], color: colour(one.role), thickness: thick(1.2), width: thick(3) },
    hovertemplate: "%{y:.4~g}",
  };
}

function marker(kind, color) {
  const size = 0.55 * rootSize();
  const line = kind === "exact" ? { color, width: thick(2) } : { color: colour("paper"), width: 1 };
  return { symbol: SYMBOL[kind], size: kind === "exact" ? 1.3 * size : size, color, line };
}

function layoutOf(answer) {
  const root = rootSize();
  const narrow = window.innerWidth < 600;
  const font = { family: getComputedStyle(document.body).fontFamily, size: 0.85 * root, color: colour("ink") };
  const layout = {
    font,
    paper_bgcolor: colour("paper"),
    plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: narrow ? 48 : 3.9 * root, r: 1.5 * root, t: 8, b: 3 * root }, // right: half of a last label, 10000
    hovermode: "x unified",
    hoverlabel: { bgcolor: colour("panel"), font: { ...font, color: colour("ink") } },
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { size: (narrow ? 0.8 : 0.9) * root } },
    xaxis: {
      ...axis(answer.x, spanOf(answer.lines.flatMap((line) => [line.x[0], line.x[line.x.length - 1]])), room(byId("chart").clientWidth - 4 * root, 2.8)),
      tickangle: 0,
      title: { text: answer.x.label, standoff: 6 },
      anchor: axisName(answer.panels.length - 1),
    },
    yaxis9: { domain: [0, 1], range: [0, 1], visible: false, fixedrange: true, anchor: "x9" }, // of the marks
    uirevision: answer.view,
  };
  layout.xaxis9 = { type: layout.xaxis.type, matches: "x", visible: false, anchor: "y9" }; // else their frame has a grid, above the lines
  const count = answer.panels.length;
  answer.panels.forEach((panel, i) => {
    const top = 1 - i / count;
    layout[i === 0 ? "yaxis" : `yaxis${i + 1}`] = {
      ...axis(panel, spanOf(answer.lines.filter((line) => line.panel === i).flatMap((line) => line.y)), room(byId("chart").clientHeight / count, 1.8)),
      title: { text: panel.label, standoff: 8 },
      domain: [top - 1 / count + (i < count - 1 ? 0.09 : 0), top], // between panels, room for the last label of the one and the first of the other
      automargin: true,
    };
  });
  return layout;
}

/** How many labels fit along an axis of the chart, in units of the font: wide for numbers in a row, low for a column. */
const room = (pixels, ems) => Math.max(2, Math.floor(pixels / (ems * rootSize())));

/** The smallest and the largest of some numbers, those that are there. */
function spanOf(values) {
  const real = values.filter((value) => value !== null && value > 0);
  return real.length ? [Math.min(...real), Math.max(...real)] : [1, 10];
}

/** 1, 2 and 5 of every decade, or the decades, or every other of them: as many as can be read beside each other. */
function ticks([low, high], most) {
  const first = Math.floor(Math.log10(low)) - 1;
  const last = Math.ceil(Math.log10(high)) + 1;
  const decades = Math.log10(high / low);
  const parts = 3 * decades < Math.min(most, 10) ? [1, 2, 5] : [1];
  const stride = Math.ceil(decades / most);
  const values = [];
  for (let k = first; k <= last; k++) if (k % stride === 0) values.push(...parts.map((part) => Number((part * 10 ** k).toPrecision(2))));
  const inside = values.filter((value) => value >= low && value <= high);
  const powers = parts.length === 1 && inside.some((value) => short(value).includes("e"));
  return { tickmode: "array", tickvals: values, ticktext: values.map(powers ? power : (value) => short(value)) };
}

/** 10⁵: a power of ten, for an axis that goes beyond what is easily read in digits. */
const power = (value) => `10${[...String(Math.round(Math.log10(value)))].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit] ?? "⁻").join("")}`;

function axis(one, span, most) {
  const range = one.range && (one.log ? one.range.map((value) => Math.log10(value)) : one.range);
  return {
    type: one.log ? "log" : "linear",
    ...(range ? { range, autorange: false } : { autorange: true }),
    ...(one.log ? ticks(one.range ?? span, most) : { nticks: Math.min(most, 8) }),
    gridcolor: colour("grid"),
    linecolor: colour("edge"),
    zeroline: false,
    showline: true,
    ticks: "outside",
    tickcolor: colour("edge"),
  };
}

let frame = ""; // what the axes, the legend and the marks on the screen were drawn for
let ranges = []; // of its panels
let latest = null;

/** Draw an answer with its dots; resolves when it is in the document. */
export function draw(answer, dots) {
  latest = { answer, dots };
  if (byId("chart")._fullLayout) Plotly.Fx.unhover(byId("chart")); // a label beside the pointer has numbers of before
  const names = [...answer.lines, ...answer.marks].map((one) => [one.name ?? one.label, one.panel, one.dash]);
  const panels = answer.panels.map(({ range, ...panel }) => panel); // its end may wait while the lines are inside
  const wanted = JSON.stringify([answer.x, panels, names]);
  if (wanted === frame && dots.length === 0 && !outgrown(answer) && move(answer)) return void settle();
  frame = dots.length === 0 ? wanted : "";
  return redraw();
}

/** Whether a line has points that its panel shall show and that are beyond the range which was drawn last. */
function outgrown(answer) {
  const inside = (y, [low, high]) => y >= low && y <= high;
  return answer.lines.some((line) => {
    const [drawn, wanted] = [ranges[line.panel], answer.panels[line.panel].range];
    if (!drawn || !wanted) return false;
    return line.y.some((y) => y !== null && inside(y, wanted) && !inside(y, drawn));
  });
}

/** Draw the latest answer as Plotly does, axes and all. */
export function redraw() {
  if (!latest) return undefined;
  const { answer, dots } = latest;
  ranges = answer.panels.map((panel) => panel.range);
  const traces = [...bandTraces(answer), ...lineTraces(answer), ...markTraces(answer), ...dotTraces(answer, dots), ...frameTraces(answer)];
  return Plotly.react(byId("chart"), traces, layoutOf(answer), { displayModeBar: false });
}

/** While a slider moves, only paths change: writing them takes a millisecond, where Plotly goes through everything. */
function move(answer) {
  const { _fullLayout: layout, _fullData: data } = byId("chart");
  const curves = [...banded(answer).map(bandOf), ...answer.lines, ...answer.marks.map(markLine)];
  if (!data || data.length !== curves.length) return false;
  const kind = (trace) => (trace.fill === "toself" ? "js-fill" : "js-line");
  const found = data.map((trace) => byId("chart").querySelectorAll(`.trace${trace.uid} path.${kind(trace)}`));
  if (found.some((paths) => paths.length !== 1)) return false;
  curves.forEach((one, i) => found[i][0].setAttribute("d", path(one, layout.xaxis, layout[data[i].yaxis.replace("y", "yaxis")])));
  return true;
}

/** A curve as SVG writes it, lifted where there is no number. */
function path(one, across, up) {
  let [pen, text] = ["M", ""];
  one.x.forEach((x, k) => {
    if (one.y[k] === null) pen = "M";
    else {
      text += `${pen}${across.d2p(x).toFixed(2)},${up.d2p(one.y[k]).toFixed(2)}`;
      pen = "L";
    }
  });
  return text || "M0,0";
}

/** When it rests, Plotly learns what is on the screen. */
const settle = calm(150, redraw);

/** Draw everything anew: colours or sizes have changed. */
export function refresh() {
  colours.clear();
  return redraw();
}

/** Fit the frame, which notes below it and the window may have changed. */
export const resize = calm(60, () => latest && Promise.resolve(Plotly.Plots.resize(byId("chart"))).then(redraw));

/** An empty frame, while the first answer of a view is on its way. */
export function wipe() {
  latest = null;
  frame = "";
  Plotly.purge(byId("chart"));
}

/** The picture in one sentence, for those who do not see it: the lines at the place that says most, or the middle. */
export function reading(answer, dots = []) {
  if (answer.reading) return answer.reading;
  const some = answer.lines.filter((line) => line.x.length > 2);
  if (!some.length) return readDots(answer, dots);
  const grid = some[0].x;
  const middle = answer.at ?? (answer.x.log ? Math.sqrt(grid[0] * grid[grid.length - 1]) : (grid[0] + grid[grid.length - 1]) / 2);
  const parts = answer.lines.map((line) => {
    const i = line.x.reduce((best, x, k) => (Math.abs(x - middle) < Math.abs(line.x[best] - middle) ? k : best), 0);
    return `${line.name} ${short(line.y[i])}`;
  });
  const nearest = grid.reduce((best, x) => (Math.abs(x - middle) < Math.abs(best - middle) ? x : best));
  return `At ${answer.x.label.split(",")[0]} = ${short(nearest)}: ${parts.join(", ")}.`;
}

/** The same for dots without lines: those in the middle. */
function readDots(answer, dots) {
  const places = [...new Set(dots.flatMap((one) => one.x))].sort((a, b) => a - b);
  if (!places.length) return "";
  const middle = places[Math.floor(places.length / 2)];
  const here = dots.filter((one) => one.x.includes(middle));
  const parts = here.map((one) => `${one.name} ${short(one.y[one.x.indexOf(middle)])} ± ${short(one.stderr[one.x.indexOf(middle)] ?? 0, 2)}`);
  return `At ${answer.x.label.split(",")[0]} = ${short(middle)}: ${parts.join(", ")}.`;
}

/** All numbers of the picture as a table: lines by their places, a column each, and the dots below. */
export function table(answer, dots) {
  const names = [...new Set([...answer.lines, ...dots].map((one) => one.name))];
  const grid = [...new Set(answer.lines.flatMap((line) => line.x))].sort((a, b) => a - b);
  const columns = names.map((name) => new Map(answer.lines.filter((line) => line.name === name).flatMap((line) => line.x.map((x, i) => [x, line.y[i]]))));
  const head = element("tr", {}, ...[answer.x.label, ...names].map((name) => element("th", { scope: "col" }, name)));
  const rows = grid.map((x) =>
    element("tr", {}, ...[x, ...columns.map((column) => column.get(x))].map((value) => element("td", {}, value === undefined ? "" : short(value, 5)))));
  for (const one of dots)
    one.x.forEach((x, i) => {
      const error = one.stderr[i] === null ? "" : ` ± ${short(one.stderr[i], 2)}`;
      const cells = names.map((name) => (name === one.name ? `${short(one.y[i], 4)}${error} (${one.fidelity})` : ""));
      rows.push(element("tr", {}, element("td", {}, short(x, 5)), ...cells.map((text) => element("td", {}, text))));
    });
  const caption = element("caption", {}, dots.length ? "± is one standard error." : answer.problem);
  return element("table", {}, caption, element("thead", {}, head), element("tbody", {}, ...rows));
}
