/*
 * served.h - the server under test: a running one, or one that is started on a folder that is removed
 * afterwards.
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
	const char *server; /* address of a running server; NULL = start one */
	uint64_t pid;       /* process of that server, to read its CPU time; 0 = unknown */
	const char *dir;    /* started server: the folder for its folder */
	const char *sync;   /* started server: --sync; NULL = its default */
	const char *engine; /* started server: --engine; NULL = its default */
	const char *token;  /* token; NULL = none */

	/* TLS settings; NULL = an https address is refused. */
	struct tls_context *context;

	/* Started server, for the torture. */
	const char *folder;      /* its data folder, which stays; NULL = a folder in dir, removed afterwards */
	int (*enter)(void *arg); /* called in the new process before exec; may be NULL */
	void *enter_arg;
	bool keep_said;   /* the caller reads its output from `said` */
	const char *host; /* the address where it listens, also for links of other nodes; NULL = 127.0.0.1, no links */
};

struct served {
	const struct served_conf *conf; /* borrowed */
	struct address address;
	pid_t pid; /* 0 = unknown */
	bool ours;
	char folder[256]; /* "" for a running server */
	FILE *said;       /* its output, if the caller wanted it; the caller closes it */
	char version[SERVED_TEXT], engine[SERVED_TEXT], durability[SERVED_TEXT];
};

/* Returns SLU_EDOWN, with the reason, if the server does not answer or cannot be started. */
int served_open(struct served *s, const struct served_conf *conf, struct slu_err *err);
void served_close(struct served *s); /* a zeroed struct is fine */

/* Removes a folder and its content. */
void served_remove(const char *folder);

/* Started server: kill it by SIGKILL and keep its folder; start it again there. */
void served_kill(struct served *s);
int served_start(struct served *s, struct slu_err *err);

/* Bytes of its anonymous memory, or -1. */
int64_t served_memory(const struct served *s);

/* CPU time it has used, or -1 if its pid is not known. */
slu_time served_cpu(const struct served *s);

#endif
