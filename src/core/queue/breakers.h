/*
 * breakers.h - circuit breakers of a queue: failures of one kind stop deliveries for a while.
 *
 *      smtp: 5 in 1m, open 30s; crm: 3 in 10s, open 1m, by attribute
 *      ──── name   ───────── failures of one kind within a time    ──────────── one breaker for each value
 *
 *                    failures reached                 its time is over
 *      +--------+  ------------------->  +------+  ------------------->  +-----------+
 *      | closed |                        | open |                        | half-open |
 *      +--------+                        +------+  <-------------------  +-----------+
 *          ^                                        nack or end of the probe   |
 *          +-------------------------------------------------------------------+
 *                                                      ack of the probe
 *
 * A breaker has a name and a scope: the queue, each share, each key or each value of the attribute that the queue limits. A
 * circuit is the state of a breaker for one scope, for example for the key "customer-7".
 *
 *  BREAKERS-1  A nack whose reason is the name of a breaker is a failure. A closed circuit opens if it has had so many
 *              failures since the first of them, within the time of the rule. In the other states failures do not count.
 *  BREAKERS-2  An open circuit closes the gate of its scope (core/queue/gates.h) until its end.
 *  BREAKERS-3  A half-open circuit lets one lease through, the probe, and closes the gate while the probe lasts. Only the probe decides:
 *              leases from before the opening do not count.
 *  BREAKERS-4  The ack of the probe closes the circuit. Its nack, or the end of its lease, opens it again. If it is
 *              returned, another one goes through.
 *
 * Pure: no I/O, no clock. Owned by the shard's thread.
 */
#ifndef CORE_QUEUE_BREAKERS_H
#define CORE_QUEUE_BREAKERS_H

#include "base/map.h"
#include "core/queue/gates.h"

#include <sluice/err.h>

enum {
	BREAKERS_TEXT = 256, /* bytes of all rules, with the NUL */
	BREAKERS_MAX = 8,    /* rules of a queue */
	BREAKER_NAME = 64    /* bytes of a name, with the NUL */
};

#define BREAKER_TIME_MAX (24 * SLU_HOUR)

struct breaker_rule {
	struct slice name; /* points into the text */
	uint32_t failures;
	slu_time window; /* of the failures */
	slu_time open;   /* how long a circuit is open */
	enum gate_kind scope;
};

/* Returns SLU_EINVAL, with the rule in err, if the text is not a list of rules. An empty text is. */
int breakers_check(struct slice text, struct slu_err *err);

/* The next rule of a valid text, which becomes shorter; false: no more. */
bool breakers_next(struct slice *text, struct breaker_rule *out);

/* The rule of a name. */
bool breakers_rule(struct slice text, struct slice name, struct breaker_rule *out);

/* ---- Circuits ---- */

enum circuit_state {
	CIRCUIT_CLOSED, /* counts failures */
	CIRCUIT_OPEN,
	CIRCUIT_HALF
};

struct circuit {
	uint64_t hash;     /* of the name of the breaker */
	uint64_t scope;    /* the name of the gate */
	slu_time until;    /* OPEN, HALF: the end of the open time; CLOSED: the end of the window */
	char *text;        /* the name of the breaker, then the name of the scope, each with a NUL */
	uint32_t failures; /* CLOSED: since the first one of the window */
	uint32_t probe;    /* HALF: the message, or SLAB_NONE */
	uint8_t kind;      /* enum gate_kind */
	uint8_t state;     /* enum circuit_state */
	bool dirty;        /* its state is not written down yet */
	bool alive;        /* not in the first 8 bytes, which a free item of a slab does not keep */
};

struct breakers {
	struct slab slab;
	struct map names;
	uint32_t open;   /* circuits that are not closed */
	uint32_t dirty;  /* circuits that are dirty */
	uint64_t opened; /* times that a circuit opened */
	size_t text_bytes;
};

int breakers_new(struct breakers **out); /* SLU_ENOMEM */
void breakers_free(struct breakers *b);  /* NULL is fine */

static inline struct circuit *
circuit_at(const struct breakers *b, uint32_t h)
{
	return slab_at(&b->slab, h);
}

static inline struct slice
circuit_name(const struct circuit *c)
{
	return slice_of(c->text);
}

static inline struct slice
circuit_scope(const struct circuit *c)
{
	return slice_of(c->text + strlen(c->text) + 1);
}

/* The circuit, or SLAB_NONE. */
uint32_t breakers_find(const struct breakers *b, struct slice name, enum gate_kind kind, uint64_t scope);

/* Finds or makes a circuit; SLAB_NONE if memory is out. scope_name: of the share, key or value. */
uint32_t breakers_make(struct breakers *b, struct slice name, enum gate_kind kind, uint64_t scope, struct slice scope_name);
void breakers_drop(struct breakers *b, uint32_t circuit);

/* Sets the state, and its end. */
void breakers_set(struct breakers *b, uint32_t circuit, enum circuit_state state, slu_time until);
void breakers_mark(struct breakers *b, uint32_t circuit, bool dirty);

/* BREAKERS-1: a failure of a closed circuit. Returns whether the circuit has to open. */
bool breakers_fail(struct breakers *b, uint32_t circuit, const struct breaker_rule *rule, slu_time now);

/* The next circuit in no order. SLAB_NONE: as argument the start, as result the end. */
uint32_t breakers_each(const struct breakers *b, uint32_t circuit);

/* The bytes that the breakers have allocated. */
size_t breakers_bytes(const struct breakers *b);

#endif
