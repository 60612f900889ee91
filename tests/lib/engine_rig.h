/*
 * engine_rig.h - an engine on a bench: no threads, and the test owns the time.
 *
 * A case of tests/unit/engine/test_engine*.c runs against every row of rig_rows. A new
 * engine is a row there and a line in CASE.
 *
 *         CASE(a_message_comes_back)
 *         {
 *                 const uint64_t id = rig_put(r, "q", NULL);
 *
 *                 CHECK_EQ(1, rig_claim(r, "q", 10));
 *                 CHECK_EQ(id, r->rows[0].id);
 *         }
 *
 * After a case the rig compares the counters with a scan. It closes a durable engine, opens
 * it again, and the engine must hold the same.
 */
#ifndef TESTS_ENGINE_RIG_H
#define TESTS_ENGINE_RIG_H

#include "test.h"

#include "engine/attempts.h"
#include "engine/engine.h"

#define RIG_START (1800000000 * SLU_SEC) /* the wall clock when a case begins */
#define RIG_SPACE "ns"

enum {
	RIG_ROWS = 1000,
	RIG_QUEUES = 64
};

struct rig;

struct rig_row {
	const struct engine_ops *engine;
	/* Optional: fill in what the engine needs to be opened; the folder of the
	 * test is empty at first. */
	void (*prepare)(struct engine_conf *conf, bool second);

	/* Optional: instead of the engine's own. */
	int (*open)(struct engine **out, const struct engine_conf *conf,
		    struct engine_found *found, struct slu_err *err);
};

struct rig {
	const struct rig_row *row;
	struct engine *e;
	slu_time now;
	uint64_t next_id;
	bool may_fail;  /* SLU_ENOMEM is an answer */
	bool second;    /* rig_run_two */
	bool one_queue; /* engine_found.one_queue */

	/* Optional: opens the engine anew after it failed, as after a power cut. The op runs
	 * again. */
	void (*revive)(struct rig *r);

	/* The last claim, get, peek or list. */
	struct op op;
	struct op_row rows[RIG_ROWS];
	uint32_t n;
	uint64_t cursor;

	/* The last stats or topics. */
	struct op_queue queues[RIG_QUEUES];
	uint32_t n_queues;

	/* The last record that was read. */
	struct message m;
	char *bytes;

	/* The queues that the engine reported as ready, as "a b c"; rig_woken clears it. */
	char woken[256];
};

typedef void rig_case(struct rig *r);

enum rig_engine {
	RIG_MEMORY,
	RIG_COUNT,
	RIG_LOG,
	RIG_STORED, /* the log engine with a store */
	RIG_REDIS
};

extern const struct rig_row rig_rows[];

void rig_run(enum rig_engine row, rig_case *test);

/* The same with two of them, each with a store of its own. */
typedef void rig_pair(struct rig *a, struct rig *b);
void rig_run_two(enum rig_engine row, rig_pair *test);

#define CASE(fn)                         \
	static void fn(struct rig *r);   \
	TEST(memory_##fn)                \
	{                                \
		rig_run(RIG_MEMORY, fn); \
	}                                \
	TEST(count_##fn)                 \
	{                                \
		rig_run(RIG_COUNT, fn);  \
	}                                \
	TEST(log_##fn)                   \
	{                                \
		rig_run(RIG_LOG, fn);    \
	}                                \
	TEST(stored_##fn)                \
	{                                \
		rig_run(RIG_STORED, fn); \
	}                                \
	TEST(redis_##fn)                 \
	{                                \
		rig_run(RIG_REDIS, fn);  \
	}                                \
	static void fn(struct rig *r)

void rig_open(struct rig *r);
void rig_close(struct rig *r);

/* Close and open, if the engine is durable; else nothing. */
void rig_reopen(struct rig *r);

/* Run one op of the namespace `space`; its rc. */
int rig_do(struct rig *r, struct op *op);
void rig_op(struct op *op, enum op_verb verb, const char *space, const char *queue);

/* The op that enqueues n puts in a queue of RIG_SPACE. */
void rig_op_puts(struct op *op, const char *queue, struct op_put *puts, uint32_t n);

/* Lets time pass; everything that falls due happens. */
void rig_pass(struct rig *r, slu_time by);

/* What a message may have beside its queue. */
struct rig_msg {
	const char *key, *share, *idem, *payload, *space;
	int32_t prio;
	slu_time delay, due, ttl, keep;
	uint16_t max_attempts;
};

/* Returns the id of the new message, or of the first message with its idempotency key. Returns
 * 0 if the message was refused; r->op.rc has the reason. msg may be NULL. */
uint64_t rig_put(struct rig *r, const char *queue, const struct rig_msg *msg);

/* Enqueues n such messages, a thousand a call. */
void rig_fill(struct rig *r, const char *queue, const struct rig_msg *msg, uint32_t n);

/* How often to do what takes three groups or more: n, or a tenth of it if the log is on a real server (KIT_STORE), where
 * a group takes 5 ms and more. */
uint32_t rig_turns(const struct rig *r, uint32_t n);

/* Enqueues these; r->op has the answer. */
int rig_puts(struct rig *r, const char *queue, struct op_put *puts, uint32_t n);

/* A message with every field, and a check that the claimed row has them all, accepted at `at`. */
struct op_put rig_whole_put(void);
void rig_check_whole(struct rig *r, slu_time at);

/* Returns the number of granted rows; they are in r->rows. */
uint32_t rig_claim(struct rig *r, const char *queue, uint32_t max);
uint32_t rig_claim_for(struct rig *r, const char *queue, slu_time lease);

/* Claims messages of these kinds, each with its mark; the id of the first, or 0. */
uint64_t rig_claim_kinds(struct rig *r, const char *queue, const char *kinds, uint32_t max);

/* The id of the granted message, or 0. */
uint64_t rig_claim_one(struct rig *r, const char *queue);

/* One item of a settling verb, by the namespace alone; its rc. */
int rig_settle_one(struct rig *r, enum op_verb verb, uint64_t id, uint64_t token);
int rig_item(struct rig *r, enum op_verb verb, struct op_item *item);

/* Returns the rows of the last claim to the engine. */
void rig_return(struct rig *r);

/* Views. MSG_NONE: messages of every state. They return the number of rows. */
uint32_t rig_list(struct rig *r, const char *queue, enum msg_state state, uint32_t max);
uint32_t rig_peek(struct rig *r, const char *queue, uint32_t max);
int rig_get(struct rig *r, uint64_t id);
uint32_t rig_count(struct rig *r, const char *queue, enum msg_state state);
int rig_result(struct rig *r, uint64_t id, char *text, size_t size);
void rig_policy(struct rig *r, const char *queue, const struct policy *policy);

/* Read a row's record into r->m; and the text of its error. */
const struct message *rig_read(struct rig *r, uint32_t row);
const char *rig_error(struct rig *r, uint32_t row);

/* Reads the attempts of a row, valid until the next read, and returns their number. */
unsigned rig_attempts(struct rig *r, uint32_t row, struct attempts *out);

/* Unpins all rows. Views and claims do it first. */
void rig_unpin(struct rig *r);

const char *rig_woken(struct rig *r);

/* Counters equal a full scan. */
void rig_check(struct rig *r);

#endif
