/*
 * context.h - servers that have a name: address, namespace and credentials together.
 *
 *      current: prod                            $XDG_CONFIG_HOME/sluice/contexts.yaml, or
 *      contexts:                                ~/.config/sluice/contexts.yaml; mode 0600
 *        prod:
 *          server: 'https://queue.example:7443'
 *          namespace: 'payments'
 *          token_file: '/home/me/token'
 *
 *  C1  An option goes before a variable, a variable before the context, the context before the
 *      default.
 *  C2  The current context is left out when --server or SLUICE_SERVER names a server: its
 *      credentials are for no other one. A context named by --context or SLUICE_CONTEXT is used.
 *  C3  The file is replaced as a whole: written beside, synced, renamed.
 */
#ifndef CLI_CONTEXT_H
#define CLI_CONTEXT_H

#include <sluice/err.h>

enum context_field {
	CONTEXT_SERVER,
	CONTEXT_NAMESPACE,
	CONTEXT_TOKEN_FILE,
	CONTEXT_TOKEN, /* itself */
	CONTEXT_CA_FILE,
	CONTEXT_CERT,
	CONTEXT_CERT_KEY,
	CONTEXT_FIELDS
};

enum {
	CONTEXTS_MAX = 256,
	CONTEXT_NAME = 64
};

struct context {
	char name[CONTEXT_NAME];
	char *values[CONTEXT_FIELDS]; /* NULL: not set */
};

struct contexts {
	char file[4096]; /* "": no home to look in */
	char current[CONTEXT_NAME];
	struct context *items; /* by name */
	unsigned n;
};

/* As the file calls it: "token_file". */
const char *context_field_name(enum context_field f);

/* Read the file; one that is not there has no contexts. SLU_EINVAL names what is wrong with it, also
 * a token in a file that others may read. */
int contexts_load(struct contexts *c, struct slu_err *err);
int contexts_save(const struct contexts *c, struct slu_err *err);
void contexts_release(struct contexts *c); /* a zeroed one is fine */

/* SLU_ENOTFOUND, with the nearest name. */
int contexts_find(struct contexts *c, const char *name, struct context **out, struct slu_err *err);

/* A new one without values. SLU_EINVAL: a name has letters, digits, . _ - and @. */
int contexts_add(struct contexts *c, const char *name, struct context **out, struct slu_err *err);
void contexts_remove(struct contexts *c, struct context *item);

/* Takes a copy; NULL: not set. SLU_ENOMEM. */
int context_set(struct context *item, enum context_field f, const char *value, struct slu_err *err);

#endif
