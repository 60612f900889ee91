/*
 * served.h - the server that is measured, or hurt: one that runs already, or one of our own on
 * a folder that is gone afterwards.
 */
#ifndef BENCH_SERVED_H
#define BENCH_SERVED_H

#include "client/address.h"

#include <stdio.h>
#include <sys/types.h>

enum {
	SERVED_TEXT = 64
};

struct served_conf {
	const char *server; /* one that runs; NULL: start one */
	uint64_t pid;       /* of that one, to read its processor time; 0: unknown */
	const char *dir;    /* of our own: where its folder is made */
	const char *sync;   /* of our own: --sync; NULL: its default */
	const char *engine; /* as above: --engine */
	const char *token;  /* to show, or NULL */

	/* How, if its address is https://; NULL: such an address is refused. */
	struct tls_context *context;

	/* Of our own, for who hurts it. */
	const char *folder;      /* its data, which stays; NULL: made in dir, and removed */
	int (*enter)(void *arg); /* in the new process, before it becomes the server; or NULL */
	void *enter_arg;
	bool keep_said; /* what it says when it has started is read from `said` */
};

struct served {
	const struct served_conf *conf; /* borrowed */
	struct address address;
	pid_t pid; /* 0: unknown */
	bool ours;
	char folder[256]; /* "" when it is not ours */
	FILE *said;       /* NULL unless it was asked for; whoever takes it closes it */
	char version[SERVED_TEXT], engine[SERVED_TEXT], durability[SERVED_TEXT];
};

/* SLU_EDOWN: it does not answer, or could not be started, and why. */
int served_open(struct served *s, const struct served_conf *conf, struct slu_err *err);
void served_close(struct served *s); /* zeroed is fine */

/* Remove a folder and all that is in it. */
void served_remove(const char *folder);

/* One of our own: end it as kill -9 does, its folder stays; start it again there. */
void served_kill(struct served *s);
int served_start(struct served *s, struct slu_err *err);

/* Bytes of memory that are its own, files not counted; or -1. */
int64_t served_memory(const struct served *s);

/* Processor time it has used, or -1 when its pid is not known. */
slu_time served_cpu(const struct served *s);

#endif
