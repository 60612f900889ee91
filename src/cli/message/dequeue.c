/*
 * dequeue.c - `sluice queue dequeue`, and ack, nack and extend of the message it took. Variables of the
 * shell name the message, so these commands need no arguments.
 */
#include "cli/lib/exports.h"

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

/* Writes the payload to --payload-out, or to a new file. */
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
		(void)unlink(q->path); /* remove an incomplete payload */
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

/* Saves and prints a message. If that fails, the message goes back at once. */
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
dequeue(struct session *s, struct slu_err *err)
{
	struct dequeue *const q = (void *)s;
	struct slu_delivery *d = NULL;
	int rc = exports_wait(q->block, &q->how.wait, err);

	q->how.struct_size = sizeof q->how;
	if (!rc)
		rc = slu_client_receive(q->s.client, q->s.words[0], &q->how, &d, NULL, err);
	if (!rc && !d)
		session_nothing(&q->s, "no message in queue %s", q->s.words[0]);
	if (!rc && d)
		rc = take(q, d, err);
	slu_delivery_leave(d);
	return rc;
}

const struct command cli_queue_dequeue = {
	.name = "queue dequeue",
	.summary = "take a message: payload to a file, variables for the shell",
	.usage = "QUEUE [options]",
	.text = "Waits for a message, writes its payload to a file and prints variables for the\n"
		"shell; `sluice queue ack`, `nack` and `extend` then need no arguments. The lease\n"
		"must be extended before it ends. Exits 3 if no message came in time.\n",
	.examples = "  eval \"$(sluice queue dequeue mail)\"\n"
		    "  send-mail <\"$SLUICE_QUEUE_PAYLOAD_PATH\" && sluice queue ack\n"
		    "  sluice queue dequeue mail --block 30s --visibility 5m --payload-out mail.json\n"
		    "  sluice queue dequeue jobs --stateful --owner worker-1 --json\n",
	.options = CLI_QUEUE,
	CLI_ARGS({ "--block TIME", ARG_TEXT, AT(dequeue, block), "wait this long for a message: 30s, 0, forever (forever)" },
		 { "--visibility", ARG_TIME, AT(dequeue, how.visibility), "length of the lease, at most 30m (30s)" },
		 { "--owner NAME", ARG_TEXT, AT(dequeue, how.owner), "owner of the lease (host, process, number)" },
		 { "--stateful", ARG_FLAG, AT(dequeue, how.stateful), "take the state of the message too, under the same lease" },
		 { "--payload-out FILE", ARG_TEXT, AT(dequeue, payload_out), "write the payload to this file (a new file in TMPDIR)" }),
	CLI_STATE(struct dequeue, .block = "forever"),
	.run = dequeue,
};

/* --- ack, nack, extend ---------------------------------------------------------- */

struct receipt_settle {
	struct session s;
	const char *receipt;
	struct slu_nack nack;
	slu_time by;
	struct slu_receipt r;
};

/* clang-format off */
#define RECEIPT_ROW { "--receipt TEXT", ARG_TEXT, AT(receipt_settle, receipt), "receipt of the message (SLUICE_QUEUE_RECEIPT)" }
/* clang-format on */

static int
read_receipt(struct receipt_settle *p, struct slu_err *err)
{
	const char *text = p->receipt ? p->receipt : exports_get(receipt_name);

	if (!text)
		return slu_fail(err, SLU_EINVAL,
				"missing %s: eval \"$(sluice queue dequeue QUEUE)\" sets it",
				receipt_name);
	return slu_receipt_parse(&p->r, text, err);
}

static int
ack(struct session *s, struct slu_err *err)
{
	struct receipt_settle *const p = (void *)s;
	const int rc = read_receipt(p, err);

	return rc ? rc : slu_client_ack(p->s.client, &p->r, NULL, err);
}

const struct command cli_queue_ack = {
	.name = "queue ack",
	.summary = "finish the message that was taken",
	.usage = "[options]",
	.text = "Finishes the message that `sluice queue dequeue` took: the server deletes the\n"
		"message and its state.\n",
	.examples = "  sluice queue ack\n  sluice queue ack --receipt \"$RECEIPT\"\n",
	.options = CLI_SERVER,
	CLI_ARGS(RECEIPT_ROW),
	.size = sizeof(struct receipt_settle),
	.run = ack,
};

static int
nack(struct session *s, struct slu_err *err)
{
	struct receipt_settle *const p = (void *)s;
	const int rc = read_receipt(p, err);

	p->nack.struct_size = sizeof p->nack;
	return rc ? rc : slu_client_nack(p->s.client, &p->r, &p->nack, NULL, err);
}

const struct command cli_queue_nack = {
	.name = "queue nack",
	.summary = "return the message: failed, or deferred",
	.usage = "[options]",
	.text = "Returns the message that `sluice queue dequeue` took: it failed, or is deferred. The\n"
		"message is delivered again, and its state is kept.\n",
	.examples = "  sluice queue nack --delay 1m --error \"no such customer\"\n"
		    "  sluice queue nack --defer --delay 10s\n",
	.options = CLI_SERVER,
	CLI_ARGS({ "-d, --delay", ARG_TIME, AT(receipt_settle, nack.delay), "deliver again after this time (0)" },
		 { "--error TEXT", ARG_TEXT, AT(receipt_settle, nack.error), "reason, stored with the message" },
		 { "--defer", ARG_FLAG, AT(receipt_settle, nack.defer), "deliver later without counting a failure" },
		 { "--dead", ARG_FLAG, AT(receipt_settle, nack.dead), "make the message a dead letter" },
		 RECEIPT_ROW),
	.size = sizeof(struct receipt_settle),
	.run = nack,
};

static int
extend(struct session *s, struct slu_err *err)
{
	struct receipt_settle *const p = (void *)s;
	struct exports e;
	int rc = read_receipt(p, err);

	if (!rc)
		rc = slu_client_extend(p->s.client, &p->r, p->by, NULL, err);
	if (rc)
		return rc;
	exports_begin(&e, &p->s);
	exports_put(&e, "SLUICE_QUEUE_META_ETAG", p->r.etag);
	rc = print_receipt(&e, &p->r, err); /* the receipt has changed */
	return rc ? rc : exports_end(&e, err);
}

const struct command cli_queue_extend = {
	.name = "queue extend",
	.summary = "extend the lease of the message",
	.usage = "[options]",
	.text = "Extends the lease of the message that `sluice queue dequeue` took, and prints the\n"
		"variables that changed.\n",
	.examples = "  eval \"$(sluice queue extend --by 5m)\"\n",
	.options = CLI_SERVER,
	CLI_ARGS({ "--by", ARG_TIME, AT(receipt_settle, by), "new length of the lease, from now (the same as before)" },
		 RECEIPT_ROW),
	.size = sizeof(struct receipt_settle),
	.run = extend,
};
