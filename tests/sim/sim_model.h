/*
 * sim_model.h - what the broker must hold: an array of messages that is searched.
 *
 * It receives every answer in the order in which the ops ran, does the same by the
 * rules of core/ledger/ledger.h in the plainest way, and so knows what the next answer must
 * be. Time passes in it as in the engine: before an op all that fell due until
 * op->route.before, after a round all that has.
 *
 * If an answer was lost (a failed write, a power cut), its outcome is unknown, and the model
 * notes a doubt. The next open looks at everything that is there: what is in doubt may be
 * one way or the other, everything else must be as it was. From then on it is known.
 */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include "test.h"

#include "core/ledger/ledger.h"

enum {
	MODEL_QUEUES = 4, /* two of each of two namespaces */
	MODEL_KEYS = 3,
	MODEL_IDEMS = 6,
	MODEL_MSGS = 300,
	MODEL_GONE = 2000,
	MODEL_RESULTS = 300,
	MODEL_SHARDS = 3,
	MODEL_SPACES = 2,
	MODEL_LOCKS = 3,                           /* keys of each */
	MODEL_PLACES = MODEL_QUEUES + MODEL_SPACES /* queues, and where lock keys are */
};

enum model_state {
	M_WAIT,
	M_LEASED,
	M_DEAD
};

enum model_doubt {
	DOUBT_IN = 1,    /* perhaps it was not accepted */
	DOUBT_OUT = 2,   /* perhaps it is gone */
	DOUBT_STATE = 4, /* perhaps it was handed out, settled otherwise, or is dead */
	DOUBT_POWER = 8, /* written but not synced: in doubt after a power cut */
	DOUBT_FRESH = 16 /* the same, in this round */
};

struct sim_msg {
	uint64_t id;
	uint64_t number;
	uint64_t token; /* of the last lease */
	unsigned queue;
	int key;  /* or -1 */
	int idem; /* or -1 */
	int32_t prio;
	enum model_state state;
	slu_time due;
	slu_time expires; /* or SLU_NEVER */
	slu_time until;
	slu_time died;
	slu_time keep;
	unsigned attempts, failures, max_attempts;
	enum dead_reason reason;
	bool delayed;  /* its time has not come */
	bool holds;    /* was handed out: leads its key */
	bool error;    /* a nack brought a text */
	bool fading;   /* a dead letter that may be one too many, and gone */
	bool vague;    /* it was over, and some claim in this round may have found it */
	bool redriven; /* its number is not exactly known, but where it stands */
	unsigned size; /* of its payload */
	unsigned doubt;
	unsigned long spared; /* as sum.opens, in which life; 0: not since it was settled or extended */
	unsigned call;        /* DOUBT_IN: of one call all are there or none */
	unsigned ender;       /* DOUBT_OUT: the OP_FINISH whose messages are there exactly if this one is gone; 0 = none,
			       * UINT32_MAX = another call may have ended it */
	slu_time written;     /* DOUBT_POWER: when, by the clock */
	bool seen;            /* by the look under way */

	uint64_t etag;   /* of its state, committed; 0: it has none */
	uint64_t staged; /* by the lease staged_by, and by no other */
	uint64_t staged_by;
	bool vague_state; /* unknown */

	/* Of a queue that moves. */
	unsigned from, to; /* it was posted and accepted then, by world.turn; to 0: no answer yet */
	unsigned since;    /* it waits since then */
	unsigned extended; /* when that was answered the last time */
	unsigned lane;     /* that handed it out */
	bool weak;         /* a mover may have ended its lease */
};

struct sim_idem {
	uint64_t id; /* 0: not known */
	bool live;
	bool doubt;    /* unknown */
	slu_time must; /* known until then */
	slu_time may;  /* forgotten from then on */
	unsigned turn; /* of a queue that moves: when it was accepted */
};

struct sim_kept {
	uint64_t id;
	unsigned queue;
	bool text;
	bool doubt;
	slu_time from, until; /* it is over between these */
	unsigned turn;        /* of a queue that moves: when it was given, by world.turn */
};

struct model_queue {
	struct policy policy, other; /* other: with doubt, the other policy that it may have */
	bool doubt;
	bool blank; /* perhaps it was deleted: it may have the policy that all have */
	bool known; /* it must exist */
	unsigned shard;

	/* Of a queue that moves, by all policies that it ever had. */
	slu_time least_window;
	unsigned least_attempts;
	bool retires;     /* dead letters may go by themselves */
	unsigned forcing; /* movers that end leases */
	unsigned set;     /* when its policy was, by world.turn */
};

/* A lock key. Its documents are known by numbers, from which their bytes follow. */
struct model_lock {
	uint64_t version;
	uint64_t etag; /* 0: there is no state */
	unsigned doc;
	uint64_t token; /* of the last lease, ended or not; 0: it was released */
	slu_time until;
	bool stages; /* under that lease: */
	uint64_t staged;
	unsigned staged_doc;
	slu_time known; /* until then, without lease and state */
	bool fresh;     /* the lease made it */
	bool doubt;     /* unknown */
	unsigned lane;  /* that gave the lease */
	uint64_t top;   /* the highest token or etag */
};

struct sim_model {
	struct sim_msg msgs[MODEL_MSGS];
	unsigned n;
	uint64_t gone[MODEL_GONE];
	unsigned n_gone;
	struct model_queue queues[MODEL_PLACES];
	struct model_lock locks[MODEL_SPACES][MODEL_LOCKS];
	struct sim_idem idems[MODEL_QUEUES][MODEL_IDEMS];
	struct sim_kept results[MODEL_RESULTS];
	unsigned n_results;
	uint64_t top[MODEL_SHARDS];  /* the highest number or token seen */
	slu_time over[MODEL_SHARDS]; /* the latest end of a result that was forgotten; by shard */
	unsigned long expired, died;
	uint64_t key_top[MODEL_QUEUES][MODEL_KEYS]; /* queues that move: the last token of each key */
};

#define EACH_MSG(x, m) for (struct sim_msg *x = (m)->msgs; x < (m)->msgs + (m)->n; x++)

void model_init(struct sim_model *m);

struct sim_msg *model_find(struct sim_model *m, uint64_t id); /* NULL */
bool model_is_gone(const struct sim_model *m, uint64_t id);
struct sim_msg *model_add(struct sim_model *m); /* NULL: full */

/* The message goes. must, may: its idempotency key is remembered from some moment between
 * them on; must 0: unknown. */
void model_remove(struct sim_model *m, struct sim_msg *x, slu_time must, slu_time may);

/* It was never there. */
void model_forget(struct sim_model *m, struct sim_msg *x);

enum msg_state model_state(struct sim_model *m, const struct sim_msg *x);
struct sim_msg *model_best(struct sim_model *m, unsigned queue); /* NULL */
unsigned model_max_attempts(const struct sim_model *m, const struct sim_msg *x);
unsigned model_depth(const struct sim_model *m, unsigned queue);

/* What falls due until then happens, in a run at the moment now. True: the engine had to
 * sync for it. */
bool model_tick(struct sim_model *m, unsigned shard, slu_time until, slu_time now);

void model_die(struct sim_model *m, struct sim_msg *x, enum dead_reason why, slu_time now);

/* What a holder's call must answer; *out: the message, or NULL. */
int model_right(struct sim_model *m, unsigned queue, uint64_t id, uint64_t token, slu_time now,
		struct sim_msg **out);

/* What was written in this shard is synced now. */
void model_synced(struct sim_model *m, unsigned shard);

/* The round is over at this moment: what was written a second ago is synced. */
void model_settle(struct sim_model *m, unsigned shard, slu_time mono);
void model_settle_one(struct sim_msg *x, slu_time mono);

bool model_same_policy(const struct policy *a, const struct policy *b);
bool model_keeps_result(const struct sim_model *m, uint64_t id, unsigned *at);
void model_add_result(struct sim_model *m, const struct sim_kept *r);

#endif
