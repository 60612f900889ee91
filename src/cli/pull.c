/*
 * pull.c - `sluice pull`: take messages out of a queue, once.
 */
#include "cli/escape.h"
#include "cli/session.h"

#include "base/clock.h"

#include <inttypes.h>
#include <unistd.h>

enum {
	CLAIM_MAX = 1000,
	ACKS = 100 /* messages that are settled in one call */
};

struct pull {
	struct session s;
	const char *queue;
	struct slu_client_claim claim;
	uint64_t limit;
	bool ack;
	bool raw;
};

/* Bytes as they are unless a person looks; where several follow each other, or a person looks, a line ends. */
static void
print_payload(const struct pull *p, const struct slu_client_message *m)
{
	const bool ended = m->size > 0 && ((const char *)m->payload)[m->size - 1] == '\n';

	if (escape_wanted(stdout, p->raw))
		escape_print(stdout, (struct slice){ m->payload, m->size });
	else
		(void)fwrite(m->payload, 1, m->size, stdout); /* print asks at its end */
	if (!ended && (p->limit > 1 || isatty(STDOUT_FILENO)))
		putchar('\n');
}

static void
say(FILE *out, const char *name, const char *value)
{
	if (!*value)
		return;
	fprintf(out, "  %s ", name);
	escape_print(out, slice_of(value));
}

static void
print_meta(const struct pull *p, const struct slu_client_message *m)
{
	const bool colours = session_colours(stderr);

	fprintf(stderr, "%s%" PRIu64, colours ? "\033[2m" : "", m->id);
	if (!p->ack) {
		say(stderr, "lease", m->lease_id);
		fprintf(stderr, "  token %" PRIu64, m->fencing_token);
		say(stderr, "until", m->lease_expires_at);
	}
	fprintf(stderr, "  attempt %u", m->attempts);
	say(stderr, "key", m->key);
	say(stderr, "correlation", m->correlation_id);
	fprintf(stderr, "%s\n", colours ? "\033[0m" : "");
}

/* What cannot be written was not received: it is not acked and comes again. */
static int
print(const struct pull *p, const struct slu_client_message *m, struct slu_err *err)
{
	if (p->s.json) {
		(void)fwrite(m->raw, 1, m->raw_size, stdout); /* as below */
		putchar('\n');
	} else {
		print_payload(p, m);
	}
	if (fflush(stdout) != 0)
		return slu_fail(err, SLU_EFAILED, "stdout: %m; message %" PRIu64 " comes again",
				m->id);
	if (!p->s.json)
		print_meta(p, m);
	return 0;
}

static int
settle(struct pull *p, const struct slu_client_message *m, size_t n, struct slu_err *err)
{
	struct slu_settle items[ACKS];
	struct slu_err why;
	int rc;

	for (size_t i = 0; i < n; i++)
		items[i] = (struct slu_settle){
			SLU_OPTIONS_INIT(struct slu_settle),
			.id = m[i].id,
			.lease_id = m[i].lease_id,
			.fencing_token = m[i].fencing_token,
		};
	rc = n ? slu_client_settle(p->s.client, SLU_ACK, p->queue, items, n, NULL, &why) : 0;
	return rc ? slu_fail(err, rc, "ack of %s", why.text) : 0;
}

/* Write some out, then settle what was. */
static int
deliver(struct pull *p, const struct slu_client_message *m, size_t n, struct slu_err *err)
{
	size_t done = 0;
	int rc = 0, acked;

	while (!rc && done < n) {
		rc = print(p, &m[done], err);
		done += !rc;
	}
	acked = p->ack ? settle(p, m, done, rc ? NULL : err) : 0;
	return rc ? rc : acked;
}

static int
pull(struct pull *p, struct slu_client_messages *got, struct slu_err *err)
{
	const struct slu_call call = { SLU_OPTIONS_INIT(struct slu_call), .timeout = time_add(p->claim.wait, p->s.timeout) };
	int rc = slu_client_dequeue(p->s.client, p->queue, &p->claim, got, &call, err);

	for (size_t i = 0; i < got->n && !rc; i += ACKS)
		rc = deliver(p, &got->items[i], got->n - i < ACKS ? got->n - i : ACKS, err);
	if (!rc && got->n == 0) {
		session_nothing(&p->s, "nothing to take in %s", p->queue);
	}
	return rc;
}

static const struct session_help pull_help = {
	.usage = "pull QUEUE [options]",
	.text = "Takes the next messages under a lease: payloads to stdout, what else there is\n"
		"to say to stderr; with --json all of it to stdout, a line each. Without --ack,\n"
		"settle each by its receipt, with `sluice ack` or `sluice nack`, before the lease\n"
		"ends, or it is given to somebody else. Exits 3 when there is nothing.\n",
	.examples = "  sluice pull mail --ack\n"
		    "  sluice pull mail --wait 1m --lease 5m\n"
		    "  sluice pull mail --json | jq -r .receipt\n",
	.min_words = 1,
	.max_words = 1,
};

int
cli_pull(int argc, char **argv)
{
	struct pull p = { .s = SESSION("pull"), .limit = 1 };
	const struct arg rows[] = {
		{ "-l, --limit", ARG_COUNT, &p.limit, "messages to take, 1 to 1000 (1)" },
		{ "-w, --wait", ARG_TIME, &p.claim.wait, "wait so long for the first (0)" },
		{ "--lease", ARG_TIME, &p.claim.lease, "hold them so long (the queue's)" },
		{ "--owner NAME", ARG_TEXT, &p.claim.owner, "who takes them, as browse shows it (host:process)" },
		{ "--ack", ARG_FLAG, &p.ack, "settle them once they are printed, 100 at a time" },
		{ "--raw", ARG_FLAG, &p.raw, "payloads as they are, also on a terminal" },
		SESSION_ROWS(&p.s),
	};
	struct slu_client_messages got = { 0 };
	struct slu_err err;

	if (!session_begin(&p.s, &pull_help, &argc, &argv, rows, COUNT(rows)))
		return p.s.exit;
	if (p.limit > CLAIM_MAX) {
		session_usage(&p.s, "--limit: at most %d", CLAIM_MAX);
		return session_end(&p.s);
	}
	p.claim.struct_size = sizeof p.claim;
	p.claim.limit = (unsigned)p.limit;
	p.queue = argv[0];
	if (pull(&p, &got, &err))
		session_fail(&p.s, &err);
	slu_client_messages_release(&got);
	return session_end(&p.s);
}
