/*
 * subscribe.c - `sluice subscribe` and `sluice watch`: messages and events of a queue as they come.
 */
#include "cli/lib/escape.h"
#include "cli/lib/exports.h"

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

/* Writes the payload as base64: the last member of a line. */
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
	json_out_open(&w, &line);
	json_out_str(&w, "queue", slice_of(i->receipt.queue));
	json_out_str(&w, "message_id", slice_of(i->receipt.id));
	json_out_u64(&w, "fencing_token", i->receipt.token);
	json_out_u64(&w, "attempts", i->attempts);
	json_out_str(&w, "content_type", slice_of(i->content_type));
	json_out_str(&w, "correlation_id", slice_of(i->correlation_id));
	json_out_str(&w, "receipt", slice_of(receipt));
	json_out_u64(&w, "payload_bytes", i->size);
	rc = put_payload(&w, d, err);
	json_out_finish(&w);
	if (!rc && line.failed)
		rc = slu_fail(err, SLU_ETOOBIG, "message %s: %" PRIu64 " bytes do not fit a line",
			      i->receipt.id, i->size);
	if (!rc)
		puts(buf_str(&line));
	buf_release(&line);
	return rc;
}

/* Prints the payload escaped. A character may begin in one piece and end in the next. */
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

/* A message that cannot be printed goes back and is delivered again. With --keep the lease is extended:
 * otherwise the message would go back at the end of the stream. */
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

/* A server that ends takes its newest delivery back, so the ack of a printed message may come too late. The
 * message is delivered again: no reason to end. */
static int
note_return(const struct subscribe *p, int rc, const struct slu_err *err)
{
	if (rc != SLU_ELEASE && rc != SLU_ENOTFOUND && rc != SLU_EUNKNOWN)
		return rc;
	session_note(&p->s, "%s; the message comes again", err->text);
	return 0;
}

static int
subscribe(struct session *s, struct slu_err *err)
{
	struct subscribe *const p = (void *)s;
	struct slu_subscription *sub = NULL;
	struct slu_delivery *d = NULL;
	int rc;

	if (p->prefetch > 64)
		return session_usage(&p->s, "invalid --prefetch: %" PRIu64 "; expected 1 to 64", p->prefetch);
	rc = exports_wait(p->block, &p->how.wait, err);
	p->how.struct_size = sizeof p->how;
	p->how.prefetch = (unsigned)p->prefetch;
	if (!rc)
		rc = slu_client_subscribe(p->s.client, p->s.words[0], &p->how, &sub, err);
	while (!rc && (p->count == 0 || p->got < p->count)) {
		rc = slu_subscription_next(sub, &d, NULL, err);
		if (!rc && !d)
			break; /* no message came in time */
		p->got++;
		if (!rc)
			rc = note_return(p, print(p, d, err), err);
	}
	slu_subscription_close(sub);
	if (!rc && p->got == 0)
		session_nothing(&p->s, "no message came in queue %s", p->s.words[0]);
	return rc;
}

const struct command cli_subscribe = {
	.name = "subscribe",
	.group = "Messages",
	.summary = "print messages as they come, over one connection",
	.usage = "QUEUE [options]",
	.text = "Prints every message of a queue as it comes, over one open connection, and acks it\n"
		"after it is printed. With --keep the messages stay leased, for `sluice queue ack\n"
		"--receipt`. With --json a line for each message, the payload in base64. Ends by\n"
		"Ctrl-C, after --count messages, or if no message comes for --block. Exits 3 if no\n"
		"message came at all.\n",
	.examples = "  sluice subscribe mail\n"
		    "  sluice subscribe mail --prefetch 16 --block 10s >mails.txt\n"
		    "  sluice subscribe jobs --keep --count 1 --json\n",
	.options = CLI_QUEUE,
	CLI_ARGS({ "--block TIME", ARG_TEXT, AT(subscribe, block), "end if no message comes for this long (forever)" },
		 { "-c, --count", ARG_COUNT, AT(subscribe, count), "end after this many messages (never)" },
		 { "--prefetch", ARG_COUNT, AT(subscribe, prefetch), "unsettled messages at a time, at most 64 (1)" },
		 { "--visibility", ARG_TIME, AT(subscribe, how.visibility), "length of the leases, at most 30m (30s)" },
		 { "--owner NAME", ARG_TEXT, AT(subscribe, how.owner), "owner of the leases (host, process, number)" },
		 { "--keep", ARG_FLAG, AT(subscribe, keep), "do not ack the messages" },
		 { "--raw", ARG_FLAG, AT(subscribe, raw), "do not escape payloads on a terminal" }),
	CLI_STATE(struct subscribe, .block = "forever", .prefetch = 1),
	.run = subscribe,
};

/* --- watch ---------------------------------------------------------------------- */

struct watch_command {
	struct session s;
	uint64_t count;
	uint64_t told;
};

static bool
on_event(const struct slu_queue_event *e, void *arg)
{
	struct watch_command *w = arg;

	if (w->s.json)
		printf("{\"available\":%s,\"head\":%s%s%s}\n", e->available ? "true" : "false",
		       *e->head ? "\"" : "", *e->head ? e->head : "null", *e->head ? "\"" : "");
	else
		printf("%s%s%s\n", e->available ? "available" : "empty", *e->head ? "  " : "", e->head);
	w->told++;
	return fflush(stdout) == 0 && (w->count == 0 || w->told < w->count);
}

static int
watch(struct session *s, struct slu_err *err)
{
	const struct slu_call call = { SLU_OPTIONS_INIT(struct slu_call), .timeout = SLU_NEVER };
	struct watch_command *const w = (void *)s;

	return slu_client_watch(w->s.client, w->s.words[0], on_event, w, &call, err);
}

const struct command cli_watch = {
	.name = "watch",
	.group = "Queues",
	.summary = "print a line whenever a queue becomes available or empty",
	.usage = "QUEUE [options]",
	.text = "Prints whether a queue has a message to take: once at the start, and whenever that, or\n"
		"the next message, changes. Takes no message. Ends by Ctrl-C, or after --count lines.\n",
	.examples = "  sluice watch mail\n  sluice watch mail --json --count 1\n",
	.options = CLI_QUEUE,
	CLI_ARGS({ "-c, --count", ARG_COUNT, AT(watch_command, count), "end after this many lines (never)" }),
	.size = sizeof(struct watch_command),
	.run = watch,
};
