/*
 * served.h - the server that is measured: one that runs already, or one of our own on
 * a folder that is gone afterwards.
 */
#ifndef BENCH_SERVED_H
#define BENCH_SERVED_H

#include "client/address.h"

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
};

struct served {
	const struct served_conf *conf; /* borrowed */
	struct address address;
	pid_t pid; /* 0: unknown */
	bool ours;
	char folder[256]; /* "" when it is not ours */
	char version[SERVED_TEXT], engine[SERVED_TEXT], durability[SERVED_TEXT];
};

/* SLU_EDOWN: it does not answer, or could not be started, and why. */
int served_open(struct served *s, const struct served_conf *conf, struct slu_err *err);
void served_close(struct served *s); /* zeroed is fine */

/* One of our own: end it as kill -9 does, its folder stays; start it again there. */
void served_kill(struct served *s);
int served_start(struct served *s, struct slu_err *err);

/* Bytes of memory that are its own, files not counted; or -1. */
int64_t served_memory(const struct served *s);

/* Processor time it has used, or -1 when its pid is not known. */
slu_time served_cpu(const struct served *s);

#endif
