/*
 * gates.h - what keeps messages of a queue back until a moment.
 *
 *      queue ── gate of the queue          closed until 12:00:01
 *            ├─ gate of share "a"          open; its bucket fills up
 *            ├─ gate of key "k"            closed until 12:00:03; the head of the key is parked
 *            └─ gate of value "crm"        closed until 12:00:02
 *
 * A gate belongs to a queue, a share, a key or a value. It has a bucket (core/bucket.h) if its kind has a rate, and a
 * delivery takes a token of it. A gate without a token is closed until the next one. A hold closes a gate until its
 * end, whatever the tokens.
 *
 *  GATES-1  A gate exists while its bucket is not full, a hold or a breaker (core/queue/breakers.h) needs it, or a message is parked at it. A gate that does not exist
 *           is open, with a full bucket; in the time after `start`, with a bucket that was empty then. An open gate that nothing
 *           needs any more may exist until gates_sweep finds it: a busy share would make and free its gate with each delivery.
 *  GATES-2  A gate is closed while `until` is not 0. It opens in gates_turn: the caller calls that before it
 *           looks at gates.
 *  GATES-3  A closed gate is in the heap `timed` by the moment at which it opens, an open one is not. So a closed gate costs
 *           nothing until that moment, and a call costs O(log n).
 *  GATES-4  A round of gates_sweep looks at every gate, in steps. It begins 10 s after the first gate was left open, or
 *           after the round before; with very many gates after one second, and later if no bucket is full before that.
 *  GATES-5  A hint is a handle that the owner of a name keeps for the next look-up. It may be of a gate that is gone.
 *
 * The name of a gate is a hash of the share, key or value; 0: the queue, or messages without a share. Pure: no I/O, no
 * clock. Owned by the shard's thread.
 */
#ifndef CORE_QUEUE_GATES_H
#define CORE_QUEUE_GATES_H

#include "base/bytes.h"
#include "base/heap.h"
#include "base/map.h"
#include "core/bucket.h"

enum gate_kind {
	GATE_QUEUE,
	GATE_SHARE,
	GATE_KEY,
	GATE_VALUE, /* of the attribute that the queue limits: core/queue/values.h */
	GATE_KINDS
};

struct queue_gate {
	uint64_t name;
	slu_time full;   /* state of its bucket; 0: not used */
	slu_time hold;   /* end of its hold; 0: none */
	char *text;      /* the share, key or value of its hold, with a NUL; NULL: no hold */
	slu_time until;  /* GATES-2; 0: open */
	slu_time broken; /* a breaker closes it until then; SLU_NEVER: until its probe ends; 0: none does */
	uint32_t parked; /* the head of the key, which waits for this gate; or SLAB_NONE */
	uint32_t epoch;  /* of struct gates, when the head was parked */
	uint32_t pos;    /* in timed, or HEAP_OUT */
	uint8_t kind;    /* enum gate_kind */
	bool half;       /* a breaker lets one lease through */
	bool alive;      /* not in the first 8 bytes, which a free item of a slab does not keep */
};

struct gates {
	struct slab slab;
	struct map names;
	struct heap timed;
	struct bucket_rule rules[GATE_KINDS];      /* rate 0: no rate */
	slu_time one[GATE_KINDS], all[GATE_KINDS]; /* how long a token takes to come, and all of a bucket */
	slu_time start;                            /* the buckets were empty then; 0: full */
	slu_time sweep;                            /* GATES-4; SLU_NEVER: no gate waits for it */
	slu_time later;                            /* the first moment at which a gate that this round has left is at rest */
	uint32_t hand;                             /* the next gate of the round */
	uint32_t nameless[GATE_KINDS];             /* the gates of name 0, or SLAB_NONE */
	uint32_t parked;                           /* the first parked message, or SLAB_NONE; linked by its owner */
	uint32_t trash;                            /* the same, of parked messages that a purge has removed */
	uint32_t epoch;                            /* rises with every purge */
	uint32_t held;                             /* gates with a hold */
	char *spare;                               /* the text of the next hold, or NULL */
	size_t text_bytes;                         /* of all texts, with `spare` */
	uint32_t room;                             /* gates that fit without more memory */
	bool changed;                              /* gates_bytes may have changed; the owner clears it */
	uint64_t steps;                            /* changes of the heap, for tests */
};

int gates_new(struct gates **out); /* SLU_ENOMEM */
void gates_free(struct gates *g);  /* NULL is fine */

static inline struct queue_gate *
gate_at(const struct gates *g, uint32_t h)
{
	return SLAB_AT_FEW(&g->slab, h, struct queue_gate);
}

/* Makes room for n more gates, and some more. Returns SLU_ENOMEM. */
int gates_reserve(struct gates *g, uint32_t n);

/* The gate, or SLAB_NONE if it does not exist. */
uint32_t gates_find(const struct gates *g, enum gate_kind kind, uint64_t name);

/* The end of the closed time of a gate; 0: it is open. */
slu_time gates_closed(const struct gates *g, enum gate_kind kind, uint64_t name);

/* Finds or makes a gate. A new one takes room that gates_reserve has made. */
uint32_t gates_make(struct gates *g, enum gate_kind kind, uint64_t name);

/* The same with a hint (GATES-5), which they set. */
uint32_t gates_find_at(const struct gates *g, enum gate_kind kind, uint64_t name, uint32_t *hint);
uint32_t gates_make_at(struct gates *g, enum gate_kind kind, uint64_t name, uint32_t *hint);

/* Sets the rates of all kinds. Call gates_rank for every gate then. */
void gates_set_rules(struct gates *g, const struct bucket_rule rules[static GATE_KINDS]);

/* Takes a token. Returns whether to call gates_rank: otherwise the gate stays open. */
bool gates_take(struct gates *g, uint32_t gate, slu_time now);

/* The bucket was empty at `start`. */
void gates_empty(struct gates *g, uint32_t gate);

/* Reserves a gate and the name of a hold, for the next gates_hold. Returns SLU_ENOMEM. */
int gates_reserve_hold(struct gates *g, struct slice name);

/* Sets the end of a hold; 0: ends it. */
void gates_hold(struct gates *g, uint32_t gate, slu_time until);

/* The tokens that the bucket of a gate has now; 0 if its kind has no rate. SLAB_NONE: of a gate that does not exist. */
uint32_t gates_tokens(const struct gates *g, enum gate_kind kind, uint32_t gate, slu_time now);

/* Sets `until` and the place of the gate by its bucket and hold. Frees the gate if nothing needs it now. Returns whether the gate is
 * closed. */
bool gates_rank(struct gates *g, uint32_t gate, slu_time now);

/* The next gate in no order. SLAB_NONE: as argument the start, as result the end. */
uint32_t gates_next(const struct gates *g, uint32_t gate);

/* The next gate whose moment has come, or SLAB_NONE. Call gates_rank for it. */
uint32_t gates_due(const struct gates *g, slu_time now);

/* If it is time, frees open gates that nothing needs. Looks at up to max gates and returns their number. */
uint32_t gates_sweep(struct gates *g, slu_time now, uint32_t max);

/* The moment of the next gate, or of gates_sweep; or SLU_NEVER. */
slu_time gates_next_due(const struct gates *g);

/* Returns whether a kind has a rate. */
bool gates_are_rated(const struct gates *g);

/* The bytes that the gates have allocated. */
size_t gates_bytes(const struct gates *g);

#endif
