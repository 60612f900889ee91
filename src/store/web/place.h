/*
 * place.h - the URL of a store that is reached by HTTP, taken apart. Pure but for the environment.
 *
 *      scheme://OWNER[/PREFIX][?NAME=VALUE&...]
 *
 * OWNER is the bucket or the account. A driver has a table of its parameters.
 */
#ifndef STORE_WEB_PLACE_H
#define STORE_WEB_PLACE_H

#include "store/store.h"

/* A parameter of a URL, and the offset of the `const char *` that gets its value. */
struct place_param {
	const char *name; /* NULL ends a table */
	size_t offset;
};

/* Parts of a text that was cut at "/" and "?". NULL: the text has no query. */
struct place_parts {
	char *owner, *path, *query;
};

/* Where requests go. */
struct place_host {
	char base[STORE_URL_MAX]; /* "https://host:port", of every request */
	char host[STORE_URL_MAX]; /* of base */
};

/* Cuts the text, which must live as long as the parts. */
struct place_parts place_split(char *text);

/* Sets the parameters of the query; their values stay in its memory. Returns 0 or SLU_EINVAL. */
int place_params(void *place, const struct place_param *rows, char *query, struct slu_err *err);

/* Whether the owner stands before the host (style=virtual) and not in the path (style=path).
 * style NULL: *virtual stays. Returns 0 or SLU_EINVAL. */
int place_style(const char *style, bool *virtual, struct slu_err *err);

/* "a/b" and "a/b/" become "a/b/"; "" stays. Changes `path`. Returns 0 or SLU_EINVAL. */
int place_prefix(char *path, char out[static STORE_NAME_MAX + 1], struct slu_err *err);

/* endpoint: "https://HOST[:PORT]". before: stands before the host, with a dot; NULL: nothing.
 * unsafe: also another machine without TLS. Returns 0 or SLU_EINVAL. */
int place_endpoint(struct place_host *h, const char *endpoint, const char *before, bool unsafe,
		   struct slu_err *err);

/* The first of the variables that is set and not empty; otherwise the given text. The names end with
 * NULL. */
const char *place_environment(const char *const *names, const char *otherwise);

#endif
