#include "peer/op_fields.h"

#include <stddef.h>

/* ---- Verbs ---- */

/* BACKUP, PRESENCE and MOVE are about a store that has no other nodes: FIELDS-3. */
const uint8_t op_wire[OP_VERBS] = {
	[OP_ENQUEUE] = 1,
	[OP_CLAIM] = 2,
	[OP_RETURN] = 3,
	[OP_ACK] = 4,
	[OP_NACK] = 5,
	[OP_EXTEND] = 6,
	[OP_REDRIVE] = 7,
	[OP_DELETE] = 8,
	[OP_QUARANTINE] = 9,
	[OP_GET] = 10,
	[OP_PEEK] = 11,
	[OP_WATCH] = 12,
	[OP_LIST] = 13,
	[OP_RESULT] = 14,
	[OP_STATS] = 15,
	[OP_QUEUES] = 16,
	[OP_PURGE] = 17,
	[OP_PAUSE] = 18,
	[OP_POLICY_GET] = 19,
	[OP_POLICY_SET] = 20,
	[OP_FORGET] = 21,
	[OP_SHARD] = 22,
	[OP_ACQUIRE] = 23,
	[OP_KEEPALIVE] = 24,
	[OP_RELEASE] = 25,
	[OP_STATE_GET] = 26,
	[OP_STATE_PUT] = 27,
	[OP_STATE_REMOVE] = 28,
	[OP_STATE_META] = 29,
	[OP_DESCRIBE] = 30,
	[OP_KEYS] = 31,
	[OP_ATTACHMENTS] = 32,
	[OP_INTAKE] = 33,
	[OP_WHY] = 50,
	[OP_FINISH] = 51,
	[OP_SCHEDULE] = 52,
	[OP_LIMITS] = 56,
	[OP_HOLD] = 57,
	[OP_TREND] = 60,
	[OP_ADJUST] = 61,
};

#define V(verb) (1ull << OP_##verb)

#define ALL        UINT64_MAX
#define NO         0
#define ENQUEUES   (V(ENQUEUE) | V(INTAKE) | V(FINISH) | V(SCHEDULE))
#define PUTS       (ENQUEUES | V(STATE_PUT))
#define ITEMS      (V(ACK) | V(NACK) | V(FINISH) | V(SCHEDULE) | V(EXTEND) | V(REDRIVE) | V(DELETE) | V(QUARANTINE) | V(ADJUST))
#define ROWS       (V(CLAIM) | V(GET) | V(PEEK) | V(LIST) | V(WHY))
#define QUEUE_ROWS (V(STATS) | V(QUEUES) | V(WHY))
#define KEY_ROWS   (V(KEYS) | V(ATTACHMENTS))
#define WAITS      (V(CLAIM) | V(PEEK) | V(WATCH) | V(RESULT) | V(ACQUIRE))
#define PAGES      (V(LIST) | V(QUEUES) | V(SHARD) | V(FORGET) | V(LIMITS))
#define AT_LANE    (V(GET) | V(WHY) | V(RESULT) | V(DELETE) | V(STATS) | V(INTAKE) | V(TREND))
#define POLICIES   (V(PAUSE) | V(POLICY_GET) | V(POLICY_SET))
#define STAGES     (V(STATE_PUT) | V(STATE_REMOVE) | V(STATE_META))
#define HOLDS      (V(KEEPALIVE) | V(RELEASE) | V(STATE_GET) | STAGES | V(ATTACHMENTS))
#define LOCKS      (V(ACQUIRE) | HOLDS | V(DESCRIBE) | V(KEYS))

/* ---- Elements of lists ---- */

#define ROW(type, member) offsetof(struct type, member), sizeof(((struct type *)0)->member)

/* clang-format off */

#define AT(member) ROW(op_put, member)
static const struct op_field put_fields[] = {
	{ "id",           1,  FIELD_U64,   AT(m.id), 0, NO, ENQUEUES, NULL },
	{ "namespace",    2,  FIELD_SLICE, AT(m.space), MESSAGE_NAME_MAX, PUTS, NO, NULL },
	{ "queue",        3,  FIELD_SLICE, AT(m.queue), MESSAGE_NAME_MAX, PUTS, NO, NULL },
	{ "key",          4,  FIELD_SLICE, AT(m.key), MESSAGE_KEY_MAX, PUTS, NO, NULL },
	{ "idempotency",  5,  FIELD_SLICE, AT(m.idem), MESSAGE_KEY_MAX, PUTS, NO, NULL },
	{ "correlation",  6,  FIELD_SLICE, AT(m.correlation), MESSAGE_CORRELATION_MAX, PUTS, NO, NULL },
	{ "type",         7,  FIELD_SLICE, AT(m.type), MESSAGE_TYPE_MAX, PUTS, NO, NULL },
	{ "attributes",   8,  FIELD_SLICE, AT(m.attributes), MESSAGE_ATTRIBUTES_MAX, PUTS, NO, NULL },
	{ "trace",        9,  FIELD_SLICE, AT(m.trace), MESSAGE_TRACE_MAX, PUTS, NO, NULL },
	{ "priority",     10, FIELD_I32,   AT(m.prio), 0, PUTS, NO, NULL },
	{ "attempts",     11, FIELD_U16,   AT(m.max_attempts), 0, PUTS, NO, NULL },
	{ "keep",         12, FIELD_TIME,  AT(m.keep), 0, PUTS, NO, NULL },
	{ "due",          13, FIELD_TIME,  AT(m.due), 0, PUTS, ENQUEUES, NULL },
	{ "delay",        14, FIELD_TIME,  AT(delay), 0, PUTS, NO, NULL },
	{ "ttl",          15, FIELD_TIME,  AT(ttl), 0, PUTS, NO, NULL },
	{ "spelt",        16, FIELD_SLICE, AT(as.space), MESSAGE_NAME_MAX, PUTS, NO, NULL },
	{ "queue_spelt",  17, FIELD_SLICE, AT(as.queue), MESSAGE_NAME_MAX, PUTS, NO, NULL },
	{ "payload_size", 18, FIELD_U64,   AT(m.payload_size), 0, PUTS, NO, NULL },
	{ "payload",      19, FIELD_SLICE, AT(m.payload), MESSAGE_PAYLOAD_MAX, PUTS, NO, NULL },
	{ "number",       20, FIELD_U64,   AT(m.number), 0, NO, ENQUEUES, NULL },
	{ "accepted",     21, FIELD_TIME,  AT(m.accepted), 0, NO, ENQUEUES, NULL },
	{ "expires",      22, FIELD_TIME,  AT(m.expires), 0, NO, ENQUEUES, NULL },
	{ "existed",      23, FIELD_BOOL,  AT(existed), 0, NO, ENQUEUES, NULL },
	{ "attempts_set", 24, FIELD_U16,   AT(max_attempts), 0, NO, ENQUEUES, NULL },
	{ "file",         25, FIELD_U64,   AT(m.file), 0, PUTS, NO, NULL },
	{ "mark",         26, FIELD_U32,   AT(m.mark), 0, PUTS, NO, NULL },
	{ "digest",       27, FIELD_U64,   AT(m.digest), 0, PUTS, NO, NULL },
	{ "share",        40, FIELD_SLICE, AT(m.share), MESSAGE_SHARE_MAX, PUTS, NO, NULL },
	{ "given",        60, FIELD_U64,   AT(given), 0, V(INTAKE), NO, NULL },
	{ "pending",      61, FIELD_BOOL,  AT(pending), 0, NO, V(FINISH), NULL },
	{ "source",       70, FIELD_SLICE, AT(m.source), MESSAGE_NAME_MAX, PUTS, NO, NULL },
	{ "sent",         71, FIELD_TIME,  AT(m.sent), 0, PUTS, NO, NULL },
	{ "reason",       72, FIELD_U64,   AT(m.reason), 0, PUTS, NO, NULL },
	{ "error",        73, FIELD_SLICE, AT(m.error), MESSAGE_ERROR_MAX, PUTS, NO, NULL },
	{ "lease",        74, FIELD_TIME,  AT(m.terms.lease), 0, PUTS, NO, NULL },
	{ "run",          75, FIELD_TIME,  AT(m.terms.run), 0, PUTS, NO, NULL },
	{ "retry",        76, FIELD_U64,   AT(m.terms.retry), 0, PUTS, NO, NULL },
	{ "retry_base",   77, FIELD_TIME,  AT(m.terms.retry_base), 0, PUTS, NO, NULL },
	{ "retry_max",    78, FIELD_TIME,  AT(m.terms.retry_max), 0, PUTS, NO, NULL },
	{ "deadline",     79, FIELD_TIME,  AT(deadline), 0, PUTS, NO, NULL },
	{ "value",        80, FIELD_SLICE, AT(m.value), MESSAGE_VALUE_MAX, PUTS, NO, NULL },
	{ "unique",       81, FIELD_U64,   AT(m.terms.unique), 0, PUTS, NO, NULL },
	{ "unique_for",   82, FIELD_TIME,  AT(m.terms.unique_for), 0, PUTS, NO, NULL },
	{ "replace",      83, FIELD_BOOL,  AT(replace), 0, ENQUEUES, NO, NULL },
	{ "replaced",     84, FIELD_BOOL,  AT(replaced), 0, NO, V(ENQUEUE), NULL },
	{ "batch",        100, FIELD_U64,  AT(m.terms.batch), 0, PUTS, NO, NULL },
};
#undef AT

#define AT(member) ROW(op_item, member)
static const struct op_field item_fields[] = {
	{ "namespace", 1,  FIELD_SLICE, AT(space), MESSAGE_NAME_MAX, ITEMS, NO, NULL },
	{ "queue",     2,  FIELD_SLICE, AT(queue), MESSAGE_NAME_MAX, ITEMS, NO, NULL },
	{ "id",        3,  FIELD_U64,   AT(id), 0, ITEMS, NO, NULL },
	{ "token",     4,  FIELD_U64,   AT(token), 0, ITEMS, NO, NULL },
	{ "time",      5,  FIELD_TIME,  AT(time), 0, ITEMS, NO, NULL },
	{ "defer",     6,  FIELD_BOOL,  AT(defer), 0, ITEMS, NO, NULL },
	{ "dead",      7,  FIELD_BOOL,  AT(dead), 0, ITEMS, NO, NULL },
	{ "text",      8,  FIELD_SLICE, AT(text), MESSAGE_PAYLOAD_MAX, ITEMS, NO, NULL },
	{ "rc",        9,  FIELD_U32,   AT(rc), SLU_CODE_END - 1, NO, ITEMS, NULL },
	{ "until",     10, FIELD_TIME,  AT(until), 0, NO, ITEMS, NULL },
	{ "died",      11, FIELD_BOOL,  AT(died), 0, NO, ITEMS, NULL },
	{ "nack",      50, FIELD_BOOL,  AT(nack), 0, V(FINISH), NO, NULL },
	{ "scope",     52, FIELD_U8,    AT(scope), GATE_KINDS, V(NACK) | V(FINISH), NO, NULL },
	{ "hold",      53, FIELD_TIME,  AT(hold), 0, V(NACK) | V(FINISH), NO, NULL },
	{ "has_prio",  54, FIELD_BOOL,  AT(has_prio), 0, V(NACK) | V(FINISH) | V(ADJUST), NO, NULL },
	{ "priority",  55, FIELD_I32,   AT(prio), 0, V(NACK) | V(FINISH) | V(ADJUST), NO, NULL },
	{ "reason",    56, FIELD_SLICE, AT(reason), BREAKER_NAME - 1, V(NACK) | V(FINISH), NO, NULL },
	{ "remove",    60, FIELD_BOOL,  AT(remove), 0, V(FINISH) | V(SCHEDULE), NO, NULL },
	{ "number",    61, FIELD_U64,   AT(number), 0, V(SCHEDULE), NO, NULL },
	{ "delayed",   62, FIELD_BOOL,  AT(delayed), 0, V(REDRIVE), NO, NULL },
	{ "cancel",    63, FIELD_BOOL,  AT(cancel), 0, V(DELETE), NO, NULL },
	{ "runs",      64, FIELD_BOOL,  AT(runs), 0, NO, V(DELETE), NULL },
	{ "guarded",   65, FIELD_BOOL,  AT(guarded), 0, V(ADJUST), NO, NULL },
	{ "was_prio",  66, FIELD_I32,   AT(was_prio), 0, V(ADJUST), NO, NULL },
	{ "was_due",   67, FIELD_TIME,  AT(was_due), 0, V(ADJUST), NO, NULL },
};
#undef AT

#define AT(member) ROW(op_row, member)
static const struct op_field row_fields[] = {
	{ "id",            1,  FIELD_U64,   AT(id), 0, V(RETURN), ROWS, NULL },
	{ "token",         2,  FIELD_U64,   AT(token), 0, V(RETURN), ROWS, NULL },
	{ "until",         3,  FIELD_TIME,  AT(until), 0, NO, ROWS, NULL },
	{ "claimed",       4,  FIELD_TIME,  AT(claimed), 0, NO, ROWS, NULL },
	{ "due",           5,  FIELD_TIME,  AT(due), 0, NO, ROWS, NULL },
	{ "expires",       6,  FIELD_TIME,  AT(expires), 0, NO, ROWS, NULL },
	{ "number",        7,  FIELD_U64,   AT(number), 0, NO, ROWS, NULL },
	{ "priority",      8,  FIELD_I32,   AT(prio), 0, NO, ROWS, NULL },
	{ "attempts",      9,  FIELD_U16,   AT(attempts), 0, NO, ROWS, NULL },
	{ "failures",      10, FIELD_U16,   AT(failures), 0, NO, ROWS, NULL },
	{ "max_attempts",  11, FIELD_U16,   AT(max_attempts), 0, NO, ROWS, NULL },
	{ "state",         12, FIELD_U8,    AT(state), MSG_STATES - 1, NO, ROWS | V(RETURN), NULL },
	{ "flags",         13, FIELD_U8,    AT(flags), 0, NO, ROWS, NULL },
	{ "reason",        14, FIELD_U8,    AT(reason), 0, NO, ROWS, NULL },
	{ "after",         15, FIELD_U64,   AT(after), 0, NO, V(LIST), NULL },
	{ "state_version", 16, FIELD_U64,   AT(state_version), 0, NO, V(CLAIM), NULL },
	{ "state_etag",    17, FIELD_U64,   AT(state_etag), 0, NO, V(CLAIM), NULL },
	{ "holder",        18, FIELD_HOLDER, AT(holder), HOLDER_MAX, NO, ROWS, NULL },
	{ "record",        19, FIELD_REF,   AT(record), 0, NO, ROWS, NULL },
	{ "payload",       20, FIELD_REF,   AT(payload), 0, NO, ROWS, NULL },
	{ "error",         21, FIELD_REF,   AT(error), 0, NO, ROWS, NULL },
};
#undef AT

#define AT(member) ROW(op_queue, member)
static const struct op_field queue_fields[] = {
	{ "namespace",  1, FIELD_TEXT, AT(space), 0, NO, QUEUE_ROWS, NULL },
	{ "name",       2, FIELD_TEXT, AT(name), 0, NO, QUEUE_ROWS, NULL },
	{ "spelt",      3, FIELD_TEXT, AT(space_shown), 0, NO, QUEUE_ROWS, NULL },
	{ "name_spelt", 4, FIELD_TEXT, AT(shown), 0, NO, QUEUE_ROWS, NULL },
	{ "count",      5, FIELD_U32S, AT(count), 0, NO, QUEUE_ROWS, NULL },
	{ "totals",     6, FIELD_U64S, AT(totals), 0, NO, QUEUE_ROWS, NULL },
	{ "oldest",     7, FIELD_TIME, AT(oldest), 0, NO, QUEUE_ROWS, NULL },
	{ "warn_depth", 8, FIELD_U32,  AT(warn_depth), 0, NO, QUEUE_ROWS, NULL },
	{ "paused",     9, FIELD_BOOL, AT(paused), 0, NO, QUEUE_ROWS, NULL },
	{ "held",      10, FIELD_TIME, AT(held), 0, NO, QUEUE_ROWS, NULL },
	{ "now",       11, FIELD_TIME, AT(now), 0, NO, QUEUE_ROWS, NULL },
	{ "paused_until", 12, FIELD_TIME, AT(pause.until), 0, NO, QUEUE_ROWS, NULL },
	{ "pause_reason", 13, FIELD_TEXT, AT(pause.reason), 0, NO, QUEUE_ROWS, NULL },
	{ "paused_by", 14, FIELD_TEXT, AT(pause.by), 0, NO, QUEUE_ROWS, NULL },
	{ "wait",      15, FIELD_TIME, AT(wait), 0, NO, QUEUE_ROWS, NULL },
	{ "empty",     16, FIELD_TIME, AT(empty), 0, NO, QUEUE_ROWS, NULL },
	{ "draining",  17, FIELD_BOOL, AT(draining), 0, NO, QUEUE_ROWS, NULL },
	{ "warn_age",  18, FIELD_TIME, AT(warn_age), 0, NO, QUEUE_ROWS, NULL },
	{ "tags",      19, FIELD_TEXT, AT(tags), 0, NO, QUEUE_ROWS, NULL },
	{ "letters",    20, FIELD_TEXT, AT(letters), 0, NO, QUEUE_ROWS, NULL },
};
#undef AT

#define AT(member) ROW(op_key, member)
static const struct op_field key_fields[] = {
	{ "name",    1, FIELD_TEXT, AT(name), 0, NO, KEY_ROWS, NULL },
	{ "version", 2, FIELD_U64,  AT(version), 0, NO, KEY_ROWS, NULL },
	{ "etag",    3, FIELD_U64,  AT(etag), 0, NO, KEY_ROWS, NULL },
	{ "updated", 4, FIELD_TIME, AT(updated), 0, NO, KEY_ROWS, NULL },
	{ "record",  5, FIELD_REF,  AT(record), 0, NO, KEY_ROWS, NULL },
	{ "payload", 6, FIELD_REF,  AT(payload), 0, NO, KEY_ROWS, NULL },
};
#undef AT

#define AT(member) ROW(op_use, member)
static const struct op_field use_fields[] = {
	{ "kind",        1,  FIELD_U8,   AT(kind), GATE_KINDS - 1, NO, V(LIMITS), NULL },
	{ "is_hold",     2,  FIELD_BOOL, AT(is_hold), 0, NO, V(LIMITS), NULL },
	{ "name",        3,  FIELD_TEXT, AT(name), 0, NO, V(LIMITS), NULL },
	{ "messages",    4,  FIELD_U32,  AT(messages), 0, NO, V(LIMITS), NULL },
	{ "ready",       5,  FIELD_U32,  AT(ready), 0, NO, V(LIMITS), NULL },
	{ "leased",      6,  FIELD_U32,  AT(leased), 0, NO, V(LIMITS), NULL },
	{ "concurrency", 7,  FIELD_U32,  AT(concurrency), 0, NO, V(LIMITS), NULL },
	{ "rate",        8,  FIELD_U32,  AT(rate), 0, NO, V(LIMITS), NULL },
	{ "burst",       9,  FIELD_U32,  AT(burst), 0, NO, V(LIMITS), NULL },
	{ "tokens",      10, FIELD_U32,  AT(tokens), 0, NO, V(LIMITS), NULL },
	{ "weight",      11, FIELD_U32,  AT(weight), 0, NO, V(LIMITS), NULL },
	{ "delivered",   12, FIELD_U64,  AT(delivered), 0, NO, V(LIMITS), NULL },
	{ "until",       13, FIELD_TIME, AT(until), 0, NO, V(LIMITS), NULL },
	{ "hold",        14, FIELD_TIME, AT(hold), 0, NO, V(LIMITS), NULL },
	{ "circuit",     15, FIELD_U8,   AT(circuit), CIRCUIT_HALF, NO, V(LIMITS), NULL },
	{ "probed",      16, FIELD_BOOL, AT(probed), 0, NO, V(LIMITS), NULL },
	{ "breaker",     17, FIELD_TEXT, AT(breaker), 0, NO, V(LIMITS), NULL },
	{ "waiting",     18, FIELD_U32,  AT(waiting), 0, NO, V(LIMITS), NULL },
	{ "oldest",      19, FIELD_TIME, AT(oldest), 0, NO, V(LIMITS), NULL },
};
#undef AT

#define AT(member) ROW(trend_row, member)
static const struct op_field step_fields[] = {
	{ "values", 1, FIELD_BYTES, AT(v), 0, NO, V(TREND), NULL },
};
#undef AT

#define LIST(fields, type, count, room, same) \
	{ fields, COUNT(fields), sizeof(struct type), offsetof(struct op, count), offsetof(struct op, room), same }

static const struct op_list list_puts = LIST(put_fields, op_put, n_puts, n_puts, true);
static const struct op_list list_items = LIST(item_fields, op_item, n_items, n_items, true);
static const struct op_list list_rows = LIST(row_fields, op_row, n_rows, max_rows, false);
static const struct op_list list_returned = LIST(row_fields, op_row, n_rows, n_rows, true);
static const struct op_list list_queues = LIST(queue_fields, op_queue, n_queues, max_queues, false);
static const struct op_list list_uses = LIST(use_fields, op_use, n_uses, max_uses, false);
static const struct op_list list_steps = LIST(step_fields, trend_row, n_steps, max_steps, false);
static const struct op_list list_keys = LIST(key_fields, op_key, n_keys, max_keys, false);

/* ---- The op ---- */

#define AT(member) ROW(op, member)
const struct op_field op_fields[] = {
	{ "namespace",     1,   FIELD_SLICE, AT(space), MESSAGE_NAME_MAX, ALL, NO, NULL },
	{ "queue",         2,   FIELD_SLICE, AT(queue), MESSAGE_NAME_MAX, ALL, NO, NULL },
	{ "wait",          3,   FIELD_TIME,  AT(wait), 0, WAITS, NO, NULL },
	{ "spelt",         4,   FIELD_SLICE, AT(as.space), MESSAGE_NAME_MAX, ENQUEUES | V(POLICY_SET), NO, NULL },
	{ "queue_spelt",   5,   FIELD_SLICE, AT(as.queue), MESSAGE_NAME_MAX, ENQUEUES | V(POLICY_SET), NO, NULL },
	{ "id",            6,   FIELD_U64,   AT(id), 0, V(GET) | V(WHY) | V(RESULT) | V(WATCH), V(WATCH), NULL },
	{ "cursor",        7,   FIELD_U64,   AT(cursor), 0, PAGES | AT_LANE, PAGES, NULL },
	{ "state",         8,   FIELD_U32,   AT(state), MSG_STATES - 1, V(LIST) | V(PEEK), NO, NULL },
	{ "here",          9,   FIELD_BOOL,  AT(here), 0, V(STATS) | V(TREND), NO, NULL },
	{ "force",         10,  FIELD_BOOL,  AT(force), 0, V(FORGET), NO, NULL },
	{ "max_rows",      11,  FIELD_U32,   AT(max_rows), 0, ROWS, NO, NULL },
	{ "max_queues",    12,  FIELD_U32,   AT(max_queues), 0, QUEUE_ROWS, NO, NULL },
	{ "max_keys",      13,  FIELD_U32,   AT(max_keys), 0, KEY_ROWS, NO, NULL },
	{ "max_uses",      14,  FIELD_U32,   AT(max_uses), 0, V(LIMITS), NO, NULL },

	{ "rc",            20,  FIELD_U32,   AT(rc), SLU_CODE_END - 1, NO, ALL, NULL },
	{ "error",         21,  FIELD_TEXT,  AT(err.text), 0, NO, ALL, NULL },
	{ "limit",         22,  FIELD_LIMIT, AT(err.limit), 0, NO, ALL, NULL },
	{ "retry_after",   23,  FIELD_TIME,  AT(err.retry_after), 0, NO, ALL, NULL },
	{ "shard",         24,  FIELD_U32,   AT(err.shard), 0, NO, ALL, NULL },
	{ "length",        25,  FIELD_U32,   AT(err.length), 0, NO, ALL, NULL },
	{ "capacity",      26,  FIELD_U32,   AT(err.capacity), 0, NO, ALL, NULL },
	{ "failed",        27,  FIELD_U32,   AT(failed), 0, NO, ENQUEUES, NULL },
	{ "count",         28,  FIELD_U64,   AT(count), 0, NO, V(PURGE) | V(FORGET) | V(STATS) | V(WHY) | V(STATE_REMOVE) | V(DESCRIBE), NULL },
	{ "result",        29,  FIELD_REF,   AT(result), 0, NO, V(RESULT), NULL },
	{ "until",         30,  FIELD_TIME,  AT(until), 0, NO, V(RESULT), NULL },

	{ "lease",         40,  FIELD_TIME,  AT(claim.lease), 0, V(CLAIM), NO, NULL },
	{ "max_bytes",     41,  FIELD_U64,   AT(claim.max_bytes), 0, V(CLAIM), NO, NULL },
	{ "holder",        42,  FIELD_SLICE, AT(claim.holder), LOCK_HOLDER_MAX, V(CLAIM), NO, NULL },
	{ "stream",        43,  FIELD_U64,   AT(claim.stream), 0, V(CLAIM), NO, NULL },
	{ "credit",        44,  FIELD_U32,   AT(claim.credit), 0, V(CLAIM), NO, NULL },
	{ "stateful",      45,  FIELD_BOOL,  AT(claim.stateful), 0, V(CLAIM), NO, NULL },
	{ "spare",         46,  FIELD_BOOL,  AT(claim.spare), 0, V(RETURN), NO, NULL },
	{ "only",          47,  FIELD_U64,   AT(claim.id), 0, V(CLAIM), NO, NULL },
	{ "kinds",         48,  FIELD_SLICE, AT(claim.kinds), KINDS_TEXT, V(CLAIM), NO, NULL },

	{ "key",           60,  FIELD_SLICE, AT(lock.key), LOCK_KEY_MAX, LOCKS, NO, NULL },
	{ "name",          61,  FIELD_SLICE, AT(lock.name), LOCK_NAME_MAX, LOCKS, NO, NULL },
	{ "holder",        62,  FIELD_SLICE, AT(lock.holder), LOCK_HOLDER_MAX, V(ACQUIRE), NO, NULL },
	{ "token",         63,  FIELD_U64,   AT(lock.token), 0, HOLDS, LOCKS, NULL },
	{ "fence",         64,  FIELD_U64,   AT(lock.fence), 0, HOLDS, NO, NULL },
	{ "txn",           65,  FIELD_BYTES, AT(lock.txn), 0, LOCKS, LOCKS, NULL },
	{ "ttl",           66,  FIELD_TIME,  AT(lock.ttl), 0, V(ACQUIRE) | V(KEEPALIVE), NO, NULL },
	{ "if_version",    67,  FIELD_VERSION, AT(lock.if_version), 0, STAGES, NO, NULL },
	{ "if_etag",       68,  FIELD_U64,   AT(lock.if_etag), 0, STAGES, NO, NULL },
	{ "if_absent",     69,  FIELD_BOOL,  AT(lock.if_absent), 0, V(ACQUIRE) | STAGES, NO, NULL },
	{ "rollback",      70,  FIELD_BOOL,  AT(lock.rollback), 0, V(RELEASE), NO, NULL },
	{ "undo",          71,  FIELD_BOOL,  AT(lock.undo), 0, V(RELEASE), NO, NULL },
	{ "all",           72,  FIELD_BOOL,  AT(lock.all), 0, V(STATE_REMOVE) | V(KEYS), NO, NULL },
	{ "hidden",        73,  FIELD_BOOL,  AT(lock.hidden), 0, V(STATE_META), LOCKS, NULL },
	{ "why",           74,  FIELD_U32,   AT(lock.why), LOCK_WHYS - 1, NO, LOCKS, NULL },
	{ "more",          75,  FIELD_BOOL,  AT(lock.more), 0, NO, KEY_ROWS, NULL },
	{ "version",       76,  FIELD_U64,   AT(lock.version), 0, NO, LOCKS, NULL },
	{ "etag",          77,  FIELD_U64,   AT(lock.etag), 0, NO, LOCKS, NULL },
	{ "updated",       78,  FIELD_TIME,  AT(lock.updated), 0, NO, LOCKS, NULL },
	{ "lock_until",    79,  FIELD_TIME,  AT(lock.until), 0, NO, LOCKS, NULL },
	{ "held_by",       80,  FIELD_HELD_BY, AT(lock.held_by), LOCK_HOLDER_MAX, V(DESCRIBE) | V(KEEPALIVE), V(DESCRIBE) | V(KEEPALIVE), NULL },
	{ "record",        81,  FIELD_REF,   AT(lock.record), 0, NO, V(STATE_GET), NULL },
	{ "payload",       82,  FIELD_REF,   AT(lock.payload), 0, NO, V(STATE_GET), NULL },
	{ "unlock",        83,  FIELD_SLICE, AT(unlock.key), LOCK_KEY_MAX, V(FINISH), NO, NULL },
	{ "unlock_token",  84,  FIELD_U64,   AT(unlock.token), 0, V(FINISH), NO, NULL },
	{ "unlock_fence",  85,  FIELD_U64,   AT(unlock.fence), 0, V(FINISH), NO, NULL },
	{ "unlock_txn",    86,  FIELD_BYTES, AT(unlock.txn), 0, V(FINISH), NO, NULL },
	{ "unlock_state",  87,  FIELD_SLICE, AT(unlock.state), MESSAGE_PAYLOAD_MAX, V(FINISH), NO, NULL },

	{ "policy_lease",  100, FIELD_TIME,  AT(policy.lease), 0, POLICIES, POLICIES, NULL },
	{ "max_attempts",  101, FIELD_U32,   AT(policy.max_attempts), 0, POLICIES, POLICIES, NULL },
	{ "retry",         102, FIELD_U32,   AT(policy.retry.kind), SLU_BACKOFF_FUNCTION - 1, POLICIES, POLICIES, NULL },
	{ "jitter",        103, FIELD_U32,   AT(policy.retry.jitter), SLU_JITTER_FULL, POLICIES, POLICIES, NULL },
	{ "retry_base",    104, FIELD_TIME,  AT(policy.retry.base), 0, POLICIES, POLICIES, NULL },
	{ "retry_max",     105, FIELD_TIME,  AT(policy.retry.max), 0, POLICIES, POLICIES, NULL },
	{ "policy_ttl",    106, FIELD_TIME,  AT(policy.ttl), 0, POLICIES, POLICIES, NULL },
	{ "max_depth",     107, FIELD_U32,   AT(policy.max_depth), 0, POLICIES, POLICIES, NULL },
	{ "max_rate",      108, FIELD_U32,   AT(policy.max_rate), 0, POLICIES, POLICIES, NULL },
	{ "burst",         109, FIELD_U32,   AT(policy.burst), 0, POLICIES, POLICIES, NULL },
	{ "warn_depth",    110, FIELD_U32,   AT(policy.warn_depth), 0, POLICIES, POLICIES, NULL },
	{ "window",        111, FIELD_TIME,  AT(policy.window), 0, POLICIES, POLICIES, NULL },
	{ "dlq_retention", 112, FIELD_TIME,  AT(policy.dlq_retention), 0, POLICIES, POLICIES, NULL },
	{ "dlq_max",       113, FIELD_U32,   AT(policy.dlq_max), 0, POLICIES, POLICIES, NULL },
	{ "strict",        114, FIELD_BOOL,  AT(policy.strict), 0, POLICIES, POLICIES, NULL },
	{ "require_lease", 115, FIELD_BOOL,  AT(policy.require_lease), 0, POLICIES, POLICIES, NULL },
	{ "paused",        116, FIELD_BOOL,  AT(policy.paused), 0, POLICIES, POLICIES, NULL },
	{ "share_weights", 117, FIELD_TEXT,  AT(policy.share_weights), 0, POLICIES, POLICIES, NULL },
	{ "concurrency",   118, FIELD_U32,   AT(policy.concurrency), 0, POLICIES, POLICIES, NULL },
	{ "share_concurrency", 119, FIELD_U32, AT(policy.share_concurrency), 0, POLICIES, POLICIES, NULL },
	{ "rate",          120, FIELD_U32,   AT(policy.rate), 0, POLICIES, POLICIES, NULL },
	{ "rate_burst",    121, FIELD_U32,   AT(policy.rate_burst), 0, POLICIES, POLICIES, NULL },
	{ "share_rate",    122, FIELD_U32,   AT(policy.share_rate), 0, POLICIES, POLICIES, NULL },
	{ "share_rate_burst", 123, FIELD_U32, AT(policy.share_rate_burst), 0, POLICIES, POLICIES, NULL },
	{ "key_rate",      124, FIELD_U32,   AT(policy.key_rate), 0, POLICIES, POLICIES, NULL },
	{ "key_rate_burst", 125, FIELD_U32,  AT(policy.key_rate_burst), 0, POLICIES, POLICIES, NULL },
	{ "by_priority",   126, FIELD_BOOL,  AT(limits.by_priority), 0, V(LIMITS), NO, NULL },
	{ "looked",        127, FIELD_U32,   AT(limits.looked), 0, NO, V(LIMITS), NULL },
	{ "warn_age",      128, FIELD_TIME,  AT(policy.warn_age), 0, POLICIES, POLICIES, NULL },
	{ "tags",          129, FIELD_TEXT,  AT(policy.tags), 0, POLICIES, POLICIES, NULL },

	{ "messages",      130, FIELD_U64,   AT(on_shard.messages), 0, NO, V(SHARD), NULL },
	{ "keys",          131, FIELD_U64,   AT(on_shard.keys), 0, NO, V(SHARD), NULL },
	{ "idempotency",   132, FIELD_U64,   AT(on_shard.idempotency), 0, NO, V(SHARD), NULL },
	{ "results",       133, FIELD_U64,   AT(on_shard.results), 0, NO, V(SHARD), NULL },
	{ "forgotten",     134, FIELD_U64S,  AT(on_shard.forgotten), 0, NO, V(SHARD), NULL },
	{ "locks",         135, FIELD_U64,   AT(on_shard.locks), 0, NO, V(SHARD), NULL },
	{ "leases",        136, FIELD_U64,   AT(on_shard.leases), 0, NO, V(SHARD), NULL },
	{ "states",        137, FIELD_U64,   AT(on_shard.states), 0, NO, V(SHARD), NULL },
	{ "segments",      138, FIELD_U64,   AT(on_shard.segments), 0, NO, V(SHARD), NULL },
	{ "spares",        139, FIELD_U64,   AT(on_shard.spares), 0, NO, V(SHARD), NULL },
	{ "bytes",         140, FIELD_U64,   AT(on_shard.bytes), 0, NO, V(SHARD), NULL },
	{ "live",          141, FIELD_U64,   AT(on_shard.live), 0, NO, V(SHARD), NULL },
	{ "disk_free",     142, FIELD_TIME,  AT(on_shard.disk_free), 0, NO, V(SHARD), NULL },
	{ "disk_full",     143, FIELD_BOOL,  AT(on_shard.disk_full), 0, NO, V(SHARD), NULL },

	{ "source",        150, FIELD_BYTES, AT(intake.source), 0, V(INTAKE), NO, NULL },
	{ "batch",         151, FIELD_U64,   AT(intake.batch), 0, V(INTAKE), NO, NULL },
	{ "known",         152, FIELD_BOOL,  AT(intake.known), 0, NO, V(INTAKE), NULL },
	{ "last",          153, FIELD_U64,   AT(intake.last), 0, NO, V(INTAKE), NULL },
	{ "last_count",    154, FIELD_U32,   AT(intake.count), 0, NO, V(INTAKE), NULL },
	{ "first",         155, FIELD_U64,   AT(intake.first), 0, V(INTAKE), NO, NULL },

	{ "why",           160, FIELD_U64S,  AT(why), 0, NO, V(WHY), NULL },

	{ "rule",          161, FIELD_TEXT,  AT(rule), 0, NO, V(WHY), NULL },
	{ "breaker",       162, FIELD_TEXT,  AT(breaker), 0, NO, V(WHY), NULL },
	{ "kind",          163, FIELD_TEXT,  AT(kind), 0, NO, V(WHY), NULL },
	{ "dead_letter_queue", 170, FIELD_TEXT, AT(policy.dead_letter_queue), 0, POLICIES, POLICIES, NULL },
	{ "rules",         171, FIELD_TEXT,  AT(policy.rules), 0, POLICIES, POLICIES, NULL },
	{ "max_runtime",   172, FIELD_TIME,  AT(policy.max_runtime), 0, POLICIES, POLICIES, NULL },
	{ "limit_attribute", 173, FIELD_TEXT, AT(policy.limit_attribute), 0, POLICIES, POLICIES, NULL },
	{ "attribute_concurrency", 174, FIELD_U32, AT(policy.attribute_concurrency), 0, POLICIES, POLICIES, NULL },
	{ "attribute_rate", 175, FIELD_U32,  AT(policy.attribute_rate), 0, POLICIES, POLICIES, NULL },
	{ "attribute_rate_burst", 176, FIELD_U32, AT(policy.attribute_rate_burst), 0, POLICIES, POLICIES, NULL },
	{ "breakers",      177, FIELD_TEXT,  AT(policy.breakers), 0, POLICIES, POLICIES, NULL },

	{ "by_kind",       178, FIELD_BOOL,  AT(limits.by_kind), 0, V(LIMITS), NO, NULL },
	{ "kinds",         179, FIELD_U32,   AT(limits.kinds), 0, NO, V(LIMITS), NULL },
	{ "by_messages",   180, FIELD_BOOL,  AT(limits.by_messages), 0, V(LIMITS), NO, NULL },
	{ "scope",         181, FIELD_U8,    AT(limits.scope), GATE_KINDS - 1, V(HOLD), NO, NULL },
	{ "scope_name",    182, FIELD_SLICE, AT(limits.name), MESSAGE_KEY_MAX, V(HOLD), NO, NULL },
	{ "hold",          183, FIELD_TIME,  AT(limits.hold), 0, V(HOLD), NO, NULL },
	{ "shares",        184, FIELD_U32,   AT(limits.shares), 0, NO, V(LIMITS), NULL },
	{ "holds",         185, FIELD_U32,   AT(limits.holds), 0, NO, V(LIMITS), NULL },
	{ "hold_until",    186, FIELD_TIME,  AT(limits.until), 0, NO, V(HOLD), NULL },
	{ "values",        187, FIELD_U32,   AT(limits.values), 0, NO, V(LIMITS), NULL },
	{ "circuits",      188, FIELD_U32,   AT(limits.circuits), 0, NO, V(LIMITS), NULL },
	{ "breaker_name",  189, FIELD_SLICE, AT(limits.breaker), BREAKER_NAME - 1, V(HOLD), NO, NULL },

	{ "scale",         190, FIELD_U8,    AT(trend.scale), TREND_SCALES - 1, V(TREND), NO, NULL },
	{ "steps_end",     191, FIELD_TIME,  AT(trend.end), 0, NO, V(TREND), NULL },
	{ "max_steps",     192, FIELD_U32,   AT(max_steps), TREND_STEPS_MAX, V(TREND), NO, NULL },

	{ "paused_until",  193, FIELD_TIME,  AT(policy.pause.until), 0, POLICIES, POLICIES, NULL },
	{ "pause_reason",  194, FIELD_TEXT,  AT(policy.pause.reason), 0, POLICIES, POLICIES, NULL },
	{ "paused_by",     195, FIELD_TEXT,  AT(policy.pause.by), 0, POLICIES, POLICIES, NULL },
	{ "of_storage",    196, FIELD_BOOL,  AT(trend.storage), 0, V(TREND), NO, NULL },
	{ "draining",      197, FIELD_BOOL,  AT(policy.draining), 0, POLICIES, POLICIES, NULL },
	{ "sets",          198, FIELD_U8,    AT(sets), OP_SETS_PAUSE | OP_SETS_DRAIN, V(PAUSE), NO, NULL },

	{ "puts",          200, FIELD_LIST,  AT(puts), 0, PUTS, ENQUEUES, &list_puts },
	{ "items",         201, FIELD_LIST,  AT(items), 0, ITEMS, ITEMS, &list_items },
	{ "rows",          202, FIELD_LIST,  AT(rows), 0, NO, ROWS, &list_rows },
	{ "returned",      203, FIELD_LIST,  AT(rows), 0, V(RETURN), V(RETURN), &list_returned },
	{ "queues",        204, FIELD_LIST,  AT(queues), 0, NO, QUEUE_ROWS, &list_queues },
	{ "keys",          205, FIELD_LIST,  AT(keys), 0, NO, KEY_ROWS, &list_keys },
	{ "uses",          206, FIELD_LIST,  AT(uses), 0, NO, V(LIMITS), &list_uses },
	{ "steps",         208, FIELD_LIST,  AT(steps), 0, NO, V(TREND), &list_steps },
};
#undef AT
/* clang-format on */

const unsigned n_op_fields = COUNT(op_fields);
