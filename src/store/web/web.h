/*
 * web.h - HTTP calls of stores that are reached by HTTP.
 *
 *      struct web_call call = { .method = "GET", .url = url, .out = &bytes };
 *
 *      web_field(&call, "Range: bytes=%u-%u", 0, 99);
 *      rc = web_run(web, &call, err);
 *      if (!rc && call.status == 206)
 *              use(bytes);
 *      web_call_release(&call);
 *
 * Threads share a struct web. It keeps the connections of calls that have ended for later calls.
 * A call never follows a redirection and is never repeated: the line repeats it. If a kept connection turns out
 * to be lost, the call fails.
 */
#ifndef STORE_WEB_WEB_H
#define STORE_WEB_WEB_H

#include "base/bytes.h"

#include <sluice/err.h>

struct web;
struct curl_slist;

struct web_conf {
	const char *ca;    /* file with the certificates to trust; NULL: the system's */
	const char *proxy; /* URL; NULL: what http_proxy, https_proxy and no_proxy say; "": none */
	slu_time timeout;  /* of a call with little content; 0: WEB_TIMEOUT */
};

#define WEB_TIMEOUT (10 * SLU_SEC)

enum {
	WEB_WHY_MAX = 4096, /* bytes that are kept of the body of a refusal */
	WEB_HEAD_MAX = 32 << 10
};

struct web_call {
	/* The question. The caller sets it before web_run; web_field adds a field. */
	const char *method; /* GET, HEAD, PUT or DELETE */
	const char *url;
	struct curl_slist *fields;
	struct slice body; /* PUT */
	struct buf *out;   /* gets the body of an answer with a status below 300; NULL: dropped */
	size_t expected;   /* bytes of that body at most, for the timeout; 0: little */
	bool failed;       /* memory ran out in web_field; web_run returns SLU_ENOMEM */

	/* The answer. */
	unsigned status;
	struct buf head; /* lines of the head */
	struct buf why;  /* the beginning of the body of any other answer */
};

/* Returns NULL if memory is out. */
struct web *web_new(const struct web_conf *conf);
void web_free(struct web *w); /* no call runs; NULL is fine */

/* Adds "Name: value" to the head of the call. */
void web_field(struct web_call *c, const char *fmt, ...) SLU_PRINTF(2, 3);

/* Returns 0 if an answer came whole, with whatever status. Otherwise SLU_ENOMEM, SLU_ETIMEOUT or
 * SLU_EDOWN: the server may or may not have done what the call asks. Blocks. */
int web_run(struct web *w, struct web_call *c, struct slu_err *err);

/* The value of a field of the answer; n 0 if the answer lacks it. name: in lower case. */
struct slice web_head(const struct web_call *c, const char *name);

/* The moment of the field Date, whole seconds; 0 if the answer has none. */
slu_time web_date(const struct web_call *c);

void web_call_release(struct web_call *c);

#endif
