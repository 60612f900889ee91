/*
 * names.h - the names of queues in the session's namespace, and of namespaces that have queues.
 */
#ifndef CLI_LIB_NAMES_H
#define CLI_LIB_NAMES_H

#include "cli/lib/session.h"

typedef void names_fn(void *arg, const char *name);

/* Call fn with each name once, in the order of the server. */
int names_queues(struct session *s, names_fn *fn, void *arg, struct slu_err *err);
int names_spaces(struct session *s, names_fn *fn, void *arg, struct slu_err *err);

/* Reports "no queues in namespace default yet", with the namespaces that have queues if the server lists
 * them. Sets the exit code. */
void names_no_queues(struct session *s);

#endif
