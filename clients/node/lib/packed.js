"use strict";
// application/x-sluice-batch: messages as bytes, without base64. docs/batch-format.md describes every byte.

const TYPE = "application/x-sluice-batch";
const MESSAGES = 1; // the kind of a batch of messages to enqueue

/** A name behind its length. The server refuses more than 128 bytes: there is no need for all of them. */
function name(text) {
  const raw = Buffer.from(text).subarray(0, 255);
  return Buffer.concat([Buffer.of(raw.length), raw]);
}

/** A batch of items as `item` of values.js makes them: their payloads are bytes. */
function messages(items) {
  const queues = new Map();
  const parts = [];
  for (const { namespace, queue, payload, ...others } of items) {
    const place = Buffer.concat([name(namespace), name(queue)]);
    const key = place.toString("latin1");
    if (!queues.has(key)) queues.set(key, { number: queues.size, place });
    const members = Object.keys(others).length ? Buffer.from(JSON.stringify(others)) : Buffer.alloc(0);
    const fixed = Buffer.alloc(12);
    fixed.writeUInt32LE(members.length, 0);
    fixed.writeUInt32LE(payload.length, 4);
    fixed.writeUInt16LE(queues.get(key).number, 8);
    parts.push(fixed, members, payload);
  }
  const head = Buffer.alloc(12);
  head.write("SLB1");
  head[4] = MESSAGES;
  head.writeUInt16LE(queues.size, 6);
  head.writeUInt32LE(items.length, 8);
  return Buffer.concat([head, ...Array.from(queues.values(), ({ place }) => place), ...parts]);
}

module.exports = { TYPE, messages };
