/*
 * victim.h - a server that is tortured: one that runs already, or one of our own in a
 * folder that is gone afterwards, which can be killed, paused and started again.
 *
 *      clients ── victim_address ──> where it is now; a new life has a new port
 *      faults  ── victim_end, victim_start, victim_fill, victim_step
 *
 * Of our own server its data may be on a small disk (a tmpfs in a mount namespace of its
 * own, which needs no rights where user namespaces are allowed), and its wall clock may be
 * moved (libfaketime, if it is installed). Both are asked for before it starts, and say
 * why they are not possible. With the engine redis its messages are in stores (store.h),
 * which other nodes may share.
 *
 * victim_address is for any thread, all else for one.
 */
#ifndef TORTURE_VICTIM_H
#define TORTURE_VICTIM_H

#include "bench/served.h"
#include "torture/store.h"

#include <pthread.h>

enum {
	VICTIM_TAIL = 4096, /* bytes of what it said last */
	VICTIM_REASON = 160
};

struct victim_conf {
	const char *server;          /* one that runs; NULL: start one */
	const char *token;           /* to show, or NULL */
	struct tls_context *context; /* of https://; NULL: such an address is refused */
	const char *engine;          /* of our own; NULL: its default */
	const char *dir;             /* of our own: where its folder is made */
	bool small_disk;             /* of our own: it is wanted, as is the next */
	bool own_clock;
	const struct stores *stores; /* of our own: where its messages are; n 0: with itself */
	unsigned node;               /* which of those that share them */
};

struct victim {
	struct victim_conf conf;
	struct served_conf served_conf;
	struct served served;
	bool ours;
	bool running;
	char folder[256]; /* of our own; "" otherwise */

	/* Shared, under mtx. */
	pthread_mutex_t mtx;
	struct address address;
	unsigned life; /* one more with every start */
	char tail[VICTIM_TAIL];
	size_t tail_n;

	/* Its disk and its clock; why there are none. */
	int user_ns, mount_ns, disk; /* -1: no disk of its own */
	char no_disk[VICTIM_REASON];
	char clock_lib[128]; /* "": its clock is the system's */
	char clock_file[320];
	char no_clock[VICTIM_REASON];

	pthread_t reader; /* of what it says */
	bool is_read;
};

/* SLU_EDOWN: there is no server, and why. */
int victim_open(struct victim *v, const struct victim_conf *conf, struct slu_err *err);
void victim_close(struct victim *v); /* zeroed is fine */

/* Where it is; a life that the caller has not seen means that connections are no good. */
unsigned victim_address(struct victim *v, struct address *out);

/* End it by a signal and wait: *status as waitpid has it, and whether it had ended before. */
bool victim_end(struct victim *v, int signal, int *status);
int victim_start(struct victim *v, struct slu_err *err);

/* Has it ended by itself? */
bool victim_is_gone(struct victim *v, int *status);
void victim_pause(struct victim *v);
void victim_resume(struct victim *v);

/* Its settings have changed. */
void victim_reload(struct victim *v);

/* Until it serves all of its shards by the map of its stores, which it comes to by itself.
 * SLU_EDOWN: it does not. */
int victim_wait(struct victim *v, struct slu_err *err);

/* Leave no room on its disk; or all of it. */
int victim_fill(struct victim *v, struct slu_err *err);
void victim_empty(struct victim *v);

/* Its wall clock shows so much more than the system's. */
int victim_step(struct victim *v, slu_time step, struct slu_err *err);

/* Open files, or -1. */
int64_t victim_files(const struct victim *v);

/* What it said last, whole lines; a copy into out. */
void victim_said(struct victim *v, char out[static VICTIM_TAIL]);

#endif
