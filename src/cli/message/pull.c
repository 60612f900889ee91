/*
 * pull.c - `sluice pull`: takes messages from a queue, once.
 */
#include "cli/lib/escape.h"
#include "cli/lib/session.h"

#include "base/clock.h"

#include <inttypes.h>
#include <unistd.h>

enum {
	CLAIM_MAX = 1000,
	ACKS = 100 /* messages that one call settles */
};

struct pull {
	struct session s;
	const char *queue;
	struct slu_client_claim claim;
	uint64_t limit;
	bool ack;
	bool raw;
};

/* Prints raw bytes, or escaped text on a terminal. Ends the line if there are several messages or a terminal. */
static void
print_payload(const struct pull *p, const struct slu_client_message *m)
{
	const bool ended = m->size > 0 && ((const char *)m->payload)[m->size - 1] == '\n';

	if (escape_wanted(stdout, p->raw))
		escape_print(stdout, (struct slice){ m->payload, m->size });
	else
		(void)fwrite(m->payload, 1, m->size, stdout); /* print() checks stdout */
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
	say(stderr, "share", m->share);
	say(stderr, "kind", m->kind);
	say(stderr, "correlation", m->correlation_id);
	fprintf(stderr, "%s\n", colours ? "\033[0m" : "");
}

/* JSON has newlines only between its values: a checkpoint may have come with some. print() checks stdout. */
static void
print_line(const struct slu_client_message *m)
{
	struct slice rest = { m->raw, m->raw_size }, line;

	while (slice_cut(&rest, '\n', &line)) {
		(void)fwrite(line.p, 1, line.n, stdout);
		putchar(' ');
	}
	(void)fwrite(line.p, 1, line.n, stdout);
	putchar('\n');
}

/* A message that cannot be printed is not acked, and is delivered again. */
static int
print(const struct pull *p, const struct slu_client_message *m, struct slu_err *err)
{
	if (p->s.json) {
		print_line(m);
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

/* Prints messages, then acks the printed ones. */
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
pull(struct pull *p, struct slu_err *err)
{
	const struct slu_call call = { SLU_OPTIONS_INIT(struct slu_call), .timeout = time_add(p->claim.wait, p->s.timeout) };
	struct slu_client_messages got = { 0 };
	int rc = slu_client_dequeue(p->s.client, p->queue, &p->claim, &got, &call, err);

	for (size_t i = 0; i < got.n && !rc; i += ACKS)
		rc = deliver(p, &got.items[i], got.n - i < ACKS ? got.n - i : ACKS, err);
	if (!rc && got.n == 0)
		session_nothing(&p->s, "no message in queue %s", p->queue);
	slu_client_messages_release(&got);
	return rc;
}

static int
run(struct session *s, struct slu_err *err)
{
	struct pull *const p = (void *)s;

	if (p->limit > CLAIM_MAX)
		return session_usage(&p->s, "invalid --limit: %" PRIu64 "; expected 1 to %d", p->limit, CLAIM_MAX);
	p->claim.struct_size = sizeof p->claim;
	p->claim.limit = (unsigned)p->limit;
	p->queue = p->s.words[0];
	return pull(p, err);
}

const struct command cli_pull = {
	.name = "pull",
	.group = "Messages",
	.summary = "take messages from a queue",
	.usage = "QUEUE [options]",
	.text = "Takes the next messages under a lease. Payloads go to stdout, ids and leases to\n"
		"stderr; with --json all goes to stdout, a line for each message. Without --ack, settle\n"
		"each message by its receipt (`sluice ack`, `sluice nack`) before its lease ends, or the\n"
		"server delivers it again. Exits 3 if there is no message.\n",
	.examples = "  sluice pull mail --ack\n"
		    "  sluice pull mail --wait 1m --lease 5m\n"
		    "  sluice pull mail --json | jq -r .receipt\n",
	.options = CLI_QUEUE,
	CLI_ARGS({ "-l, --limit", ARG_COUNT, AT(pull, limit), "messages to take, 1 to 1000 (1)" },
		 { "-w, --wait", ARG_TIME, AT(pull, claim.wait), "wait this long for the first message (0)" },
		 { "--lease", ARG_TIME, AT(pull, claim.lease), "length of the lease (the queue's)" },
		 { "--owner NAME", ARG_TEXT, AT(pull, claim.owner), "owner of the lease, as browse shows it (host:process)" },
		 { "--kind NAME,...", ARG_TEXT, AT(pull, claim.kinds), "take messages of these kinds alone (all messages)" },
		 { "--ack", ARG_FLAG, AT(pull, ack), "ack the messages after they are printed, 100 at a time" },
		 { "--raw", ARG_FLAG, AT(pull, raw), "do not escape payloads on a terminal" }),
	CLI_STATE(struct pull, .limit = 1),
	.run = run,
};
