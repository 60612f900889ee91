"use strict";
// Values of the API: payloads, options, messages, durations.

const OPTIONS = {
  namespace: "namespace", key: "key", kind: "kind", priority: "priority", delay: "delay", at: "deliver_after", ttl: "ttl",
  idempotencyKey: "idempotency_key", correlationId: "correlation_id", attributes: "attributes",
  contentType: "content_type", maxAttempts: "max_attempts", keepResult: "keep_result", traceparent: "traceparent",
  tracestate: "tracestate", batch: "batch",
};

/** Members of an item: bytes as they are, a string as text, everything else as JSON. */
function payloadOf(value) {
  if (value instanceof Uint8Array) return { payload: Buffer.from(value) };
  if (typeof value === "string") return { payload: Buffer.from(value), content_type: "text/plain; charset=utf-8" };
  const json = JSON.stringify(value);
  if (json === undefined) throw new TypeError(`invalid payload: ${typeof value}; expected bytes, a string or JSON`);
  return { payload: Buffer.from(json), content_type: "application/json" };
}

/** A message as the server wants it. The option `namespace` replaces `namespace`. */
function item(namespace, queue, payload, options = {}) {
  const made = { namespace, queue, ...payloadOf(payload) };
  for (const [name, value] of Object.entries(options)) {
    if (!OPTIONS[name])
      throw new TypeError(`invalid option: ${name}; expected ${Object.keys(OPTIONS).join(", ")}`);
    if (value !== undefined) made[OPTIONS[name]] = value instanceof Date ? value.toISOString() : value;
  }
  return made;
}

function items(namespace, queue, payloads, options = {}) {
  if (options.idempotencyKey !== undefined)
    throw new TypeError("invalid option: idempotencyKey; expected one for each message: use pushItems");
  return Array.from(payloads, (payload) => item(namespace, queue, payload, options));
}

const UNITS = { ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600, d: 86400 };

/** How long a duration lasts: a number of seconds, or a text such as "1h30m". */
function seconds(duration) {
  if (typeof duration === "number") return duration;
  if (!/^(\d+(\.\d+)?(ns|us|ms|s|m|h|d)?)+$/.test(duration))
    throw new TypeError(`invalid duration: ${duration}; expected seconds, or a text such as 1h30m`);
  let total = 0;
  for (const [, number, unit] of duration.matchAll(/(\d+(?:\.\d+)?)(ns|us|ms|s|m|h|d)?/g))
    total += Number(number) * UNITS[unit ?? "s"];
  return total;
}

/** A message as it was delivered or looked at. Its id is a UUID: a number of 63 bits does not survive JSON.parse. */
class Message {
  constructor(raw, lease) {
    this.id = raw.uid;
    this.namespace = raw.namespace;
    this.queue = raw.queue;
    this.payload = Buffer.from(raw.payload ?? "", "base64");
    this.priority = raw.priority;
    this.attempts = raw.attempts;
    this.failures = raw.failure_attempts;
    this.receipt = raw.receipt ?? "";
    this.fencingToken = raw.lease_id ? BigInt(raw.lease_id.slice(2)) : 0n;
    this.key = raw.key;
    this.kind = raw.kind;
    this.contentType = raw.content_type;
    this.correlationId = raw.correlation_id;
    this.attributes = raw.attributes;
    this.checkpoint = raw.checkpoint;
    this.lease = lease;
    this.traceparent = raw.traceparent;
    this.tracestate = raw.tracestate;
    this.error = raw.error;
    this.enqueuedAt = new Date(raw.enqueued_at);
    this.leaseExpiresAt = raw.lease_expires_at ? new Date(raw.lease_expires_at) : undefined;
    this.lost = false;
    this.canceled = false;
  }

  text() {
    return this.payload.toString();
  }

  json() {
    return JSON.parse(this.text());
  }

  /** What was pushed: JSON as its value, text as a string, everything else as bytes. */
  get body() {
    const kind = (this.contentType ?? "").split(";")[0].trim();
    if (kind === "application/json") return this.json();
    return kind.startsWith("text/") ? this.text() : this.payload;
  }
}

module.exports = { Message, item, items, seconds };
