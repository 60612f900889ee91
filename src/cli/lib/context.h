/*
 * context.h - named servers: a context has an address, a namespace and credentials.
 *
 *      current: prod                            $XDG_CONFIG_HOME/sluice/contexts.yaml, or
 *      contexts:                                ~/.config/sluice/contexts.yaml; mode 0600
 *        prod:
 *          server: 'https://queue.example:7443'
 *          namespace: 'payments'
 *          token_file: '/home/me/token'
 *
 *  CONTEXT-1  An option overrides a variable, a variable overrides the context, the context overrides the
 *      default.
 *  CONTEXT-2  The current context is not used if --server or SLUICE_SERVER names a server, because its
 *      credentials belong to its own server. A context named by --context or SLUICE_CONTEXT is used.
 *  CONTEXT-3  The file is replaced as a whole: a new file is written beside it, synced and renamed.
 */
#ifndef CLI_LIB_CONTEXT_H
#define CLI_LIB_CONTEXT_H

#include <sluice/err.h>

enum context_field {
	CONTEXT_SERVER,
	CONTEXT_NAMESPACE,
	CONTEXT_TOKEN_FILE,
	CONTEXT_TOKEN, /* the token itself */
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
	char *values[CONTEXT_FIELDS]; /* NULL = not set */
};

struct contexts {
	char file[4096]; /* "" = no home folder */
	char current[CONTEXT_NAME];
	struct context *items; /* sorted by name */
	unsigned n;
};

/* The name of a field in the file: "token_file". */
const char *context_field_name(enum context_field f);

/* Reads the file. A missing file has no contexts. Returns SLU_EINVAL, and names the mistake, if the file is
 * invalid or has a token and other users may read it. */
int contexts_load(struct contexts *c, struct slu_err *err);
int contexts_save(const struct contexts *c, struct slu_err *err);
void contexts_release(struct contexts *c); /* a zeroed struct is fine */

/* Returns SLU_ENOTFOUND, with the most similar name, if the context does not exist. */
int contexts_find(struct contexts *c, const char *name, struct context **out, struct slu_err *err);

/* Adds a context without values. Returns SLU_EINVAL unless the name has letters, digits, . _ - and @ only. */
int contexts_add(struct contexts *c, const char *name, struct context **out, struct slu_err *err);
void contexts_remove(struct contexts *c, struct context *item);

/* Copies the value; NULL removes it. Returns SLU_ENOMEM if memory runs out. */
int context_set(struct context *item, enum context_field f, const char *value, struct slu_err *err);

#endif
