"use strict";

const { randomUUID } = require("node:crypto");
const { hostname } = require("node:os");
const { setTimeout: sleep } = require("node:timers/promises");
const { version } = require("../package.json");
const { Client } = require("./client.js");
const { Defer, LeaseLost, NotFound, Refusal, Reject, Retry, SluiceError } = require("./errors.js");

/** What a nack says about a handler that threw. */
function verdict(failure) {
  const text = failure?.message || String(failure);
  if (failure instanceof Defer) return { defer: true, delay: failure.delay };
  if (failure instanceof Reject) return { error: text, dead: true };
  if (failure instanceof Retry) return { error: text, delay: failure.delay };
  return { error: failure instanceof Error ? `${failure.name}: ${text}` : text };
}

/** Works on the messages of one queue. index.d.ts describes the options. */
class Worker {
  constructor(queue, handler, options = {}) {
    const { client = new Client(), concurrency = 1, lease = 30, wait = 20, grace = 30, beat = 5, signals = true } = options;
    if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > 1000)
      throw new TypeError(`invalid concurrency: ${concurrency}; expected 1 to 1000`);
    const table = typeof handler === "function" ? undefined : { ...handler };
    this.kinds = table && Object.keys(table);
    if (this.kinds?.length === 0) throw new TypeError("invalid handler: no kinds; expected at least one");
    if (table) handler = (message) => table[message.kind](message);
    Object.assign(this, { queue, handler, client, concurrency, lease, wait, grace, beat, signals });
    this.namespace = options.namespace ?? client.namespace;
    this.log = options.log ?? ((text) => console.error(`sluice: ${text}`));
    this.running = new Map(); // from a message to the promise of its end
    this.stopping = new AbortController();
    this.quiet = null; // while an operator wants no messages taken: the promise of the end of that
    this.pause = new AbortController(); // ends the request for messages when the worker becomes quiet
    this.lost = 0;
    this.late = 0;
    this.kept = Date.now(); // when leases were extended last
  }

  /** Ends run: takes no more messages, and lets handlers finish for `grace` seconds. */
  stop() {
    this.stopping.abort();
    this.pause.abort();
  }

  /** Tells the server each `beat` seconds that this worker lives, and does what an operator asks. */
  async beats(ended) {
    const worker = { name: this.client.owner, host: hostname(), version, instance: randomUUID().slice(0, 13), slots: this.concurrency };
    const tell = (more, signal) => this.client.beat(this.queue, { ...worker, used: this.running.size, lost: this.lost, late: this.late, ...more }, { namespace: this.namespace, signal });
    while (this.beat > 0 && !ended.aborted) {
      try {
        this.obey(await tell({}, ended));
      } catch (failure) {
        if (!(failure instanceof SluiceError)) throw failure;
        if (failure instanceof Refusal && [401, 403, 404, 405].includes(failure.status)) return; // the server has no register, or not for us
      }
      await sleep(this.beat * 1000, null, { signal: ended }).catch(() => {});
    }
    if (this.beat > 0) await tell({ ends: 1 }, AbortSignal.timeout(1000)).catch(() => {}); // the server forgets the worker
  }

  obey(asked) {
    if (asked === "stop" && !this.stopping.signal.aborted) {
      this.log("an operator asked this worker to stop");
      this.stop();
    }
    if ((asked === "quiet") === Boolean(this.quiet)) return;
    this.log(`an operator asked this worker to ${asked === "quiet" ? "be quiet" : "go on"}`);
    if (asked === "quiet") {
      this.quiet = {};
      this.quiet.over = new Promise((resolve) => { this.quiet.end = resolve; });
      this.pause.abort();
    } else {
      this.quiet.end();
      this.quiet = null;
      if (!this.stopping.signal.aborted) this.pause = new AbortController();
    }
  }

  /** Works until stop is called, or until SIGTERM or SIGINT. */
  async run() {
    const stop = () => this.stop();
    const caught = this.signals ? ["SIGTERM", "SIGINT"] : [];
    for (const name of caught) process.on(name, stop);
    this.kept = Date.now();
    const keeper = setInterval(() => this.keepLeases(), this.lease * 1000 / 3);
    const ended = new AbortController();
    const beating = this.beats(ended.signal);
    try {
      while (!this.stopping.signal.aborted) await this.takeSome();
      await this.finish();
    } finally {
      clearInterval(keeper);
      ended.abort();
      await beating;
      for (const name of caught) process.off(name, stop);
    }
  }

  async takeSome() {
    const { signal } = this.pause;
    if (this.stopping.signal.aborted) return;
    if (this.quiet) {
      await Promise.race([this.quiet.over, aborted(this.stopping.signal)]);
      return;
    }
    if (this.running.size >= this.concurrency) {
      await Promise.race([...this.running.values(), aborted(signal)]);
      return;
    }
    try {
      const limit = this.concurrency - this.running.size;
      const { lease, wait, namespace, kinds } = this;
      for (const message of await this.client.take(this.queue, { limit, wait, lease, namespace, kinds, signal }))
        this.running.set(message, this.settle(message).finally(() => this.running.delete(message)));
    } catch (failure) {
      if (signal.aborted) return;
      if (!(failure instanceof SluiceError)) throw failure;
      this.log(`cannot take messages: ${failure.message}`);
      await Promise.race([sleep(1000), aborted(signal)]);
    }
  }

  async settle(message) {
    try {
      let result;
      try {
        result = await this.handler(message);
      } catch (failure) {
        await this.client.nack(message, verdict(failure));
        return;
      }
      if (!message.returned) await this.client.ack(message, result);
    } catch (failure) {
      if (!(failure instanceof SluiceError)) throw failure;
      message.lost = failure instanceof LeaseLost || failure instanceof NotFound;
      this.log(`message ${message.id}: ${message.lost ? "the lease ended before its handler did"
        : `cannot settle, it comes again: ${failure.message}`}`);
    }
  }

  async keepLeases() {
    const began = Date.now();
    try {
      const held = [...this.running.keys()].filter((message) => !message.lost);
      for (const message of await this.client.extend(held, this.lease)) {
        this.lost += message.canceled ? 0 : 1;
        this.log(`message ${message.id}: ${message.canceled ? "canceled" : "the lease is lost"}`);
      }
      this.late += Date.now() - this.kept > this.lease * 750 ? held.length : 0;
      this.kept = began;
    } catch (failure) {
      this.log(`cannot extend leases: ${failure.message}`);
    }
  }

  async finish() {
    const late = new AbortController();
    await Promise.race([Promise.all(this.running.values()), sleep(this.grace * 1000, null, { signal: late.signal }).catch(() => {})]);
    late.abort();
    for (const message of this.running.keys()) {
      message.returned = true;
      this.log(`message ${message.id}: given back, its handler did not end within ${this.grace} s`);
      await this.client.nack(message, { defer: true, delay: 0 }).catch((failure) => this.log(failure.message));
    }
  }
}

function aborted(signal) {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

module.exports = { Worker };
