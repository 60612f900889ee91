// What the package for Node does on a real server. node node_cases.mjs NAME runs one case; SLUICE_SERVER is the server,
// OTHER a server that reads a request and hangs up, AWAY an address where nothing listens.
import assert from "node:assert/strict";
import { Client, Conflict, Invalid, LeaseLost, NotFound, OutcomeUnknown, Throttled, Unreachable, Worker } from "sluice-queue";

const { SLUICE_SERVER: server, OTHER: other, AWAY: away } = process.env;
const name = process.argv[2];
const client = new Client({ namespace: name });

async function collect(generator) {
  const all = [];
  for await (const one of generator) all.push(one);
  return all;
}

async function until(check) {
  for (;;) {
    const found = await check();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const cases = {
  async packed_messages_are_those_of_json() {
    const packed = new Client({ namespace: name, packed: true });
    const payloads = [Buffer.from([0, 255]), "grüß dich", { a: [1, null, "ü"] }, null];
    for (const one of [client, packed]) {
      const pushed = await one.pushItems(payloads.map((payload, n) => ({ queue: n % 2 ? "odd" : "even", payload, priority: n, key: `${n}` })));
      for (const [queue, first] of [["even", 0], ["odd", 1]]) {
        const taken = await one.take(queue, { limit: 10 });
        assert.deepEqual(taken.map(({ body }) => body), [payloads[first], payloads[first + 2]]);
        assert.deepEqual(taken.map(({ id }) => id), [pushed[first].id, pushed[first + 2].id]);
        assert.deepEqual(taken.map(({ key }) => key), [`${first}`, `${first + 2}`]);
        for (const message of taken) await one.ack(message);
      }
    }
    await assert.rejects(packed.push("a b", "x"), Invalid);
    packed.close();
  },

  async a_payload_comes_back_as_it_was() {
    for (const payload of [Buffer.from([0, 255]), "grüß dich", { a: [1, null, "ü"] }, [1, 2], 7, true, null]) {
      const pushed = await client.push("q", payload);
      const [message] = await client.take("q");
      assert.deepEqual(message.body, payload);
      assert.equal(message.id, pushed.id);
      await client.ack(message);
    }
    assert.equal((await client.stats("q")).total, 0);
  },

  async the_next_holder_has_the_checkpoint() {
    await client.push("q", "x");
    const [first] = await client.take("q", { lease: "10m" });
    assert.equal(first.checkpoint, undefined);
    await client.checkpoint(first, { row: 1 });
    await client.checkpoint(first, [2, "ü"]);
    const [leased] = await collect(client.peek("q", { state: "leased" }));
    assert.ok(leased.leaseExpiresAt - Date.now() > 300e3);
    await client.nack(first, { delay: 0 });
    const [second] = await client.take("q", { wait: 20 });
    assert.deepEqual(second.checkpoint, [2, "ü"]);
    await client.nack(second, { delay: 0 });
    await assert.rejects(client.checkpoint(second, 3), LeaseLost);
  },

  async a_batch_calls_back() {
    const callback = { queue: "over", payload: { all: "sent" }, priority: "high" };
    const batch = await client.createBatch({ callback, timeout: "1h" });
    await client.pushMany("q", [1, 2], { batch });
    assert.equal((await client.batch(batch)).pending, 2);
    assert.deepEqual((await collect(client.batches())).map(({ uid }) => uid), [batch]);
    assert.equal((await client.closeBatch(batch)).status, "closed");
    const [one, two] = await client.take("q", { limit: 2 });
    await client.ack(one);
    await client.nack(two, { dead: true });
    const [over] = await client.take("over", { wait: 20 });
    assert.deepEqual([over.body, over.attributes.outcome, over.attributes.done], [{ all: "sent" }, "failed", 1]);
    const late = await client.createBatch({ deadline: new Date(Date.now() + 1000) });
    await until(async () => (await client.batch(late)).status === "deadline");
  },

  async a_worker_has_a_table_of_kinds() {
    for (const kind of ["mail", "crop", "resize"]) await client.push("q", kind, { kind });
    const seen = [];
    const handle = (message) => {
      seen.push(message.kind);
      if (seen.length === 2) worker.stop();
    };
    const worker = new Worker("q", { crop: handle, resize: handle }, { client, namespace: name, signals: false });
    await worker.run();
    assert.deepEqual(seen.sort(), ["crop", "resize"]);
    assert.equal((await client.take("q", { kinds: ["crop"] })).length, 0);
    assert.equal((await client.take("q", { kinds: ["crop", "mail"] }))[0].kind, "mail");
  },

  async options_of_a_message_arrive() {
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    await client.push("q", "later", { at: new Date(Date.now() + 3600e3) });
    await client.push("q", "now", {
      key: "k", priority: "high", correlationId: "c", attributes: { x: 1 }, ttl: "1h", maxAttempts: 2, contentType: "text/x-own", traceparent,
    });
    const [message, ...rest] = await client.take("q", { limit: 10 });
    assert.equal(rest.length, 0);
    assert.deepEqual([message.key, message.priority, message.correlationId, message.attributes, message.contentType, message.traceparent],
      ["k", 0, "c", { x: 1 }, "text/x-own", traceparent]);
    assert.ok(message.leaseExpiresAt > message.enqueuedAt && message.fencingToken > 0n);
    assert.deepEqual((await collect(client.peek("q", { state: "delayed" }))).map((m) => m.body), ["later"]);
  },

  async many_messages_in_one_request() {
    const pushed = await client.pushMany("q", Array(1000).keys());
    assert.equal(new Set(pushed.map((one) => one.id)).size, 1000);
    const own = await client.pushItems([0, 1, 2].map((n) => ({ queue: "r", payload: n, idempotencyKey: `${n % 2}` })));
    assert.deepEqual(own.map((one) => one.duplicate), [false, false, true]);
    assert.equal((await client.take("q", { limit: 1000 })).length, 1000);
    assert.deepEqual((await collect(client.queues())).map((queue) => queue.queue), ["q", "r"]);
  },

  async a_wrong_option_is_refused() {
    await assert.rejects(client.push("q", "x", { priorty: 1 }), /invalid option: priorty; expected namespace, key, kind, priority/);
    await assert.rejects(client.push("q", () => 1), /invalid payload: function/);
    assert.throws(() => client.pushMany("q", ["x"], { idempotencyKey: "one" }), /idempotencyKey/);
    assert.throws(() => new Client({ servers: "localhost:7171" }), /invalid server: localhost:7171; expected http:\/\/HOST:PORT/);
  },

  async failures_dead_letters_and_results() {
    const pushed = await client.push("q", "x", { keepResult: "1h" });
    await client.nack((await client.take("q"))[0], { error: "no carrier", delay: 0 });
    const [again] = await client.take("q", { wait: 20 });
    assert.deepEqual([again.attempts, again.failures], [2, 1]);
    await client.nack(again, { dead: true, error: "no such customer" });
    const [letter] = await collect(client.deadLetters("q"));
    assert.deepEqual([letter.id, letter.error], [pushed.id, "no such customer"]);
    assert.equal(await client.redrive("q", { ids: [letter.id] }), 1);
    await assert.rejects(client.result(pushed.id), /is not finished/);
    await client.ack((await client.take("q", { wait: 20 }))[0], { sum: 3 });
    assert.deepEqual(await client.result(pushed.id, { wait: "5s" }), { sum: 3 });
  },

  async errors_have_types() {
    await assert.rejects(client.stats("missing"), (e) => e instanceof NotFound && e.status === 404 && e.error === "not_found");
    await assert.rejects(client.take("q", { limit: 100000 }), Invalid);
    await client.push("q", "x");
    const [message] = await client.take("q", { lease: 0.05 });
    await until(async () => (await client.take("q", { wait: 1 })).length);
    await assert.rejects(client.ack(message), LeaseLost);
    assert.deepEqual(await client.extend([message]), [message]);
    assert.ok(message.lost);
    assert.equal((await client.policy("q", { max_depth: 1 })).max_depth, 1);
    await assert.rejects(client.push("q", "y"), (e) => e instanceof Throttled && e.retryAfter > 0);
  },

  async a_canceled_message_is_known_at_the_next_extend() {
    await client.push("canceled", "x");
    const [message] = await client.take("canceled");
    const body = JSON.stringify({ namespace: name, id: message.id });
    const answer = await fetch(`${server}/v1/admin/message/cancel`, { method: "POST", body });
    assert.equal(answer.status, 200);
    assert.deepEqual(await client.extend([message]), [message]);
    assert.ok(message.canceled);
    await client.ack(message);
  },

  async a_lock_protects_a_document() {
    const token = await client.lock("k", async (lock) => {
      assert.equal(await lock.read(), undefined);
      await lock.write({ n: 1 });
      await lock.mutate("/n++");
      assert.deepEqual(await lock.read(), { n: 2 });
      await assert.rejects(client.lock("k", () => {}, { wait: 0 }), Conflict);
      return lock.fencingToken;
    });
    await assert.rejects(client.lock("k", async (lock) => {
      assert.ok(lock.fencingToken > token);
      await lock.write({});
      throw new RangeError("no");
    }), RangeError);
    assert.deepEqual(await client.read("k"), { n: 2 });
  },

  async another_server_is_asked_and_nothing_is_done_twice() {
    const two = new Client({ servers: [away, server], namespace: name });
    await two.push("q", "x");
    const doubt = () => new Client({ servers: [other, server], namespace: name });
    await assert.rejects(doubt().push("q", "y"), OutcomeUnknown);
    await doubt().push("q", "z", { idempotencyKey: "z" });
    assert.equal((await doubt().take("q", { limit: 10 })).length, 2);
    await assert.rejects(new Client({ servers: away, patience: 0.2 }).push("q", "x"), Unreachable);
  },
};

await cases[name]();
console.log("passed");
process.exit(0);
