/*
 * embed.h - the broker behind include/sluice/sluice.h; for embed*.c alone.
 */
#ifndef EMBED_EMBED_H
#define EMBED_EMBED_H

#include "broker/broker.h"
#include "core/names.h"
#include "duty/scheduler.h"
#include "duty/zones.h"
#include "form/arena.h"

#include <sluice/policy.h>
#include <sluice/sluice.h>

#include <stdatomic.h>

struct slu_broker {
	uint32_t born; /* forked.h */
	struct broker *broker;
	struct slu_log *log;
	_Atomic bool stopping; /* slu_stop was called */
	char space[NAME_TEXT];
	char space_as[NAME_TEXT]; /* as the user spells it */

	pthread_mutex_t mtx;
	pthread_cond_t idle;
	uint32_t calls; /* calls under way; under mtx */

	struct zones zones;
	struct broker_notice notice;
	pthread_mutex_t duty_mtx;
	struct duty *schedules; /* its thread begins with the first schedule; start and stop under duty_mtx */
	bool ended;             /* under duty_mtx: schedules do not fire any more */
};

/* An op that its caller waits for. */
struct embed_call {
	struct op op;
	char queue[NAME_TEXT];
	pthread_mutex_t mtx;
	pthread_cond_t ended;
	bool done; /* under mtx */
};

/* ---- embed_schedules.c: the thread that fires schedules ---- */

/* Before the broker is open, and in any case before the other three. */
int embed_schedules_open(struct slu_broker *b, struct slu_err *err);

/* Begins the thread; if_any: if a schedule is stored. Later calls do nothing. */
int embed_schedules_start(struct slu_broker *b, struct slu_err *err);
int embed_schedules_start_if_any(struct slu_broker *b, struct slu_err *err);

/* Ends the thread. Any number of times. */
void embed_schedules_stop(struct slu_broker *b);

/* After the broker is closed. */
void embed_schedules_close(struct slu_broker *b);

/* ---- Calls ---- */

/* Returns SLU_ECLOSED: slu_stop was called. */
int embed_stopped(struct slu_err *err);

/* Begins a call on a queue, or (NULL) on the namespace. Each call that has begun needs embed_end. */
int embed_begin(struct slu_broker *b, struct embed_call *c, enum op_verb verb,
		const char *queue, struct slu_err *err);
void embed_end(struct slu_broker *b, struct embed_call *c);

/* Posts the op and waits for its answer. Returns its rc, explained in err. */
int embed_run(struct slu_broker *b, struct embed_call *c, struct slu_err *err);

/* Waits for an op that was posted. */
void embed_wait(struct embed_call *c);

/* Fills the put of a message whose payload is in memory: of the queue of the call, if it names none. Texts are those of
 * the caller, or in the arena. */
int embed_fill(struct slu_broker *b, const struct embed_call *c, const struct slu_put *in, struct arena *a, struct op_put *out,
	       struct slu_err *err);

/* The results of the puts of an op. */
void embed_answer(const struct op *op, struct slu_put *puts);

/* The queue of a message that is not released; otherwise n 0. */
struct slice embed_queue_of(const struct slu_message *m);

#endif
