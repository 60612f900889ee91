/** Seconds, or a text such as "1h30m". */
export type Duration = number | string;

export interface MessageOptions {
  namespace?: string;
  /** Messages of one key are delivered one at a time, in order. */
  key?: string;
  /** Consumers may take some kinds alone. */
  kind?: string;
  /** The lowest goes first; 5 if it is not given. */
  priority?: number | "high" | "normal" | "low";
  /** From now. */
  delay?: Duration;
  /** The earliest delivery: RFC 3339, or a Date. */
  at?: string | Date;
  /** From the due time; then the message becomes a dead letter. */
  ttl?: Duration;
  /** A second message with a known key is not accepted. */
  idempotencyKey?: string;
  correlationId?: string;
  attributes?: Record<string, unknown>;
  contentType?: string;
  maxAttempts?: number;
  /** How long the result of the ack is kept. */
  keepResult?: Duration;
  traceparent?: string;
  tracestate?: string;
  /** The id of a batch that the message is a member of: createBatch. */
  batch?: string;
}

/** An accepted message. If it is a duplicate, the id is the id of the first message. */
export interface Pushed {
  id: string;
  duplicate: boolean;
}

export interface Message {
  /** A UUID: a number of 63 bits does not survive JSON.parse. */
  readonly id: string;
  readonly namespace: string;
  readonly queue: string;
  readonly payload: Uint8Array;
  readonly priority: number;
  /** Deliveries, this one included. */
  readonly attempts: number;
  readonly failures: number;
  /** Settles the message. */
  readonly receipt: string;
  /** Rises with every lease: let the systems that you write to refuse lower ones. */
  readonly fencingToken: bigint;
  readonly key?: string;
  readonly kind?: string;
  readonly contentType?: string;
  readonly correlationId?: string;
  readonly attributes?: unknown;
  /** What an earlier holder has stored: Client.checkpoint. */
  readonly checkpoint?: any;
  readonly traceparent?: string;
  readonly tracestate?: string;
  readonly error?: string;
  readonly enqueuedAt: Date;
  readonly leaseExpiresAt?: Date;
  /** True when a worker has learned that the lease has ended: stop, another worker may have the message. */
  readonly lost: boolean;
  /** True, with `lost`, if an operator has canceled the message: stop; what the handler returns ends it. */
  readonly canceled: boolean;
  text(): string;
  json(): any;
  /** What was pushed: JSON as its value, text as a string, everything else as bytes. */
  readonly body: any;
}

export interface Lock {
  readonly key: string;
  readonly fencingToken: bigint;
  /** True if the lease has ended. */
  readonly lost: boolean;
  /** The document as this holder sees it; undefined if the key has none. */
  read(): Promise<any>;
  write(document: unknown): Promise<void>;
  /** Changes the document in place: mutate("/attempts++", "/status=paid"). */
  mutate(...mutations: string[]): Promise<void>;
}

export interface QueueStats {
  namespace: string;
  queue: string;
  ready: number;
  delayed: number;
  leased: number;
  held: number;
  dead: number;
  damaged: number;
  total: number;
  paused: boolean;
  [more: string]: unknown;
}

export interface Batch {
  uid: string;
  namespace: string;
  status: "open" | "closed" | "done" | "failed" | "deadline";
  members: number;
  done: number;
  failed: number;
  pending: number;
  [more: string]: unknown;
}

export interface ClientOptions {
  /** URLs; by default SLUICE_SERVER, which may name several with commas between, or http://127.0.0.1:7171. */
  servers?: string | string[];
  /** By default SLUICE_TOKEN. */
  token?: string;
  /** By default SLUICE_NAMESPACE, or "default". */
  namespace?: string;
  /** Seconds for a request, beside the time that it waits: 30. */
  timeout?: number;
  /** Seconds for which a server that is away is tried again: 30. */
  patience?: number;
  /** Push bytes instead of JSON (docs/batch-format.md), which costs the server less. Older servers refuse them. */
  packed?: boolean;
  /** For https: ca, cert, key and others of node:https. */
  tls?: Record<string, unknown>;
}

export class Client {
  constructor(options?: ClientOptions);
  readonly namespace: string;
  close(): void;

  /** Sends a message: bytes as they are, a string as text, everything else as JSON. It is on disk afterwards. */
  push(queue: string, payload?: unknown, options?: MessageOptions): Promise<Pushed>;
  /** Sends up to 10,000 messages in one request, with the same options. */
  pushMany(queue: string, payloads: Iterable<unknown>, options?: MessageOptions): Promise<Pushed[]>;
  /** Sends messages with options of their own. */
  pushItems(items: Iterable<MessageOptions & { queue: string; payload?: unknown }>): Promise<Pushed[]>;
  /** Leases messages; waits for the first one. */
  take(queue: string, options?: {
    limit?: number; wait?: Duration; lease?: Duration; namespace?: string; signal?: AbortSignal;
    /** Messages of these kinds alone. */
    kinds?: string[];
  }): Promise<Message[]>;
  /** The work is done. The result is kept if the message has keepResult. */
  ack(message: Message, result?: unknown): Promise<void>;
  /** The work failed; with `defer` it is not a failure, with `dead` it is the last one. */
  nack(message: Message, options?: { error?: string; delay?: Duration; defer?: boolean; dead?: boolean }): Promise<void>;
  /** Extends leases; resolves to the messages whose lease is lost. */
  extend(messages: Message[], lease?: Duration): Promise<Message[]>;
  /**
   * Stores how far the work on a message has come, any JSON but null, and extends its lease. The next holder of the message has it
   * as message.checkpoint. Throws LeaseLost if another one may have the message.
   */
  checkpoint(message: Message, checkpoint: unknown, lease?: Duration): Promise<void>;
  /** The result of an ack. Throws if the message is not acked within the wait. */
  result(id: string, options?: { queue?: string; wait?: Duration; namespace?: string }): Promise<any>;

  peek(queue: string, options?: { state?: string; namespace?: string }): AsyncGenerator<Message>;
  deadLetters(queue: string, options?: { namespace?: string }): AsyncGenerator<Message>;
  /** Makes dead letters ready again: those with `ids`, or the oldest. Resolves to their number. */
  redrive(queue: string, options?: { ids?: string[]; limit?: number; namespace?: string }): Promise<number>;
  stats(queue: string, options?: { namespace?: string }): Promise<QueueStats>;
  queues(namespace?: string): AsyncGenerator<QueueStats>;
  /** The settings of a queue, after `changes`. */
  policy(queue: string, changes?: Record<string, unknown>, options?: { namespace?: string }): Promise<Record<string, any>>;

  /**
   * A group of messages. Resolves to its id, the option `batch` of its members. The callback begins when all members of the closed
   * batch have ended, or at the deadline.
   */
  createBatch(options?: {
    callback?: MessageOptions & { queue: string; payload?: unknown };
    timeout?: Duration;
    /** RFC 3339, or a Date. */
    deadline?: string | Date;
    namespace?: string;
  }): Promise<string>;
  /** No members join any more. */
  closeBatch(id: string, options?: { namespace?: string }): Promise<Batch>;
  batch(id: string, options?: { namespace?: string }): Promise<Batch>;
  batches(namespace?: string): AsyncGenerator<Batch>;

  /** Holds a lock while `work` runs; commits its document afterwards, or rolls it back if `work` throws. */
  lock<T>(key: string, work: (lock: Lock) => T | Promise<T>, options?: {
    /** Seconds of the lease, which is extended until the end: 30. */
    ttl?: number;
    /** Seconds to wait for a held key: without a limit. */
    wait?: number;
    namespace?: string;
  }): Promise<T>;
  /** The committed document of a key; undefined if it has none. */
  read(key: string, options?: { namespace?: string }): Promise<any>;
}

export interface WorkerOptions {
  client?: Client;
  namespace?: string;
  /** Handlers at once: 1. */
  concurrency?: number;
  /** Seconds; extended each third of it: 30. */
  lease?: number;
  /** Seconds of a long poll: 20. */
  wait?: number;
  /** Seconds for handlers to finish after a stop: 30. */
  grace?: number;
  /** Seconds between two beats, which tell the server that this worker lives; 0 for none: 5. */
  beat?: number;
  /** Stop on SIGTERM and SIGINT: true. */
  signals?: boolean;
  /** Receives warnings; by default console.error. */
  log?: (text: string) => void;
}

/**
 * Works on the messages of one queue. A handler that returns acks its message, with what it returns as the result. A
 * handler that throws nacks it: as the policy of the queue says, or as Retry, Defer and Reject say.
 */
/** A function, or a table of kinds and functions: then the worker takes messages of these kinds alone. */
export type Handler = (message: Message) => unknown;

export class Worker {
  constructor(queue: string, handler: Handler | Record<string, Handler>, options?: WorkerOptions);
  /** Works until stop is called, or until SIGTERM or SIGINT. */
  run(): Promise<void>;
  stop(): void;
}

export class SluiceError extends Error {}
/** No server of the list answered in time. */
export class Unreachable extends SluiceError {}
/** The request may have happened. */
export class OutcomeUnknown extends SluiceError {}
/** A server refused. Nothing has changed. */
export class Refusal extends SluiceError {
  readonly status: number;
  readonly error: string;
  readonly body: Record<string, any>;
  readonly retryAfter?: number;
}
export class Invalid extends Refusal {}
export class Unauthorized extends Refusal {}
export class Forbidden extends Refusal {}
export class NotFound extends Refusal {}
export class LeaseLost extends Refusal {}
/** An operator has canceled the message: stop its work and settle it. */
export class Canceled extends Refusal {}
export class Conflict extends Refusal {}
export class TooLarge extends Refusal {}
export class Throttled extends Refusal {}
export class Unavailable extends Refusal {}

/** Thrown by a handler: the work failed; try again after `delay`. */
export class Retry extends SluiceError {
  constructor(message?: string, delay?: Duration);
}
/** Thrown by a handler: not now, and not a failure. */
export class Defer extends SluiceError {
  constructor(delay?: Duration);
}
/** Thrown by a handler: a dead letter at once. */
export class Reject extends SluiceError {}
