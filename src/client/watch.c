/*
 * watch.c - what changes at the head of a queue, as it changes: lines of server-sent events.
 *
 *      id: 7
 *      event: queue_watch
 *      data: {"namespace":"default","queue":"mail","available":true,"head_message_id":"..."}
 *
 *      : keepalive
 */
#include "client/client.h"
#include "client/decode.h"

#include "base/json_out.h"
#include "base/need.h"

enum {
	LINE_MAX_BYTES = 64 * 1024
};

struct watching {
	slu_watch_fn *fn;
	void *arg;
	bool enough; /* fn says so */
	struct buf line;
};

struct event {
	bool available;
	char head[40];
};

static int
take_line(struct watching *w, struct slice line, struct slu_err *err)
{
	static const struct json_field fields[] = {
		DECODE(json_read_bool, struct event, available, "available"),
		DECODE(decode_chars, struct event, head, "head_message_id"),
	};
	const struct slice data = SLICE("data: ");
	struct event e = { .head = "" };
	struct slu_err why;
	struct json r;

	if (line.n <= data.n || memcmp(line.p, data.p, data.n) != 0)
		return 0;
	json_init(&r, (struct slice){ line.p + data.n, line.n - data.n }, JSON_DEPTH);
	json_fields(&r, fields, sizeof fields / sizeof fields[0], JSON_LENIENT, &e);
	if (json_end(&r, &why))
		return slu_fail(err, SLU_EUNKNOWN, "an event is not understood: %s", why.text);
	w->enough = !w->fn(&(struct slu_queue_event){ e.available, e.head }, w->arg);
	return 0;
}

static int
take_piece(struct watching *w, struct slice in, struct slu_err *err)
{
	int rc = 0;

	while (in.n > 0 && !rc && !w->enough) {
		const char *const lf = memchr(in.p, '\n', in.n);
		const size_t n = lf ? (size_t)(lf - in.p) : in.n;

		buf_put(&w->line, in.p, n);
		in = (struct slice){ in.p + n + (lf != NULL), in.n - n - (lf != NULL) };
		if (w->line.failed)
			return slu_fail(err, SLU_EUNKNOWN, "an event is too long");
		if (!lf)
			break;
		rc = take_line(w, buf_slice(&w->line), err);
		buf_clear(&w->line);
	}
	return rc;
}

/* Until it breaks, SLU_EUNKNOWN, or there was enough of it. */
static int
follow(struct ask *a, struct watching *w, struct slu_err *err)
{
	struct slice piece;
	int rc = ask_run(a, err);

	buf_clear(&w->line);
	while (!rc && !w->enough) {
		rc = http_piece(&a->link->http, &a->until, &piece, err);
		if (!rc && piece.n == 0)
			rc = slu_fail(err, SLU_EUNKNOWN, "the server has ended the watch");
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
	NEED(c, err);
	NEED(queue, err);
	NEED(fn, err);

	struct watching w = { .fn = fn, .arg = arg };
	struct json_out out;
	struct ask a;
	int rc;

	buf_init(&w.line, LINE_MAX_BYTES);
	ask_init(&a, c, call, "POST", "/v1/queue/watch");
	a.begins = true;
	ask_waits(&a, SLU_NEVER);
	a.repeatable = a.in_pieces = true;
	json_out_init(&out, &a.body);
	json_out_object(&out, NULL);
	json_out_str(&out, "namespace", slice_of(a.space));
	json_out_str(&out, "queue", slice_of(queue));
	json_out_close(&out);
	json_out_end(&out);
	do
		rc = follow(&a, &w, err);
	while (rc == SLU_EUNKNOWN && c->patience >= 0);
	if (rc == SLU_ECANCELED && atomic_load(&c->stopped))
		rc = client_stopped(err);
	ask_release(&a);
	buf_release(&w.line);
	return rc;
}
