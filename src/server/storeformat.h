/*
 * storeformat.h - the format of the settings of a store, and how a node raises it: LINE-16 of members/members.h.
 *
 *      lane: an op needs format 3 ──> storeformat_has ──> the settings have it
 *                                            └──> the settings have a lower one: storeformat_check, storeformat_raise
 *
 * storeformat_raise starts a thread that puts the next version of the settings; at most one at a time. Any thread
 * may call the functions.
 */
#ifndef SERVER_STOREFORMAT_H
#define SERVER_STOREFORMAT_H

#include "members/settings.h"

#include <pthread.h>
#include <stdatomic.h>

struct members;
struct slu_log;
struct store;

struct storeformat {
	struct store *store;
	struct slu_log *log;
	_Atomic uint32_t format; /* of the settings, as far as this node knows */

	pthread_mutex_t mtx;
	pthread_cond_t changed;
	/* shared, under mtx */
	struct settings settings;
	uint32_t wanted; /* by the thread */
	bool runs;       /* the thread is at work */
	bool started;    /* the thread must be joined */
	pthread_t thread;
	struct slu_err err; /* why the last attempt failed */
};

/* store and log are kept by the caller. */
void storeformat_init(struct storeformat *f, struct store *store, const struct settings *settings, struct slu_log *log);

/* Waits for the thread. */
void storeformat_release(struct storeformat *f);

/* Whether the settings have the format. */
static inline bool
storeformat_has(const struct storeformat *f, uint32_t format)
{
	return atomic_load_explicit(&f->format, memory_order_acquire) >= format;
}

/* Returns SLU_EDOWN if a living node cannot read the format, and names the node. */
int storeformat_check(const struct members *m, uint32_t format, struct slu_err *err);

/* Raises the settings to the format. Returns SLU_EDOWN if that fails, or takes longer than a second; then the thread goes
 * on. */
int storeformat_raise(struct storeformat *f, uint32_t format, struct slu_err *err);

#endif
