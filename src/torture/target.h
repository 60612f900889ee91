/*
 * target.h - the server under test: a running one, or one that is started on a folder that is removed
 * afterwards. A started server can be killed, paused and started again.
 *
 *      clients ── target_address ──> its current address; a new life has a new port
 *      faults  ── target_end, target_start, target_fill, target_step
 *
 * A started server can have a small disk (a tmpfs in its own mount namespace, without rights where user
 * namespaces are allowed), and its wall clock can be changed (libfaketime, if it is installed). Both are
 * requested before the start, and give a reason if they are not possible. Its messages may be in stores
 * (store.h) that other nodes share.
 *
 * target_address is for any thread, all else for the thread that has seized the node, or for one thread.
 */
#ifndef TORTURE_TARGET_H
#define TORTURE_TARGET_H

#include "bench/served.h"
#include "torture/store.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
	TARGET_TAIL = 4096, /* bytes of its last output */
	TARGET_REASON = 160
};

struct target_conf {
	const char *server;          /* address of a running server; NULL = start one */
	const char *token;           /* token; NULL = none */
	struct tls_context *context; /* TLS settings; NULL = an https address is refused */
	const char *engine;          /* started server: the engine; NULL = its default */
	bool forgets;                /* started server: the engine loses all messages in a restart */
	const char *dir;             /* started server: the folder for its folder */
	bool small_disk;             /* started server: a small disk is wanted */
	bool own_clock;
	const struct stores *stores; /* started server: the stores of its messages */
	unsigned node;               /* index of this node */
	bool links;                  /* started server: it has links to the other nodes */
};

struct target {
	struct target_conf conf;
	struct served_conf served_conf;
	struct served served;
	bool ours;
	bool running;
	char folder[256]; /* folder of a started server; "" otherwise */
	char host[32];    /* where a started server with links listens */

	/* Shared, under mtx. */
	pthread_mutex_t mtx;
	struct address address;
	unsigned life; /* incremented with every start */
	char tail[TARGET_TAIL];
	size_t tail_n;

	/* Its disk and its clock, or why there are none. */
	int user_ns, mount_ns, disk; /* -1 = no small disk */
	char no_disk[TARGET_REASON];
	char clock_lib[128]; /* "" = the system's clock */
	char clock_file[320];
	char no_clock[TARGET_REASON];

	atomic_bool hurt;    /* a fault has it: target_seize */
	atomic_uint cut_off; /* partitions of this node that last */
	atomic_uint n_cuts;  /* partitions of this node so far */

	pthread_t reader; /* thread that reads its output */
	bool is_read;
};

/* Returns SLU_EDOWN, with the reason, if there is no server. */
int target_open(struct target *v, const struct target_conf *conf, struct slu_err *err);
void target_close(struct target *v); /* a zeroed struct is fine */

/* Takes the node for a fault. Returns false if another fault has it. For any thread. */
bool target_seize(struct target *v);
void target_let_go(struct target *v);

/* The current address. If the life changed, the caller's connections are invalid. */
unsigned target_address(struct target *v, struct address *out);

/* Ends the server by a signal and waits. *status: as waitpid returns it; *before: it had ended already. */
bool target_end(struct target *v, int signal, int *status);
int target_start(struct target *v, struct slu_err *err);

/* Has the server ended by itself? */
bool target_is_gone(struct target *v, int *status);
void target_pause(struct target *v);
void target_resume(struct target *v);

/* Has the server reload its settings. */
void target_reload(struct target *v);

/* Sends a POST without a body. Returns SLU_EBUSY if the server answers 409, SLU_EDOWN if it does not answer
 * 200. */
int target_post(struct target *v, const char *path, struct slu_err *err);

/* Waits until the server serves all shards by the current map. Returns SLU_EDOWN if it does not. */
int target_wait(struct target *v, struct slu_err *err);

/* Returns whether the node reports within a second that it owns the shard. */
bool target_owns(struct target *v, uint32_t shard);

/* Fill its disk, or free it. */
int target_fill(struct target *v, struct slu_err *err);
void target_empty(struct target *v);

/* Sets the offset of its wall clock to the system's. */
int target_step(struct target *v, slu_time step, struct slu_err *err);

/* Number of open files, or -1. */
int64_t target_files(const struct target *v);

/* Copies its last output to out, whole lines. */
void target_said(struct target *v, char out[static TARGET_TAIL]);

#endif
