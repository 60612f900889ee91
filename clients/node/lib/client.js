"use strict";

const { hostname } = require("node:os");
const { randomUUID } = require("node:crypto");
const { setTimeout: sleep } = require("node:timers/promises");
const { Attempts, Servers } = require("./attempts.js");
const { Refusal, SluiceError, Unreachable, refusal } = require("./errors.js");
const { Broken, NotSent, Transport } = require("./http.js");
const packed = require("./packed.js");
const { Message, item, items, seconds } = require("./values.js");

const encode = (value) => Buffer.from(JSON.stringify(value));
const post = (path, value, more = {}) => ({ method: "POST", path, body: encode(value), ...more });
const get = (path, query, more = {}) => ({ method: "GET", path, query, repeatable: true, ...more });

/** Talks to one of several servers. index.d.ts describes every method. */
class Client {
  constructor({ servers, token, namespace, timeout = 30, patience = 30, tls, packed = false } = {}) {
    this.namespace = namespace ?? process.env.SLUICE_NAMESPACE ?? "default";
    this.owner = `${hostname()}:${process.pid}:${randomUUID().slice(0, 6)}`;
    this.servers = new Servers(servers);
    this.patience = patience;
    this.packed = packed;
    this.transport = new Transport(timeout, tls);
    token ??= process.env.SLUICE_TOKEN;
    this.headers = token ? { Authorization: `Bearer ${token}` } : {};
  }

  close() {
    this.transport.close();
  }

  /** Sends a call, again where that is safe. Resolves to the text of the answer; "" if an earlier attempt did it. */
  async send(call, signal) {
    const attempts = new Attempts(this.servers, call, this.patience, performance.now());
    for (;;) {
      try {
        return check(await this.transport.send(attempts.server, call, this.headers, signal));
      } catch (failure) {
        if (!(failure instanceof NotSent || failure instanceof Broken || failure instanceof Refusal)) throw failure;
        if (attempts.happenedBefore(failure)) return "";
        if (signal?.aborted) throw new Unreachable("interrupted", { cause: failure });
        await sleep(attempts.pauseAfter(failure, performance.now()));
      }
    }
  }

  async call(call, signal) {
    const text = await this.send(call, signal);
    return text ? JSON.parse(text) : undefined;
  }

  // ---- Messages ----

  async push(queue, payload = Buffer.alloc(0), options = {}) {
    return (await this.enqueue([item(this.namespace, queue, payload, options)]))[0];
  }

  pushMany(queue, payloads, options = {}) {
    return this.enqueue(items(this.namespace, queue, payloads, options));
  }

  pushItems(list) {
    return this.enqueue(Array.from(list, ({ queue, payload = Buffer.alloc(0), ...options }) =>
      item(this.namespace, queue, payload, options)));
  }

  async enqueue(list) {
    const repeatable = list.every((one) => one.idempotency_key !== undefined);
    const more = { query: { detail: 1 }, repeatable };
    const call = this.packed
      ? { method: "POST", path: "/enqueue", body: packed.messages(list), headers: { "Content-Type": packed.TYPE }, ...more }
      : post("/enqueue", list.map((one) => ({ ...one, payload: one.payload.toString("base64") })), more);
    const answer = await this.call(call);
    return answer.map(({ uid, duplicate }) => ({ id: uid, duplicate }));
  }

  async take(queue, { limit = 1, wait = 0, lease, namespace = this.namespace, kinds, signal } = {}) {
    // A server whose answer does not arrive takes its messages back.
    const query = { namespace, queue, limit, wait, lease, owner: this.owner, kinds: kinds?.join(",") };
    return (await this.call(get("/dequeue", query, { wait: seconds(wait) }), signal)).map((raw) => new Message(raw, lease));
  }

  async ack(message, result) {
    await this.call(post("/ack", { receipt: message.receipt, result }, { repeatable: true, goneIsDone: true }));
  }

  async nack(message, { error, delay, defer = false, dead = false } = {}) {
    const body = { receipt: message.receipt, error: error || undefined, delay, defer, dead };
    await this.call(post("/nack", body, { repeatable: true, goneIsDone: true }));
  }

  async extend(messages, lease) {
    if (!messages.length) return [];
    const body = messages.map(({ receipt }) => ({ receipt, lease }));
    const answer = await this.call(post("/extend", body, { repeatable: true }));
    const lost = messages.filter((_, n) => [404, 409].includes(answer[n].status));
    messages.forEach((message, n) => { message.canceled = answer[n].error === "message_canceled"; });
    for (const message of lost) message.lost = true;
    return lost;
  }

  async checkpoint(message, checkpoint, lease = message.lease) {
    await this.call(post("/extend", { receipt: message.receipt, checkpoint, lease }, { repeatable: true }));
  }

  /** Says that a worker lives. Resolves to what an operator asks of it: running, quiet or stop. */
  async beat(queue, worker, { namespace = this.namespace, signal } = {}) {
    const headers = { "Sluice-Worker": Object.entries(worker).map(([name, value]) => `${name}=${value}`).join("; ") };
    return (await this.call(post("/worker", { namespace, queue }, { headers, repeatable: true }), signal)).state;
  }

  async result(id, { queue, wait = 0, namespace = this.namespace } = {}) {
    const answer = await this.call(get("/result", { namespace, id, queue, wait }, { wait: seconds(wait) }));
    if (answer.status !== "done") throw new SluiceError(`message ${id} is not finished`);
    return answer.result;
  }

  // ---- Queues ----

  peek(queue, { state = "ready", namespace = this.namespace } = {}) {
    return this.messages("/peek", { namespace, queue, state, limit: 100 });
  }

  deadLetters(queue, { namespace = this.namespace } = {}) {
    return this.messages("/dlq", { namespace, queue });
  }

  async redrive(queue, { ids, limit = 1000, namespace = this.namespace } = {}) {
    const body = { namespace, queue, ...(ids ? { ids } : { limit }) };
    return (await this.call(post("/dlq/redrive", body))).redriven;
  }

  stats(queue, { namespace = this.namespace } = {}) {
    return this.call(get("/stats", { namespace, queue }));
  }

  async* queues(namespace = this.namespace) {
    for await (const page of this.pages("/topics", { namespace, limit: 1000 })) yield* page.topics;
  }

  policy(queue, changes, { namespace = this.namespace } = {}) {
    const query = { namespace, queue };
    return this.call(changes ? post("/policy", changes, { query, repeatable: true }) : get("/policy", query));
  }

  // ---- Batches ----

  async createBatch({ callback, timeout, deadline, namespace = this.namespace } = {}) {
    const body = { namespace, timeout, deadline: deadline instanceof Date ? deadline.toISOString() : deadline };
    if (callback) {
      const { queue, payload = Buffer.alloc(0), ...options } = callback;
      const made = item(namespace, queue, payload, options);
      body.callback = { ...made, namespace: undefined, payload: made.payload.toString("base64") };
    }
    return (await this.call(post("/batches", body))).uid;
  }

  closeBatch(id, { namespace = this.namespace } = {}) {
    return this.call(post("/batches/close", { namespace, id }, { repeatable: true }));
  }

  batch(id, { namespace = this.namespace } = {}) {
    return this.call(get("/batch", { namespace, id }));
  }

  async* batches(namespace = this.namespace) {
    for await (const page of this.pages("/batches", { namespace })) yield* page.batches;
  }

  async* messages(path, query) {
    for await (const page of this.pages(path, query)) yield* page.messages.map((raw) => new Message(raw));
  }

  async* pages(path, query) {
    let cursor;
    do {
      const page = await this.call(get(path, { ...query, cursor }));
      yield page;
      cursor = page.cursor;
    } while (cursor);
  }

  // ---- Locks and documents ----

  /** Holds a lock while `work(lock)` runs; commits its document afterwards, or rolls it back if `work` throws. */
  async lock(key, work, { ttl = 30, wait = Infinity, namespace = this.namespace } = {}) {
    const block = wait === Infinity ? 0 : wait <= 0 ? -1 : Math.max(1, Math.round(wait));
    const body = { namespace, key, owner: this.owner, ttl_seconds: Math.max(1, Math.round(ttl)), block_seconds: block };
    const text = await this.send(post("/v1/acquire", body, { repeatable: true, wait: Math.max(0, wait) }));
    const lock = new Lock(this, JSON.parse(text), /"fencing_token":\s*(\d+)/.exec(text)[1], ttl);
    let rollback = true;
    try {
      const result = await work(lock);
      rollback = false;
      return result;
    } finally {
      await lock.release(rollback);
    }
  }

  /** The committed document of a key; undefined if it has none. */
  read(key, { namespace = this.namespace } = {}) {
    return this.call(get("/v1/get", { namespace, key, public: 1 }));
  }
}

/** The text of a good answer; throws a Refusal otherwise. */
function check({ status, headers, text }) {
  if (status < 300) return text;
  let body;
  try {
    body = JSON.parse(text);
  } catch {
    // not a refusal of Sluice itself: a proxy's, perhaps
  }
  const after = Number(headers["retry-after"]);
  throw refusal(status, body?.error ? body : { message: text.slice(0, 200) }, Number.isFinite(after) ? after : undefined);
}

class Lock {
  constructor(client, lease, token, ttl) {
    this.client = client;
    this.key = lease.key;
    this.fencingToken = BigInt(token);
    this.lost = false;
    this.ttl = ttl;
    this.named = { namespace: lease.namespace, key: lease.key, lease_id: lease.lease_id, txn_id: lease.txn_id };
    this.headers = { "X-Lease-ID": lease.lease_id, "X-Txn-ID": lease.txn_id, "X-Fencing-Token": token };
    this.place = { namespace: lease.namespace, key: lease.key };
    this.keeper = setInterval(() => this.keep(), ttl * 1000 / 3);
  }

  /** The document as this holder sees it; undefined if the key has none. */
  read() {
    return this.client.call(get("/v1/get", this.place, { headers: this.headers }));
  }

  async write(document) {
    await this.client.call(post("/v1/update", document, { query: this.place, headers: this.headers, repeatable: true }));
  }

  /** Changes the document in place: lock.mutate("/attempts++", "/status=paid"). */
  async mutate(...mutations) {
    await this.client.call(post("/v1/mutate", { mutations }, { query: this.place, headers: this.headers }));
  }

  async keep() {
    try {
      const body = { ...this.named, ttl_seconds: Math.max(1, Math.round(this.ttl)) };
      await this.client.call(post("/v1/keepalive", body, { headers: this.headers, repeatable: true }));
    } catch (failure) {
      if (!(failure instanceof Refusal)) return; // a server may be back before the lease ends
      this.lost = true;
      clearInterval(this.keeper);
    }
  }

  async release(rollback) {
    clearInterval(this.keeper);
    await this.client.call(post("/v1/release", { ...this.named, rollback }, { headers: this.headers, repeatable: true }));
  }
}

module.exports = { Client };
