/*
 * dialect.h - an HTTP dialect: routes, codecs, and the form of its errors.
 *
 * A dialect turns requests into ops (engine/op.h) and ops into answers. It has no queue
 * logic. A dialect is a folder of src/api, a row of `dialects` and a part of the OpenAPI
 * document (openapi.py). No other code names a dialect: an error of the rate limit, of
 * the authorization or of the server itself takes the form of the dialect that owns the
 * route.
 *
 *      route found       route->dialect            set by dialects_join
 *      no such route     the longest `prefix`      of the request's path
 *
 * The tables are constant. All functions run on the network thread of their call.
 */
#ifndef API_DIALECT_H
#define API_DIALECT_H

#include "base/limit.h"
#include "http/route.h"

#include <sluice/err.h>

enum {
	DIALECT_BASE = 100 /* bytes of a base that a setting gives */
};

struct api;
struct apicall;
struct json_field;
struct http_refusal;

/* The name and the status of an error code in a dialect. */
struct dialect_error {
	int code; /* SLU_... */
	const char *name;
	unsigned status;
};

/* A refusal that the HTTP server sends by itself: a malformed head, an unknown path. */
struct dialect_refusal {
	unsigned status;
	int code;            /* the error code that describes it best */
	const char *reason;  /* a word for machines: "body_too_large" */
	const char *text;    /* a sentence for people */
	enum limit limit;    /* the limit that refused it, or LIMIT_COUNT */
	struct slice method; /* empty if the head was not readable */
	struct slice path;   /* the same */
};

struct dialect {
	const char *name;
	const char *prefix; /* of its paths */
	const char *base;   /* beginning of its paths that a setting may replace; NULL: none */
	const struct route *routes;
	unsigned n_routes;
	const char *type; /* content type of `describe` */

	/* Codes whose name or status differs from SLU_ERRORS; may be NULL. */
	const struct dialect_error *errors;
	unsigned n_errors;

	/* Runs first for every request: adds the header fields that each answer has. */
	void (*begin)(struct call *c, const struct api *api);

	/* Answers the call with an error. index: the item of a list that failed, or -1. */
	void (*refuse)(struct call *c, const struct slu_err *err, int64_t index);

	/* Writes the body of a refusal by the server. */
	void (*describe)(struct buf *out, const struct dialect_refusal *r);

	/* Reads the JSON body of a handler with `fields` (api/apicall.h). Returns false if it
	 * refused the request. NULL: no handler has them. */
	bool (*read_body)(struct apicall *a, const struct json_field *fields, size_t n, void *out);

	/* Its handlers check signatures of AWS (auth/sigv4.h); a request with one has no identity before. */
	bool signs;

	/* Query parameters that a request may have once; ends with NULL. May be NULL. */
	const char *const *params;
};

/* The dialects of this server; ends with NULL. The first one has the prefix "/". */
extern const struct dialect *const dialects[];

/* Joins the routes of all dialects of a table and sets their `dialect`. base: replaces the base of a dialect that has
 * one; NULL: nothing is replaced. The caller frees *out with mem_free. Returns SLU_ENOMEM. */
int dialects_join(const struct dialect *const *all, const char *base, struct route **out, unsigned *n);

/* Returns SLU_EINVAL unless the text can be a base: /a/b, of at most DIALECT_BASE bytes. */
int dialect_check_base(const char *base, struct slu_err *err);

/* The row of a code: the dialect's own, or one made from SLU_ERRORS. */
struct dialect_error dialect_error(const struct dialect *d, int code);

/* Calls `begin` of the call's dialect. */
void dialect_begin(struct call *c, const struct api *api);

/* Answers a call with an error, in the form of its dialect. text NULL: the text of
 * SLU_ERRORS. index: the item of a list that failed, or -1. */
void dialect_refuse(struct call *c, int rc, const char *text, int64_t index);

/* The same with the limit and the retry time of err. */
void dialect_refuse_err(struct call *c, const struct slu_err *err, int64_t index);

/* For http_conf.describe; arg is a struct api. */
const char *dialect_describe(struct buf *out, const struct http_refusal *r, void *arg);

#endif
