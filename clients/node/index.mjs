import sluice from "./lib/index.js";

export const {
  Canceled, Client, Conflict, Defer, Forbidden, Invalid, LeaseLost, NotFound, OutcomeUnknown, Refusal, Reject, Retry,
  SluiceError, Throttled, TooLarge, Unauthorized, Unavailable, Unreachable, Worker,
} = sluice;
