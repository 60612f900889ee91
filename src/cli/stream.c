/*
 * stream.c - `sluice subscribe` and `sluice watch`: what comes, as it comes.
 */
#include "cli/escape.h"
#include "cli/exports.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* --- subscribe ------------------------------------------------------------------ */

enum {
	LINE_MAX_BYTES = 256 << 20
};

struct subscribe {
	struct session s;
	struct slu_receive how;
	const char *block;
	uint64_t prefetch, count;
	bool keep;
	bool raw;
	uint64_t got;
};

/* The payload as base64: the rest of a line. */
static int
put_payload(struct json_out *w, struct slu_delivery *d, struct slu_err *err)
{
	char piece[48 << 10]; /* a multiple of 3 */
	size_t n = 0;
	int rc;

	json_out_base64_begin(w, "payload");
	do {
		size_t filled = 0;

		for (rc = 0; !rc && filled < sizeof piece; filled += n) {
			rc = slu_delivery_read(d, piece + filled, sizeof piece - filled, &n, err);
			if (rc || n == 0)
				break;
		}
		json_out_base64_part(w, (struct slice){ piece, filled });
	} while (!rc && n > 0);
	json_out_base64_end(w);
	return rc;
}

static int
print_json(struct slu_delivery *d, const char *receipt, struct slu_err *err)
{
	const struct slu_delivery_info *i = slu_delivery_info(d);
	struct json_out w;
	struct buf line;
	int rc;

	buf_init(&line, LINE_MAX_BYTES);
	json_out_init(&w, &line);
	json_out_object(&w, NULL);
	json_out_str(&w, "queue", slice_of(i->receipt.queue));
	json_out_str(&w, "message_id", slice_of(i->receipt.id));
	json_out_u64(&w, "fencing_token", i->receipt.token);
	json_out_u64(&w, "attempts", i->attempts);
	json_out_str(&w, "content_type", slice_of(i->content_type));
	json_out_str(&w, "correlation_id", slice_of(i->correlation_id));
	json_out_str(&w, "receipt", slice_of(receipt));
	json_out_u64(&w, "payload_bytes", i->size);
	rc = put_payload(&w, d, err);
	json_out_close(&w);
	json_out_end(&w);
	if (!rc && line.failed)
		rc = slu_fail(err, SLU_ETOOBIG, "message %s: %" PRIu64 " bytes are too many for a line",
			      i->receipt.id, i->size);
	if (!rc)
		puts(buf_str(&line));
	buf_release(&line);
	return rc;
}

/* A character may begin in one piece and end in the next. */
static int
print_escaped(struct slu_delivery *d, struct slu_err *err)
{
	char piece[48 << 10];
	size_t kept = 0, n = 0;
	int rc;

	do {
		rc = slu_delivery_read(d, piece + kept, sizeof piece - kept, &n, err);
		if (!rc) {
			const size_t all = kept + n;

			kept = n > 0 ? escape_cut((struct slice){ piece, all }) : 0;
			escape_print(stdout, (struct slice){ piece, all - kept });
			memmove(piece, piece + all - kept, kept);
		}
	} while (!rc && n > 0);
	return rc;
}

static int
print_plain(const struct subscribe *p, struct slu_delivery *d, const char *receipt,
	    struct slu_err *err)
{
	const struct slu_delivery_info *i = slu_delivery_info(d);
	int rc = 0;

	if (p->keep)
		fprintf(stderr, "%s  attempt %u  receipt %s\n", i->receipt.id, i->attempts, receipt);
	if (escape_wanted(stdout, p->raw))
		rc = print_escaped(d, err);
	else if (fflush(stdout) == 0)
		rc = slu_delivery_write(d, STDOUT_FILENO, err);
	if (!rc)
		putchar('\n');
	return rc;
}

/* What cannot be written was not received: it goes back and comes again. What is kept is extended:
 * a message that is not would go back with the end of the stream. */
static int
print(struct subscribe *p, struct slu_delivery *d, struct slu_err *err)
{
	int rc = p->keep ? slu_delivery_extend(d, 0, NULL, err) : 0;
	char *receipt = rc ? NULL : slu_receipt_write(&slu_delivery_info(d)->receipt);

	if (!rc && !receipt)
		rc = slu_fail(err, SLU_ENOMEM, "no memory for a receipt");
	if (!rc)
		rc = p->s.json ? print_json(d, receipt, err) : print_plain(p, d, receipt, err);
	slu_free(receipt);
	if (!rc && fflush(stdout) != 0)
		rc = slu_fail(err, SLU_EFAILED, "stdout: %m");
	if (!rc && !p->keep)
		rc = slu_delivery_ack(d, NULL, err);
	if (rc || !p->keep)
		slu_delivery_close(d);
	else
		slu_delivery_leave(d);
	return rc;
}

static int
subscribe(struct subscribe *p, const char *queue, struct slu_err *err)
{
	struct slu_subscription *sub = NULL;
	struct slu_delivery *d = NULL;
	int rc = exports_wait(p->block, &p->how.wait, err);

	p->how.struct_size = sizeof p->how;
	p->how.prefetch = (unsigned)p->prefetch;
	if (!rc)
		rc = slu_client_subscribe(p->s.client, queue, &p->how, &sub, err);
	while (!rc && (p->count == 0 || p->got < p->count)) {
		rc = slu_subscription_next(sub, &d, NULL, err);
		if (!rc && !d)
			break; /* nothing came for so long */
		p->got++;
		if (!rc)
			rc = print(p, d, err);
	}
	slu_subscription_close(sub);
	if (!rc && p->got == 0) {
		session_nothing(&p->s, "nothing came in %s", queue);
	}
	return rc;
}

static const struct session_help subscribe_help = {
	.usage = "subscribe QUEUE [options]",
	.text = "Prints every message of a queue as it comes, over one connection that stays open,\n"
		"and acks it once it is printed. With --keep they stay leased, for `sluice queue ack\n"
		"--receipt`. With --json a line each, the payload in base64. Ends by Ctrl-C, after\n"
		"--count messages, or when nothing came for --block; exits 3 if nothing came at all.\n",
	.examples = "  sluice subscribe mail\n"
		    "  sluice subscribe mail --prefetch 16 --block 10s >mails.txt\n"
		    "  sluice subscribe jobs --keep --count 1 --json\n",
	.min_words = 1,
	.max_words = 1,
};

int
cli_subscribe(int argc, char **argv)
{
	struct subscribe p = { .s = SESSION("subscribe"), .block = "forever", .prefetch = 1 };
	const struct arg rows[] = {
		{ "--block TIME", ARG_TEXT, &p.block, "end when nothing came for so long (forever)" },
		{ "-c, --count", ARG_COUNT, &p.count, "end after so many (never)" },
		{ "--prefetch", ARG_COUNT, &p.prefetch, "messages on their way at once, at most 64 (1)" },
		{ "--visibility", ARG_TIME, &p.how.visibility, "their leases, at most 30m (30s)" },
		{ "--owner NAME", ARG_TEXT, &p.how.owner, "who takes them (host, process, number)" },
		{ "--keep", ARG_FLAG, &p.keep, "do not ack them" },
		{ "--raw", ARG_FLAG, &p.raw, "payloads as they are, also on a terminal" },
		SESSION_ROWS(&p.s),
	};
	struct slu_err err;

	if (!session_begin(&p.s, &subscribe_help, &argc, &argv, rows, COUNT(rows)))
		return p.s.exit;
	if (p.prefetch > 64)
		return session_usage(&p.s, "--prefetch %" PRIu64 ": at most 64", p.prefetch);
	if (subscribe(&p, argv[0], &err))
		session_fail(&p.s, &err);
	return session_end(&p.s);
}

/* --- watch ---------------------------------------------------------------------- */

struct watch {
	struct session s;
	uint64_t count;
	uint64_t told;
};

static bool
on_event(const struct slu_queue_event *e, void *arg)
{
	struct watch *w = arg;

	if (w->s.json)
		printf("{\"available\":%s,\"head\":%s%s%s}\n", e->available ? "true" : "false",
		       *e->head ? "\"" : "", *e->head ? e->head : "null", *e->head ? "\"" : "");
	else
		printf("%s%s%s\n", e->available ? "available" : "empty", *e->head ? "  " : "", e->head);
	w->told++;
	return fflush(stdout) == 0 && (w->count == 0 || w->told < w->count);
}

static const struct session_help watch_help = {
	.usage = "watch QUEUE [options]",
	.text = "Tells whether a queue has something to take, at once and whenever that, or the\n"
		"message that is next, changes. Takes nothing. Ends by Ctrl-C, or after --count lines.\n",
	.examples = "  sluice watch mail\n  sluice watch mail --json --count 1\n",
	.min_words = 1,
	.max_words = 1,
};

int
cli_watch(int argc, char **argv)
{
	struct watch w = { .s = SESSION("watch") };
	const struct slu_call call = { SLU_OPTIONS_INIT(struct slu_call), .timeout = SLU_NEVER };
	const struct arg rows[] = {
		{ "-c, --count", ARG_COUNT, &w.count, "end after so many lines (never)" },
		SESSION_ROWS(&w.s),
	};
	struct slu_err err;

	if (!session_begin(&w.s, &watch_help, &argc, &argv, rows, COUNT(rows)))
		return w.s.exit;
	if (slu_client_watch(w.s.client, argv[0], on_event, &w, &call, &err))
		session_fail(&w.s, &err);
	return session_end(&w.s);
}
