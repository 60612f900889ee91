"use strict";
// Which server a call asks, and whether it is asked again. Nothing here does I/O.
//
//  - A server that is away, starts, drains or does not have the queue: the next server of the list, until the patience
//    ends. A call that waits is patient for as long as it waits.
//  - A request that was sent and not answered is sent again if twice is the same as once. Otherwise the caller gets
//    OutcomeUnknown.
//  - Every other refusal is for the caller: limits, too.

const { LeaseLost, NotFound, OutcomeUnknown, Refusal, Unreachable } = require("./errors.js");
const { Broken } = require("./http.js");

const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 1000;

class Servers {
  constructor(given) {
    const list = given ?? process.env.SLUICE_SERVER ?? "http://127.0.0.1:7171";
    this.all = (Array.isArray(list) ? list : list.split(",")).map((text) => checked(text.trim()));
    if (!this.all.length) throw new TypeError("invalid servers: []; expected at least one");
    this.current = 0;
  }
}

function checked(text) {
  let url;
  try {
    url = new URL(text);
  } catch {
    // refused below
  }
  if (!url || !["http:", "https:"].includes(url.protocol) || !url.hostname || url.search || url.hash)
    throw new TypeError(`invalid server: ${text}; expected http://HOST:PORT`);
  return text;
}

/** The attempts of one call. Times are milliseconds of one clock. */
class Attempts {
  constructor(servers, call, patience, now) {
    this.servers = servers;
    this.call = call;
    this.until = now + Math.max(patience, call.wait ?? 0) * 1000;
    this.failed = 0;
    this.inDoubt = false;
    this.server = servers.all[servers.current];
  }

  /** An attempt in doubt did happen: the message is not ours any more. */
  happenedBefore(failure) {
    return this.inDoubt && this.call.goneIsDone && (failure instanceof NotFound || failure instanceof LeaseLost);
  }

  /** The milliseconds until the next attempt. Throws what the caller gets if there is none. */
  pauseAfter(failure, now) {
    if (failure instanceof Broken || failure.error === "outcome_unknown") {
      if (!this.call.repeatable)
        throw new OutcomeUnknown(`${this.call.path}: it may have happened: ${failure.message}`, { cause: failure });
      this.inDoubt = true;
    } else if (failure instanceof Refusal && ![408, 503].includes(failure.status)) {
      throw failure;
    }
    const pause = this.nextPause();
    if (now + pause > this.until) {
      if (failure instanceof Refusal) throw failure;
      throw new Unreachable(`${this.server}: ${failure.message}`, { cause: failure });
    }
    if (this.servers.all[this.servers.current] === this.server)
      this.servers.current = (this.servers.current + 1) % this.servers.all.length;
    this.server = this.servers.all[this.servers.current];
    return pause;
  }

  /** No pause while a server of the list was not tried, then longer ones. */
  nextPause() {
    this.failed++;
    const rounds = Math.floor(this.failed / this.servers.all.length);
    if (!rounds) return 0;
    return Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** Math.min(rounds, 10)) * (0.5 + Math.random() / 2);
  }
}

module.exports = { Attempts, Servers };
