/*
 * watch.c - follows the head of a queue: reads server-sent events.
 *
 *      id: 7
 *      event: queue_watch
 *      data: {"namespace":"default","queue":"mail","available":true,"head_message_id":"..."}
 *
 *      : keepalive
 */
#include "client/client.h"
#include "client/decode.h"

#include "base/json/json_out.h"
#include "base/need.h"

enum {
	LINE_MAX_BYTES = 64 * 1024
};

struct watch_call {
	slu_watch_fn *fn;
	void *arg;
	bool enough; /* fn returned false */
	struct buf line;
};

struct watch_event {
	bool available;
	char head[40];
};

static int
take_line(struct watch_call *w, struct slice line, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_FIELD(bool, struct watch_event, available),
		JSON_ROW("head_message_id", json_read_chars, struct watch_event, head),
	};
	const struct slice data = SLICE("data: ");
	struct watch_event e = { .head = "" };
	int rc;

	if (line.n <= data.n || memcmp(line.p, data.p, data.n) != 0)
		return 0;
	rc = decode_object((struct slice){ line.p + data.n, line.n - data.n }, fields, sizeof fields / sizeof fields[0], &e,
			   "event", err);
	if (!rc)
		w->enough = !w->fn(&(struct slu_queue_event){ e.available, e.head }, w->arg);
	return rc;
}

static int
take_piece(struct watch_call *w, struct slice in, struct slu_err *err)
{
	int rc = 0;

	while (in.n > 0 && !rc && !w->enough) {
		struct slice part;
		const bool whole = slice_cut(&in, '\n', &part);

		buf_put(&w->line, part.p, part.n);
		if (w->line.failed)
			return slu_fail(err, SLU_EUNKNOWN, "event too long");
		if (!whole)
			break;
		rc = take_line(w, buf_slice(&w->line), err);
		buf_clear(&w->line);
	}
	return rc;
}

/* Reads events until the connection breaks (SLU_EUNKNOWN) or fn ends the watch. */
static int
follow(struct client_request *a, struct watch_call *w, struct slu_err *err)
{
	struct slice piece;
	int rc = client_request_run(a, err);

	buf_clear(&w->line);
	while (!rc && !w->enough) {
		rc = http_piece(&a->link->http, &a->until, &piece, err);
		if (!rc && piece.n == 0)
			rc = slu_fail(err, SLU_EUNKNOWN, "the server ended the watch");
		if (!rc)
			rc = take_piece(w, piece, err);
	}
	if (a->link)
		http_hang_up(&a->link->http);
	return rc;
}

int
slu_client_watch(struct slu_client *c, const char *queue, slu_watch_fn *fn, void *arg,
		 const struct slu_call *call, struct slu_err *err)
{
	NEED3(c, queue, fn, err);

	struct watch_call w = { .fn = fn, .arg = arg };
	struct json_out out;
	struct client_request a;
	int rc;

	buf_init(&w.line, LINE_MAX_BYTES);
	client_request_init(&a, c, call, "POST", "/v1/queue/watch");
	a.begins = true;
	client_request_waits(&a, SLU_NEVER);
	a.repeatable = a.in_pieces = true;
	json_out_open(&out, &a.body);
	json_out_str(&out, "namespace", slice_of(a.space));
	json_out_str(&out, "queue", slice_of(queue));
	json_out_finish(&out);
	do
		rc = follow(&a, &w, err);
	while (rc == SLU_EUNKNOWN && c->patience >= 0);
	if (rc == SLU_ECANCELED && atomic_load(&c->stopped))
		rc = client_stopped(err);
	client_request_release(&a);
	buf_release(&w.line);
	return rc;
}
