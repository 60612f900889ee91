/*
 * receive.c - `sluice queue dequeue`, and ack, nack and extend of what it took: by
 * variables of the shell, so that they need no arguments.
 */
#include "cli/exports.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static const char receipt_name[] = "SLUICE_QUEUE_RECEIPT";

/* --- dequeue -------------------------------------------------------------------- */

struct dequeue {
	struct session s;
	struct slu_receive how;
	const char *block, *payload_out;
	char path[4096];
};

/* The payload of a message to a file of its own, unless one was named. */
static int
save(struct dequeue *q, struct slu_delivery *d, struct slu_err *err)
{
	const char *folder = exports_get("TMPDIR");
	int fd, rc;

	if (q->payload_out) {
		(void)snprintf(q->path, sizeof q->path, "%s", q->payload_out);
		return slu_delivery_save(d, q->path, err);
	}
	(void)snprintf(q->path, sizeof q->path, "%s/sluice-payload-XXXXXX",
		       folder ? folder : "/tmp");
	fd = mkostemp(q->path, O_CLOEXEC);
	if (fd < 0)
		return slu_fail(err, SLU_EFAILED, "%s: %m", q->path);
	rc = slu_delivery_write(d, fd, err);
	if (close(fd) != 0 && !rc)
		rc = slu_fail(err, SLU_EFAILED, "%s: %m", q->path);
	if (rc)
		(void)unlink(q->path); /* half of a payload is of no use */
	return rc;
}

static int
print_receipt(struct exports *e, const struct slu_receipt *r, struct slu_err *err)
{
	char *line = slu_receipt_write(r);

	if (!line)
		return slu_fail(err, SLU_ENOMEM, "no memory for a receipt");
	exports_put(e, receipt_name, line);
	slu_free(line);
	return 0;
}

static int
print_delivery(const struct dequeue *q, const struct slu_delivery_info *i, struct slu_err *err)
{
	const struct slu_receipt *r = &i->receipt;
	struct exports e;
	int rc;

	exports_begin(&e, &q->s);
	exports_put(&e, "SLUICE_QUEUE_NAMESPACE", r->space);
	exports_put(&e, "SLUICE_QUEUE_NAME", r->queue);
	exports_put(&e, "SLUICE_QUEUE_MESSAGE_ID", r->id);
	exports_put(&e, "SLUICE_QUEUE_LEASE", r->lease_id);
	exports_put(&e, "SLUICE_QUEUE_TXN", r->txn);
	exports_number(&e, "SLUICE_QUEUE_FENCING_TOKEN", r->token);
	exports_put(&e, "SLUICE_QUEUE_META_ETAG", r->etag);
	exports_number(&e, "SLUICE_QUEUE_ATTEMPTS", i->attempts);
	exports_number(&e, "SLUICE_QUEUE_EXPIRES_UNIX", (uint64_t)(i->until / SLU_SEC));
	exports_put(&e, "SLUICE_QUEUE_CONTENT_TYPE", i->content_type);
	exports_put(&e, "SLUICE_QUEUE_CORRELATION_ID", i->correlation_id);
	exports_put(&e, "SLUICE_QUEUE_PAYLOAD_PATH", q->path);
	if (*r->state.id)
		exports_lease(&e, "SLUICE_QUEUE_STATE", &r->state);
	rc = print_receipt(&e, r, err);
	return rc ? rc : exports_end(&e, err);
}

/* What could not be handed over goes back at once. */
static int
take(struct dequeue *q, struct slu_delivery *d, struct slu_err *err)
{
	int rc = save(q, d, err);

	if (!rc)
		rc = print_delivery(q, slu_delivery_info(d), err);
	if (rc)
		(void)slu_delivery_nack(d, &(struct slu_nack){ SLU_OPTIONS_INIT(struct slu_nack), .defer = true }, NULL, NULL);
	return rc;
}

static int
dequeue(struct dequeue *q, const char *queue, struct slu_err *err)
{
	struct slu_delivery *d = NULL;
	int rc = exports_wait(q->block, &q->how.wait, err);

	q->how.struct_size = sizeof q->how;
	if (!rc)
		rc = slu_client_receive(q->s.client, queue, &q->how, &d, NULL, err);
	if (!rc && !d) {
		session_nothing(&q->s, "nothing to take in %s", queue);
	}
	if (!rc && d)
		rc = take(q, d, err);
	slu_delivery_leave(d);
	return rc;
}

static const struct session_help dequeue_help = {
	.usage = "queue dequeue QUEUE [options]",
	.text = "Waits for a message, writes its payload to a file and prints variables for the\n"
		"shell; `sluice queue ack`, `nack` and `extend` then need no arguments. The message\n"
		"is yours until its lease ends. Exits 3 when nothing came in time.\n",
	.examples = "  eval \"$(sluice queue dequeue mail)\"\n"
		    "  send-mail <\"$SLUICE_QUEUE_PAYLOAD_PATH\" && sluice queue ack\n"
		    "  sluice queue dequeue mail --block 30s --visibility 5m --payload-out mail.json\n"
		    "  sluice queue dequeue jobs --stateful --owner worker-1 --json\n",
	.min_words = 1,
	.max_words = 1,
};

int
cli_queue_dequeue(int argc, char **argv)
{
	struct dequeue q = { .s = SESSION("queue dequeue"), .block = "forever" };
	const struct arg rows[] = {
		{ "--block TIME", ARG_TEXT, &q.block, "wait so long: 30s, 0, forever (forever)" },
		{ "--visibility", ARG_TIME, &q.how.visibility, "the lease, at most 30m (30s)" },
		{ "--owner NAME", ARG_TEXT, &q.how.owner, "who takes it (host, process, number)" },
		{ "--stateful", ARG_FLAG, &q.how.stateful, "with the state of the message, and a lease on it" },
		{ "--payload-out FILE", ARG_TEXT, &q.payload_out, "where the payload goes (a file in TMPDIR)" },
		SESSION_ROWS(&q.s),
	};
	struct slu_err err;

	if (!session_begin(&q.s, &dequeue_help, &argc, &argv, rows, COUNT(rows)))
		return q.s.exit;
	if (dequeue(&q, argv[0], &err))
		session_fail(&q.s, &err);
	return session_end(&q.s);
}

/* --- ack, nack, extend ---------------------------------------------------------- */

struct settle {
	struct session s;
	const char *receipt;
	struct slu_nack nack;
	slu_time by;
	struct slu_receipt r;
};

#define RECEIPT_ROW(p)                                                                            \
	{                                                                                         \
		"--receipt TEXT", ARG_TEXT, &(p)->receipt, "which message (SLUICE_QUEUE_RECEIPT)" \
	}

static int
read_receipt(struct settle *p, struct slu_err *err)
{
	const char *text = p->receipt ? p->receipt : exports_get(receipt_name);

	if (!text)
		return slu_fail(err, SLU_EINVAL,
				"%s is not set: eval \"$(sluice queue dequeue QUEUE)\" sets it",
				receipt_name);
	return slu_receipt_parse(&p->r, text, err);
}

static int
ack(struct settle *p, struct slu_err *err)
{
	return slu_client_ack(p->s.client, &p->r, NULL, err);
}

static int
nack(struct settle *p, struct slu_err *err)
{
	p->nack.struct_size = sizeof p->nack;
	return slu_client_nack(p->s.client, &p->r, &p->nack, NULL, err);
}

/* The receipt is another one now. */
static int
extend(struct settle *p, struct slu_err *err)
{
	struct exports e;
	int rc = slu_client_extend(p->s.client, &p->r, p->by, NULL, err);

	if (rc)
		return rc;
	exports_begin(&e, &p->s);
	exports_put(&e, "SLUICE_QUEUE_META_ETAG", p->r.etag);
	rc = print_receipt(&e, &p->r, err);
	return rc ? rc : exports_end(&e, err);
}

static int
settle(struct settle *p, const struct session_help *help, int argc, char **argv,
       const struct arg *rows, size_t n, int (*run)(struct settle *p, struct slu_err *err))
{
	struct slu_err err;
	int rc;

	if (!session_begin(&p->s, help, &argc, &argv, rows, n))
		return p->s.exit;
	rc = read_receipt(p, &err);
	if (!rc)
		rc = run(p, &err);
	if (rc)
		session_fail(&p->s, &err);
	return session_end(&p->s);
}

int
cli_queue_ack(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "queue ack [options]",
		.text = "The message that `sluice queue dequeue` took is done: it is gone, and its state\n"
			"with it.\n",
		.examples = "  sluice queue ack\n  sluice queue ack --receipt \"$RECEIPT\"\n",
	};
	struct settle p = { .s = SESSION("queue ack") };
	const struct arg rows[] = { RECEIPT_ROW(&p), SESSION_SERVER_ROWS(&p.s) };

	return settle(&p, &help, argc, argv, rows, COUNT(rows), ack);
}

int
cli_queue_nack(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "queue nack [options]",
		.text = "The message that `sluice queue dequeue` took failed, or has to wait: it comes\n"
			"again, and what was put into its state is kept.\n",
		.examples = "  sluice queue nack --delay 1m --error \"no such customer\"\n"
			    "  sluice queue nack --defer --delay 10s\n",
	};
	struct settle p = { .s = SESSION("queue nack") };
	const struct arg rows[] = {
		{ "-d, --delay", ARG_TIME, &p.nack.delay, "not before (0)" },
		{ "--error TEXT", ARG_TEXT, &p.nack.error, "why; kept with the message" },
		{ "--defer", ARG_FLAG, &p.nack.defer, "no failure: just not now" },
		{ "--dead", ARG_FLAG, &p.nack.dead, "no use to try again: to the dead letters" },
		RECEIPT_ROW(&p),
		SESSION_SERVER_ROWS(&p.s),
	};

	return settle(&p, &help, argc, argv, rows, COUNT(rows), nack);
}

int
cli_queue_extend(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "queue extend [options]",
		.text = "Keeps the lease of the message that `sluice queue dequeue` took, and prints the\n"
			"variables that have changed.\n",
		.examples = "  eval \"$(sluice queue extend --by 5m)\"\n",
	};
	struct settle p = { .s = SESSION("queue extend") };
	const struct arg rows[] = {
		{ "--by", ARG_TIME, &p.by, "from now on (what it was)" },
		RECEIPT_ROW(&p),
		SESSION_SERVER_ROWS(&p.s),
	};

	return settle(&p, &help, argc, argv, rows, COUNT(rows), extend);
}
