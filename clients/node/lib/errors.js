"use strict";

/** The base of all errors here. */
class SluiceError extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** No server of the list answered in time. */
class Unreachable extends SluiceError {}

/** The request may have happened. Give messages idempotency keys, and this package repeats them itself. */
class OutcomeUnknown extends SluiceError {}

/** A server refused. Nothing has changed. docs/api.md, "Errors", lists the values of `error`. */
class Refusal extends SluiceError {
  constructor(status, body, retryAfter) {
    super(`${status} ${body.error ?? ""}: ${body.message ?? body.detail ?? "no text"}`);
    this.status = status;
    this.error = body.error ?? "";
    this.body = body;
    this.retryAfter = retryAfter;
  }
}

class Invalid extends Refusal {}
class Unauthorized extends Refusal {}
class Forbidden extends Refusal {}
class NotFound extends Refusal {}
class LeaseLost extends Refusal {}
/** An operator has canceled the message: stop its work and settle it. The lease cannot be extended. */
class Canceled extends Refusal {}
class Conflict extends Refusal {}
class TooLarge extends Refusal {}
class Throttled extends Refusal {}
class Unavailable extends Refusal {}

const BY_ERROR = { lease_lost: LeaseLost, lease_required: LeaseLost, message_canceled: Canceled };
const BY_STATUS = {
  400: Invalid, 401: Unauthorized, 403: Forbidden, 404: NotFound, 405: Invalid, 409: Conflict, 413: TooLarge,
  429: Throttled, 503: Unavailable,
};

function refusal(status, body, retryAfter) {
  const Kind = BY_ERROR[body.error] ?? BY_STATUS[status] ?? Refusal;
  return new Kind(status, body, retryAfter);
}

/** Thrown by a handler: the work failed; try again after `delay`, or as the policy of the queue says. */
class Retry extends SluiceError {
  constructor(message = "", delay = undefined) {
    super(message);
    this.delay = delay;
  }
}

/** Thrown by a handler: not now, and not a failure; the message comes again after `delay`. */
class Defer extends SluiceError {
  constructor(delay = 0) {
    super("deferred");
    this.delay = delay;
  }
}

/** Thrown by a handler: the work can never succeed; the message becomes a dead letter at once. */
class Reject extends SluiceError {}

module.exports = {
  Canceled, Conflict, Defer, Forbidden, Invalid, LeaseLost, NotFound, OutcomeUnknown, Refusal, Reject, Retry, SluiceError, Throttled,
  TooLarge, Unauthorized, Unavailable, Unreachable, refusal,
};
