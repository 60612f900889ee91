/*
 * beat.h - tells the server that a worker lives, and learns what an operator asks of the worker.
 *
 *         enum beat_asked asked = client_beat(client, &beat, -1, 2 * SLU_SEC);
 *
 * A worker beats each BEAT_EACH: the server forgets one that is silent for 60 s. One try, no retry: the next beat
 * comes soon.
 */
#ifndef CLIENT_BEAT_H
#define CLIENT_BEAT_H

#include "client/client.h"

#define BEAT_EACH (5 * SLU_SEC)

enum {
	BEAT_INSTANCE = 40 /* bytes of beat_instance, with the NUL */
};

struct client_beat {
	const char *name;
	const char *queue;
	const char *space; /* NULL = the client's */
	const char *instance;
	unsigned slots, used, lost, late;
	bool ends; /* the last beat: the server forgets the worker at once */
};

enum beat_asked {
	BEAT_RUNNING,
	BEAT_QUIET,   /* take no more messages */
	BEAT_STOP,    /* the same, and end */
	BEAT_NOTHING, /* no answer: what was asked before holds */
	BEAT_UNKNOWN  /* the server has no register, or the caller may not use it: do not beat again */
};

/* cancel_fd: ends the call when it is readable; -1 = none. */
enum beat_asked client_beat(struct slu_client *c, const struct client_beat *b, int cancel_fd, slu_time timeout);

/* A text that no other process has. */
void beat_instance(char out[static BEAT_INSTANCE]);

#endif
