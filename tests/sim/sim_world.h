/*
 * sim_world.h - what the parts of the simulator share.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "fakeclock.h"
#include "sim.h"
#include "sim_model.h"
#include "simdisk.h"

#include "broker/broker.h"
#include "broker/move/copy.h"
#include "engine/log/logengine.h"
#include "engine/message.h"
#include "wal/wal.h"

#define WORLD_HOLDER "sim-7:311" /* of every lease of a message */

enum {
	WORLD_CALLS = 20,
	WORLD_EACH = 4, /* puts, items or rows of an op */
	WORLD_LEASES = 64,
	WORLD_ROWS = 2 * MODEL_MSGS,
	WORLD_PAYLOAD = 4096,
	WORLD_TEXT = 48,
	WORLD_KEY = 16,
	WORLD_HELD = 12,
	WORLD_MOVERS = 3,
	WORLD_JOBS = 16
};

enum call_state {
	CALL_FREE,
	CALL_POSTED,
	CALL_READING, /* answered; what it was granted is read, or given back, later */
};

/* What a put says about its message, before anybody has accepted it. */
struct put_facts {
	uint64_t id; /* the answer may have another one's */
	int key, idem;
	slu_time keep;
	unsigned size;
	bool too_big;
};

/* A client's op with all that it points to. */
struct sim_call {
	struct op op;
	struct sim_world *w;
	enum call_state state;
	unsigned serial;
	unsigned queue;
	slu_time posted; /* shard time */
	bool canceled;
	bool returning;
	bool parked;                  /* when the round began: it waited already */
	slu_time came;                /* by the clock of any shard, then or later */
	slu_time ends;                /* its wait, by clock_boot */
	slu_time rested;              /* it was on its way when all rested; 0: never */
	slu_time starved;             /* there was something for it when all rested; 0: not the last time */
	unsigned turn;                /* of the world, when it was posted */
	bool tight, limited, failing; /* the world was so while it was on its way */
	bool shadow;                  /* GET: it was set aside on some shard then */
	uint64_t taken;               /* INTAKE: the last batch of its shard when it was sent */
	bool early[WORLD_EACH];       /* items: that it was settled was seen before the answer */
	struct op_put puts[WORLD_EACH];
	struct put_facts facts[WORLD_EACH];
	char keys[WORLD_EACH][WORLD_KEY], idems[WORLD_EACH][WORLD_KEY];
	struct op_item items[WORLD_EACH];
	char texts[WORLD_EACH][WORLD_TEXT];
	struct op_row rows[WORLD_EACH];
	struct op_queue stats;
	unsigned key, doc;  /* of an op on a lock key */
	char state_key[96]; /* the key of a message's state */
};

/* What some client holds, or believes to. */
struct sim_lease {
	uint64_t id, token;
	unsigned queue;
};

/* What some client takes for its lock. */
struct held_lock {
	unsigned space, key;
	uint64_t token;
};

struct world_shard {
	struct engine *engine;   /* while it is open */
	slu_time offset;         /* shard time - boot */
	void (*poke)(void *arg); /* engine_conf.poke */
	void *poke_arg;          /* the shard */
	bool open;               /* its batch has run and is not committed */
	bool failed;
	bool late;      /* no room for what fell due: the engine reports it, and is opened anew */
	bool hurt;      /* after a run that was good; the next one finds out */
	bool purged;    /* in this round: its memory may not have been freed */
	bool synced;    /* in this round */
	slu_time first; /* until when time has passed before the first op of the run */
	bool buried;    /* the dead were buried in this round */
};

/* Who says whether what happens is right. Those marked so may be NULL. */
struct judge {
	void (*posts)(struct sim_world *w, struct sim_call *c); /* optional: it is posted */
	bool (*hears)(struct sim_world *w, struct sim_call *c); /* its answer; false: it says nothing */
	void (*begins)(struct sim_world *w);                    /* optional: a round */
	void (*ends)(struct sim_world *w, unsigned shard);      /* a round, of a shard that is well */
	void (*misses)(struct sim_world *w, unsigned shard);    /* optional: it failed, or had no room */
	void (*rests)(struct sim_world *w);                     /* nothing can happen before time passes */
	bool (*adopts)(struct sim_world *w);                    /* world_adopt */
	void (*verifies)(struct sim_world *w);                  /* world_verify */
};

extern const struct judge judge_exact;  /* sim_world.c: knows every answer */
extern const struct judge judge_moving; /* sim_moving.c: knows what must not be */

/* A mover: it moves a queue, or finishes an abandoned batch. */
struct mover {
	struct sim_world *w;
	struct fiber *fiber; /* NULL: none */
	const bool *awaits;  /* an op: set when it is done; NULL: it has not begun */
	unsigned serial;
	unsigned queue;
	bool mends;
	bool crowded;  /* another mover moved the same queue meanwhile */
	bool behind;   /* a policy was set meanwhile: if he dies now, it may be left behind */
	uint32_t lane; /* mends */
	struct move_request ask;
	struct move_report told;
	struct slu_err err;
	int rc;
};

struct sim_world {
	struct sim_conf conf;
	struct sim_result sum;
	bool reopens;          /* world_reopen */
	uint64_t dice, random; /* the world's, and what getrandom gives */
	uint64_t lateness;     /* the dice of late commits */
	slu_time patience;     /* engine_conf.patience */
	struct simdisk *disk;
	struct fakeclock clock;
	struct slu_log *log;
	struct logengine_conf logengine_conf;
	struct engine_ops engine; /* the log, opened with logengine_conf */
	struct broker *broker;    /* NULL: not open */
	struct slu_err err;

	unsigned n_shards;
	struct world_shard shards[MODEL_SHARDS];
	unsigned opened;              /* shards that the open under way has opened */
	uint64_t batches;             /* INTAKE: the number of the last new batch */
	uint64_t taken[MODEL_SHARDS]; /* INTAKE: the last batch that each shard has accepted for sure */
	bool draining;
	bool dying;       /* the process is being killed: answers reach no client */
	bool faults;      /* by the dice */
	bool tight;       /* limited, and the segments are so small that settling may be refused */
	bool limited;     /* the disk is, or was a moment ago, too small */
	bool lost;        /* the power went: what was not synced is in doubt */
	bool failing;     /* calls of the disk fail, or did since the last open */
	slu_time room_at; /* the disk has room again since then */
	struct {
		char path[SIM_NAME]; /* empty: nothing is damaged */
		size_t at, n;
		char was[SIM_SECTOR];
	} hurt;
	bool stopped; /* cleaning was */

	slu_time idle;  /* after so long queues are forgotten; 0: never */
	unsigned steps; /* of the schedule, if the configuration has none */
	unsigned n_queues;
	unsigned producers; /* of a hundred ops */
	unsigned max_payload;
	unsigned serial;
	unsigned step;
	struct sim_call calls[WORLD_CALLS];
	bool runs[MODEL_QUEUES]; /* in this round the line of the queue is run, if it has one */
	struct sim_lease leases[WORLD_LEASES];
	unsigned n_leases;
	bool locks; /* clients have lock keys, too */
	struct held_lock held[WORLD_HELD];
	unsigned n_held;
	unsigned docs;             /* the last one */
	struct broker_totals want; /* since open */
	const struct judge *judge;
	struct sim_model model;

	/* Queues that move. */
	unsigned turn; /* of posts and answers: which came first */
	struct {
		uint64_t version;
		unsigned now;
		int before; /* -1: none */
	} map;
	slu_time skew; /* by which clocks of shards differed at most */
	struct broker_hand hand;
	struct mover movers[WORLD_MOVERS];
	struct mover *running; /* NULL: the world itself */
	struct {
		unsigned queue;
		uint32_t lane;
	} jobs[WORLD_JOBS]; /* of the repair, the last of the movers */
	unsigned n_jobs;
	unsigned n_movers; /* so far */
	struct op_row rows[WORLD_ROWS];
	struct engine *engines[WORLD_ROWS]; /* whose they are */
	char bytes[2 * WORLD_PAYLOAD];
};

extern const char *const world_spaces[2];
extern const char *const world_names[2];

struct slice world_space(unsigned queue);
struct slice world_queue(unsigned queue);

uint64_t world_dice(struct sim_world *w, uint64_t n); /* 0 .. n - 1 */
bool world_chance(struct sim_world *w, unsigned percent);

/* Something happened: part of the hash, and of the trace. */
void world_note(struct sim_world *w, const char *what, uint64_t a, uint64_t b, uint64_t c);

/* A promise is broken: say which, the seed and the step, and end. */
void world_fail(struct sim_world *w, const char *fmt, ...) SLU_NORETURN SLU_PRINTF(2, 3);

slu_time world_now(struct sim_world *w, unsigned queue); /* shard time of a queue's shard */
slu_time world_lane_now(struct sim_world *w, unsigned lane);
struct world_shard *world_shard(struct sim_world *w, unsigned queue);
bool world_is_down(struct sim_world *w, unsigned queue); /* its shard cannot answer now */

/* sim_world.c: everything that can happen now happens; then everything is checked. */
void world_idle(struct sim_world *w);
void world_round(struct sim_world *w);

void world_see_hurt(struct sim_world *w, unsigned shard); /* a failure that no answer has reported yet */

/* sim_move.c: the map, and the movers of queues. */
void world_begin_moves(struct sim_world *w);
struct shardmap *world_map(struct sim_world *w);
struct broker_shard_conf world_shard_conf(struct sim_world *w, unsigned i);
void world_move(struct sim_world *w);       /* a step of one of them, a new one, or a new map */
void world_end_movers(struct sim_world *w); /* the broker is stopped */

/* sim_moving_end.c: one shard gets all; all is handed out and acked. */
void world_gather(struct sim_world *w);
void world_drain(struct sim_world *w);

/* sim_life.c: the process and its disk. */
void world_open(struct sim_world *w);
bool world_reopen(struct sim_world *w);
void world_stop(struct sim_world *w); /* cleanly */
void world_crash(struct sim_world *w, bool power);
void world_fault(struct sim_world *w); /* one of them */

/* sim_post.c: a client does something. */
void world_post(struct sim_world *w);
void world_start(struct sim_world *w, struct sim_call *c, enum op_verb verb, unsigned queue);
void world_send(struct sim_world *w, struct sim_call *c);
slu_time world_some_time(struct sim_world *w);
void world_hang_up(struct sim_world *w);
void world_read_on(struct sim_world *w, struct sim_call *c);
struct sim_call *world_free_call(struct sim_world *w);

/* sim_answer.c: an op is answered; and what the exact judge makes of it. */
void world_answered(struct op *op);
bool world_hear(struct sim_world *w, struct sim_call *c);

/* sim_doubt.c: the outcome of an op, or of a whole run of the shard, is unknown. */
void world_doubt(struct sim_world *w, struct sim_call *c);
void world_doubt_run(struct sim_world *w, unsigned shard);

/* sim_lock.c: clients of lock keys, their answers, and all keys against the model. adopt:
 * after an open; false: the disk failed meanwhile. */
bool world_make_lock(struct sim_world *w, struct sim_call *c, unsigned queue);
void world_end_lock(struct sim_world *w, struct sim_call *c, slu_time now);
void world_doubt_lock(struct sim_world *w, struct sim_call *c);
void world_keep_lock(struct sim_world *w, const struct sim_call *c); /* it was received */
bool world_check_locks(struct sim_world *w, bool adopt);
bool world_is_free(struct sim_world *w, const struct sim_call *c); /* the key of a waiting acquire */

/* The same for the states of messages. */
bool world_make_state(struct sim_world *w, struct sim_call *c);
void world_end_state(struct sim_world *w, struct sim_call *c);
void world_check_state(struct sim_world *w, const struct op_row *row, struct sim_msg *x);
void world_count_states(struct sim_world *w);

/* sim_forget.c: queues that are deleted or forgotten; it is unknown whether one is; may it not
 * be there? */
bool world_make_forget(struct sim_world *w, struct sim_call *c, unsigned queue);
void world_end_forget(struct sim_world *w, struct sim_call *c, slu_time now);

/* sim_answer.c */
void world_end_enqueue(struct sim_world *w, struct sim_call *c, slu_time now);

/* Calls of the disk fail, and what needs one is refused: nothing has happened. */
bool world_is_hindered(struct sim_world *w, const struct sim_call *c, int rc);

/* I5, and WAL-4: no settlement is refused for lack of room. */
void world_check_item(struct sim_world *w, const struct sim_call *c, const struct op_item *it,
		      const struct sim_msg *x, int want);
void world_ack_one(struct sim_world *w, struct sim_call *c, const struct op_item *it, struct sim_msg *x,
		   slu_time now);

/* sim_finish.c */
void world_make_finish(struct sim_world *w, struct sim_call *c);
void world_end_finish(struct sim_world *w, struct sim_call *c, slu_time now);

/* sim_intake.c */
void world_make_put(struct sim_world *w, struct sim_call *c, unsigned i);
void world_make_batch(struct sim_world *w, struct sim_call *c);
void world_end_intake(struct sim_world *w, struct sim_call *c, slu_time now);
void world_doubt_forget(struct sim_world *w, const struct sim_call *c);
bool world_may_lack(const struct sim_world *w, unsigned queue);

/* sim_text.c: what messages, results and errors say; all of it follows from ids. */
const char *world_payload(uint64_t id);
void world_text(char out[static WORLD_TEXT], char what, uint64_t id);
void world_check_record(struct sim_world *w, struct engine *e, const struct op_row *row,
			const struct sim_msg *x);
/* Returns false if it is an error that is empty: of a message whose leases ran out. */
bool world_check_text(struct sim_world *w, struct engine *e, const struct op_ref *ref,
		      char what, uint64_t id);

/* sim_answer.c: I4 */
void world_see_number(struct sim_world *w, unsigned queue, uint64_t number, const char *what);

/* sim_look.c: answered at once; false: the disk failed meanwhile. */
bool world_call_now(struct sim_world *w, struct op *op);
size_t world_list(struct sim_world *w); /* every message, into rows, pinned; SIZE_MAX: the disk failed */
void world_unlist(struct sim_world *w, size_t n);
void world_verify(struct sim_world *w); /* all that is there, against the model */
bool world_adopt(struct sim_world *w);  /* the same after an open: doubts end; false: the
					 * disk failed meanwhile */
void world_check_row(struct sim_world *w, const struct op_row *row, const struct sim_msg *x);

#endif
