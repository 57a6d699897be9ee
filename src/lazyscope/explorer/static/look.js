// How the page looks: light or dark, normal or large; kept for the next visit where the browser keeps anything.

import { refresh } from "./chart.js";
import { byId } from "./format.js";

/** What was chosen before, by its name; null where nothing was, or where nothing is kept. */
export function recall(name) {
  try {
    return localStorage.getItem(`lazyscope-${name}`);
  } catch {
    return null;
  }
}

/** Keep a choice; null forgets it. */
export function keep(name, value) {
  try {
    if (value === null) localStorage.removeItem(`lazyscope-${name}`);
    else localStorage.setItem(`lazyscope-${name}`, value);
  } catch {
    // a page from a file, or a private window: it looks as usual next time
  }
}

function look(theme, size) {
  const root = document.documentElement;
  root.dataset.theme = theme;
  root.dataset.size = size;
  byId("theme").setAttribute("aria-pressed", String(theme === "dark"));
  byId("size").setAttribute("aria-pressed", String(size === "large"));
  refresh();
}

export function startLook() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement.dataset;
  const usual = () => (dark.matches ? "dark" : "light");
  look(recall("theme") ?? usual(), recall("size") ?? "normal");
  dark.addEventListener("change", () => look(recall("theme") ?? usual(), root.size));
  byId("theme").addEventListener("click", () => {
    look(root.theme === "dark" ? "light" : "dark", root.size);
    keep("theme", root.theme === usual() ? null : root.theme);
  });
  byId("size").addEventListener("click", () => {
    look(root.theme, root.size === "large" ? "normal" : "large");
    keep("size", root.size);
  });
}
