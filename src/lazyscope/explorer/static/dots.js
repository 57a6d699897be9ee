// Dots: a job on the server, whose events are dots, progress and, at the end, its end.

import { source } from "./source.js";

/** The dots of the picture, and the job that brings them. */
export class Dots {
  constructor(onChange) {
    this.onChange = onChange;
    this.clear();
  }

  get running() {
    return this.job !== null;
  }

  /** Forget all dots and end the job that brings more. */
  clear() {
    this.stop();
    this.list = [];
    this.notes = [];
    this.again = null;
    this.progress = null;
    this.status = "";
    this.turn = (this.turn ?? 0) + 1;
  }

  /** Show dots that were computed beforehand. */
  take(kept) {
    this.clear();
    Object.assign(this, { list: kept.dots, notes: kept.notes, again: { command: kept.command, python: kept.python }, status: kept.about });
    this.onChange();
  }

  stop() {
    this.stream?.close();
    if (this.job) source.cancel(this.job);
    this.stream = null;
    this.job = null;
    this.progress = null;
  }

  cancel() {
    this.stop();
    this.status = "Cancelled.";
    this.onChange();
  }

  /** Ask for the dots of a state. */
  async drop(view, state) {
    this.clear();
    const turn = this.turn;
    this.status = "Waiting for the server …";
    this.onChange();
    try {
      const job = await source.order(view, state);
      if (turn !== this.turn) return void source.cancel(job); // the state has changed meanwhile
      this.job = job;
      this.again = { command: job.command, python: job.python };
      this.listen(source.events(job));
    } catch (failure) {
      if (turn === this.turn) this.status = failure.message;
    }
    this.onChange();
  }

  listen(stream) {
    this.stream = stream;
    const on = (name, action) => stream.addEventListener(name, (event) => {
      if (stream !== this.stream) return;
      action(event.data === undefined ? null : JSON.parse(event.data));
      this.onChange();
    });
    on("progress", (data) => {
      this.progress = data;
      this.status = data.what;
    });
    on("dots", (data) => this.list.push(data));
    on("note", (data) => this.notes.push(data));
    on("done", (data) => this.end(`Done in ${data.seconds.toFixed(1)} s.`));
    // the server's last word on a job that failed, or a connection that broke: without data, it is the latter
    on("error", (data) => this.end(data ? data.error : "The connection to the server was lost. Is `lazyscope explore` still running?"));
  }

  end(status) {
    this.stream.close();
    this.stream = null;
    this.job = null;
    this.progress = null;
    this.status = status;
  }
}
