// worker.mjs - a worker in Node 18 or later: fetch, and no library.
//
//     node worker.mjs push QUEUE JSON...      enqueue jobs
//     node worker.mjs work QUEUE [COUNT]      work until COUNT jobs are finished, or until Ctrl-C
//
//     node worker.mjs push jobs '{"do":"mail"}' '{"do":"report"}'
//
// SLUICE_SERVER is the server, SLUICE_TOKEN its token if it wants one. A message is settled by
// its receipt and never by its id: JSON.parse rounds ids.

const server = process.env.SLUICE_SERVER ?? "http://127.0.0.1:7171";
const token = process.env.SLUICE_TOKEN;
const headers = token ? { Authorization: `Bearer ${token}` } : {};
const stop = new AbortController();

/** A failure that no second attempt can mend. */
class Hopeless extends Error {}

async function call(method, path, body, signal) {
  const response = await fetch(server + path, {
    method, headers, signal, body: body && JSON.stringify(body),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(`${path}: ${answer.error}: ${answer.message}`);
  return answer;
}

const push = (queue, jobs) => call("POST", "/enqueue?ids=uid",
  jobs.map((json) => ({ namespace: "default", topic: queue, json })));

/** Waits up to 20 seconds for a message, and leases it for a minute. */
const take = (queue) => call("GET",
  `/dequeue?namespace=default&topic=${queue}&limit=1&wait=20&lease=1m`, undefined, stop.signal);

const extend = (message, lease) => call("POST", "/extend", { receipt: message.receipt, lease });

/** What can be done; the result is what they return, a failure what they throw. */
const jobs = {
  async mail() {
    return "sent";
  },
  async report(message) {
    await extend(message, "5m"); // this takes longer than the lease
    return "written";
  },
  async flaky(message) {
    if (message.attempts === 1) throw new Error("no carrier");
    return "sent at last";
  },
  async poison() {
    throw new Hopeless("no such customer");
  },
};

/** What to tell the server about a message: the call and its members. */
async function outcome(message) {
  try {
    const job = JSON.parse(Buffer.from(message.payload, "base64"));
    if (!jobs[job.do]) throw new Hopeless(`no such job: ${job.do}`);
    return ["/ack", { result: await jobs[job.do](message) }];
  } catch (error) {
    return ["/nack", { error: error.message, dead: error instanceof Hopeless }];
  }
}

/** True: the message is finished, one way or the other. */
async function handle(message) {
  const [path, members] = await outcome(message);
  const answer = await call("POST", path, { receipt: message.receipt, ...members });
  const word = path === "/ack" ? "done" : answer.dead ? "dead" : "failed";
  console.log(word, message.uid, members.result ?? members.error);
  return word !== "failed";
}

async function work(queue, count) {
  for (let finished = 0; finished < count && !stop.signal.aborted;) {
    try {
      for (const message of await take(queue)) finished += await handle(message);
    } catch (error) {
      if (stop.signal.aborted) return;
      console.error(error.message); // the server is away, or the lease is lost: go on
      await new Promise((resume) => setTimeout(resume, 1000));
    }
  }
}

for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => stop.abort());
const [verb, queue, ...words] = process.argv.slice(2);
if (verb === "push" && words.length > 0) {
  for (const uid of await push(queue, words.map((word) => JSON.parse(word)))) console.log(uid);
} else if (verb === "work" && queue) {
  await work(queue, Number(words[0] ?? Infinity));
} else {
  console.error("usage: worker.mjs push QUEUE JSON... | work QUEUE [COUNT]");
  process.exitCode = 2;
}
