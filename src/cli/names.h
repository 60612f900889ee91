/*
 * names.h - names that a server lists: of the queues of the session's namespace, or of all
 * namespaces that have queues.
 */
#ifndef CLI_NAMES_H
#define CLI_NAMES_H

#include "cli/session.h"

typedef void names_fn(void *arg, const char *name);

/* Calls fn with each name once, in the order of the server. */
int names_queues(struct session *s, names_fn *fn, void *arg, struct slu_err *err);
int names_spaces(struct session *s, names_fn *fn, void *arg, struct slu_err *err);

/* "no queues in namespace default yet", and which namespaces have some, as far as the server
 * tells. Sets the exit. */
void names_no_queues(struct session *s);

#endif
