"use strict";
// HTTP over connections that are kept.

const http = require("node:http");
const https = require("node:https");

/** The request did not leave: nothing can have happened. */
class NotSent extends Error {}

/** The request left, at least in part, and no whole answer came. */
class Broken extends Error {}

class Transport {
  constructor(timeout, tls) {
    this.timeout = timeout;
    this.agents = {
      "http:": new http.Agent({ keepAlive: true }),
      "https:": new https.Agent({ keepAlive: true, ...tls }),
    };
  }

  /** Resolves to { status, headers, text }. An aborted signal ends the request with Broken. */
  send(server, call, headers, signal) {
    return new Promise((resolve, reject) => {
      let sent = false;
      const fail = (error) => reject(new (sent ? Broken : NotSent)(error.message || error.code, { cause: error }));
      const url = new URL(server);
      const request = (url.protocol === "https:" ? https : http).request({
        protocol: url.protocol, hostname: url.hostname.replace(/^\[|\]$/g, ""), port: url.port, method: call.method,
        path: url.pathname.replace(/\/$/, "") + target(call), agent: this.agents[url.protocol], signal,
        headers: { "Content-Type": "application/json", ...headers, ...call.headers, "Content-Length": call.body?.length ?? 0 },
      });
      const seconds = this.timeout + (call.wait ?? 0);
      if (Number.isFinite(seconds))
        request.setTimeout(seconds * 1000, () => request.destroy(new Error("no answer in time")));
      request.on("socket", (socket) => {
        const connected = () => { sent = true; };
        if (socket.connecting) socket.once(url.protocol === "https:" ? "secureConnect" : "connect", connected);
        else connected();
      });
      request.on("error", fail);
      request.on("response", (response) => {
        const pieces = [];
        response.on("data", (piece) => pieces.push(piece));
        response.on("error", fail);
        response.on("aborted", () => fail(new Error("the connection ended within the answer")));
        response.on("end", () => resolve({
          status: response.statusCode, headers: response.headers, text: Buffer.concat(pieces).toString(),
        }));
      });
      request.end(call.body);
    });
  }

  close() {
    for (const agent of Object.values(this.agents)) agent.destroy();
  }
}

function target(call) {
  const query = Object.entries(call.query ?? {}).filter(([, value]) => value !== undefined);
  return query.length ? `${call.path}?${new URLSearchParams(query)}` : call.path;
}

module.exports = { Broken, NotSent, Transport };
