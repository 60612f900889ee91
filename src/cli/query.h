/*
 * query.h - one path of the server's API after the other.
 *
 *         query_path(&q, "/stats");
 *         query_param(&q, "topic", queue);
 *         rc = query_get(&q, &body, &err);      body is good until the next
 *
 * One thread's.
 */
#ifndef CLI_QUERY_H
#define CLI_QUERY_H

#include "base/bytes.h"

#include <sluice/client.h>

struct query {
	struct slu_client *client; /* borrowed */
	int cancel_fd;             /* readable: nobody wants the answer any more; 0: none */
	slu_time timeout;          /* of a call; 0: the client's */
	struct buf path;
	struct slu_answer answer; /* of the last call; status 0: there was none */
};

void query_init(struct query *q, struct slu_client *client);
void query_release(struct query *q);

/* Begin a path and append to its query. A NULL value is left out. */
void query_path(struct query *q, const char *path);
void query_param(struct query *q, const char *name, const char *value);
void query_param_u64(struct query *q, const char *name, uint64_t value);

int query_get(struct query *q, struct slice *out, struct slu_err *err);
int query_post(struct query *q, struct slice body, struct slice *out, struct slu_err *err);

int query_delete(struct query *q, struct slice *out, struct slu_err *err);

/* May be repeated. */
int query_put(struct query *q, struct slice body, struct slice *out, struct slu_err *err);

/* A JSON answer without the newline at its end. Older servers send none. */
struct slice query_value(struct slice answer);

/* Print a JSON answer as one line. */
void query_print(struct slice answer);

#endif
