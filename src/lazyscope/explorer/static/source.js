// Where answers come from: the server, or the tables inside an exported page.

import { isIdle } from "./format.js";

const KEPT = 200;

/** A failure to be shown: what must hold, as the library says it. */
export class Refusal extends Error {}

/** Fetch and read; a server that is gone is said to be so. */
async function get(address, options) {
  const response = await fetch(address, options).catch((failure) => {
    if (failure.name === "AbortError") throw failure;
    throw new Refusal("The server does not answer. Is `lazyscope explore` still running?");
  });
  if (response.ok) return response.json();
  const { error } = await response.json().catch(() => ({}));
  throw new Refusal(error ?? `The server answered ${response.status}.`);
}

class Server {
  live = true;
  known = new Map();

  async views() {
    return (await get("/api/views")).views;
  }

  /** The lines of a state; those of late are kept. */
  async lines(view, query, signal) {
    const address = `/api/limit/${view}?${query}`;
    if (this.known.has(address)) return this.known.get(address);
    const answer = await get(address, { signal });
    if (this.known.size > KEPT) this.known.delete(this.known.keys().next().value);
    this.known.set(address, answer);
    return answer;
  }

  async order(view, state) {
    const body = JSON.stringify({ view, state });
    return get("/api/simulate", { method: "POST", body, headers: { "Content-Type": "application/json" } });
  }

  /** Send a file; returns what the server says of its table. */
  async bring(file) {
    const headers = { "Content-Type": "application/octet-stream" };
    return get(`/api/tables?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file, headers });
  }

  events(job) {
    return new EventSource(job.events);
  }

  cancel(job) {
    return fetch(job.cancel, { method: "DELETE", keepalive: true }).catch(() => {});
  }
}

/** One file holds everything: lines at the values that its controls are restricted to. */
class Exported {
  live = false;

  constructor(text) {
    this.data = JSON.parse(text);
  }

  async views() {
    return this.data.views;
  }

  async lines(view, query) {
    const table = this.data.answers[view];
    const asked = Object.fromEntries(new URLSearchParams(query));
    const { controls } = this.data.views.find((one) => one.name === view);
    const key = table.keys.map((name) => (isIdle(controls.find((one) => one.name === name), asked) ? "" : asked[name])).join("|");
    const found = table.answers[key];
    if (found === undefined) throw new Refusal("This page has no line for these values. Run `lazyscope explore` for all of them.");
    if (found.error) throw new Refusal(found.error);
    return this.filled(table, found);
  }

  /** Grids that lines share, and claims, are stored once. */
  filled(table, found) {
    const lines = found.lines.map((line) => ({ ...line, x: table.grids[line.x] }));
    return { ...found, lines, claims: found.claims.map((key) => this.data.claims[key]) };
  }
}

const inside = document.getElementById("lazyscope-data");
export const source = inside ? new Exported(inside.textContent) : new Server();
