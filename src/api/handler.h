/*
 * handler.h - apicalls of HTTP requests: reads the request by tables, answers with JSON.
 *
 *      const struct handler flat_stats = { stats, sizeof(struct state), QUERY_ROWS(params) };
 *      { "GET", "/stats", .handler = &flat_stats, ... },
 *
 * apicall_handle makes the apicall and its state, reads the parameters into the state, and
 * calls `run`. A request that fails before is refused in the form of its dialect. In every file of handlers
 * the state is called struct state, and no other file sees it.
 *
 * An apicall of this header has a struct call: call_of(a->x).
 *
 * On a route with `worker`, a request with the field Sluice-Worker is a beat of that worker (api/worker/workers.h), and the
 * answer has the field, too: what the worker is asked.
 */
#ifndef API_HANDLER_H
#define API_HANDLER_H

#include "api/apicall.h"
#include "api/params.h"
#include "http/call.h"

/* What a request needs before it runs, and the function that runs it. */
struct handler {
	void (*run)(struct apicall *a);
	size_t state;                    /* bytes of apicall.state, zeroed; 0: none */
	const struct param *query;       /* the parameters of the query; or NULL */
	const struct param *body;        /* the members of the JSON body; or NULL */
	const struct json_field *fields; /* the same, read by dialect.read_body; or NULL */
	unsigned n;                      /* rows of query, body or fields */
	int arg;                         /* for run: apicall.arg */
};

#define QUERY_ROWS(rows) .query = (rows), .n = COUNT(rows)
#define BODY_ROWS(rows)  .body = (rows), .n = COUNT(rows)
#define FIELD_ROWS(rows) .fields = (rows), .n = COUNT(rows)

/* For route.handle: dialects_join sets it for routes with a handler. */
void apicall_handle(struct call *c, void *api);

/* The same with another handler than the route's. */
void apicall_start(struct call *c, struct api *api, const struct handler *h);

/* For a route without a handler: apicall_open with the rights of the route. */
struct apicall *apicall_new(struct api *api, struct call *c);

/* Reads the query of the call by a table. Returns false if it refused the call. */
bool apicall_params(struct apicall *a, const struct param *rows, size_t n, void *out);

/* Answers with the JSON in out and a line feed. If out failed, refuses with SLU_ENOMEM, or
 * with SLU_EUNKNOWN if an op changed something. */
void apicall_reply(struct apicall *a, unsigned status);

/* The same with the bytes in out as they are; type is a literal. */
void apicall_reply_as(struct apicall *a, unsigned status, const char *type);

/* Begins the answer, a JSON object; ends the object and answers. */
void apicall_object(struct apicall *a, struct json_out *w);
void apicall_reply_object(struct apicall *a, struct json_out *w, unsigned status);

/* apicall_form.lacks: adds WWW-Authenticate to a refusal. */
void handler_lacks(struct exchange *x, const char *scope);

#endif
