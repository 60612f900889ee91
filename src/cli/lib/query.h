/*
 * query.h - calls of the server's API, one at a time.
 *
 *         query_path(&q, "/stats");
 *         http_param(&q.path, "queue", queue);
 *         rc = query_get(&q, &body, &err);      body is valid until the next call
 *
 * One thread uses it.
 */
#ifndef CLI_LIB_QUERY_H
#define CLI_LIB_QUERY_H

#include "cli/lib/missing.h"
#include "client/http.h"

#include <sluice/client.h>

struct json;
struct json_field;

struct cli_query {
	struct slu_client *client; /* borrowed */
	int cancel_fd;             /* becomes readable when the call is to end; 0 = none */
	slu_time timeout;          /* of a call; 0 = the client's timeout */
	struct buf path;
	struct slu_answer answer; /* of the last call; status 0 = no answer came */
	struct missing missing;   /* of the last list: query_each */
};

void query_init(struct cli_query *q, struct slu_client *client);
void query_release(struct cli_query *q);

/* Begin a path, also with the parameters of a queue. http_param adds other parameters. */
void query_path(struct cli_query *q, const char *path);
void query_queue(struct cli_query *q, const char *path, const char *space, const char *queue);

int query_get(struct cli_query *q, struct slice *out, struct slu_err *err);
int query_post(struct cli_query *q, struct slice body, struct slice *out, struct slu_err *err);

int query_delete(struct cli_query *q, struct slice *out, struct slu_err *err);

/* The client may repeat a PUT after a failure. */
int query_put(struct cli_query *q, struct slice body, struct slice *out, struct slu_err *err);

/* Send a JSON object of texts. pairs: name, value, name, value ..., NULL. */
int query_post_texts(struct cli_query *q, const char *const *pairs, struct slice *out, struct slu_err *err);
int query_put_texts(struct cli_query *q, const char *const *pairs, struct slice *out, struct slu_err *err);

/* Read the members of a JSON object that the fields name (json_table.h). Return SLU_EUNKNOWN if the
 * answer is malformed. */
int query_read(struct slice answer, const struct json_field *fields, size_t n, void *out,
	       struct slu_err *err);
int query_read_u64(struct slice answer, const char *name, uint64_t *out, struct slu_err *err);

/* A list that a server answers page by page: {"queues":[{...},...],"cursor":"17"}. */
struct query_list {
	const char *path;
	const char *space; /* NULL = all namespaces */
	const char *array; /* the member of a page that is the list */
	unsigned pages;    /* how many pages to read; 0 = all */
	const char *queue; /* NULL = no parameter */
};

/* Calls fn for each element; fn reads one value. An error of fn ends the list. q->missing names the shards that did
 * not answer. */
int query_each(struct cli_query *q, const struct query_list *list,
	       int (*fn)(void *arg, struct json *in, struct slu_err *err), void *arg, struct slu_err *err);

/* A JSON answer without its newline. Older servers send no newline. */
struct slice query_value(struct slice answer);

/* Prints a JSON answer as one line. */
void query_print(struct slice answer);

#endif
