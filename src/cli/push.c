/*
 * push.c - `sluice push`: messages into a queue, from words, a file, stdin or its lines.
 */
#include "cli/progress.h"
#include "cli/push_large.h"
#include "cli/session.h"
#include "cli/template.h"

#include "base/id.h"
#include "base/json.h"
#include "base/rfc3339.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <unistd.h>

enum {
	BATCH_LINES = 1000,
	BATCH_BYTES = 1 << 20,
	PAYLOAD_MAX = 12 << 20 /* in base64 it still fits a request */
};

struct push {
	struct session s;
	struct slu_client_put put; /* what all messages have in common */
	uint64_t max_attempts;
	const char *queue;
	const char *file;
	const char *template; /* template.h */
	uint64_t count;       /* of copies */
	const char *at;
	bool lines, json_lines, quiet;

	struct slu_client_put puts[BATCH_LINES];
	struct buf payloads; /* theirs, one after the other */
	size_t n;            /* messages of the batch */
	uint64_t accepted;   /* of those before it */
	uint64_t line;       /* number of the last one read */
	struct progress progress;
};

/* --- batches ---------------------------------------------------------------- */

static void
print_id(const struct push *p, const struct slu_client_put *put)
{
	char uid[ID_UUID_TEXT];

	if (p->s.json)
		printf("{\"id\":%" PRIu64 ",\"uid\":\"%s\",\"duplicate\":%s}\n", put->id,
		       id_to_uuid(put->id, uid), put->duplicate ? "true" : "false");
	else if (!p->quiet)
		printf("%" PRIu64 "\n", put->id);
}

static int
flush_batch(struct push *p, struct slu_err *err)
{
	const char *at = p->payloads.p;
	int rc;

	if (p->n == 0)
		return 0;
	for (size_t i = 0; i < p->n; i++) {
		p->puts[i].payload = at;
		at += p->puts[i].size;
	}
	rc = slu_client_enqueue(p->s.client, p->queue, p->puts, p->n, NULL, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < p->n; i++)
		print_id(p, &p->puts[i]);
	if (fflush(stdout) != 0)
		return slu_fail(err, SLU_EFAILED, "stdout: %m");
	p->accepted += p->n;
	progress_at(&p->progress, p->accepted);
	p->n = 0;
	buf_clear(&p->payloads);
	return 0;
}

static int
add(struct push *p, struct slice payload, struct slu_err *err)
{
	int rc = 0;

	if (p->payloads.n + payload.n > BATCH_BYTES)
		rc = flush_batch(p, err);
	if (rc)
		return rc;
	buf_put(&p->payloads, payload.p, payload.n);
	if (p->payloads.failed)
		return slu_fail(err, SLU_ENOMEM, "no memory for the payloads");
	p->puts[p->n] = p->put;
	p->puts[p->n].struct_size = sizeof p->put;
	p->puts[p->n++].size = payload.n;
	return p->n < BATCH_LINES ? 0 : flush_batch(p, err);
}

static int
add_copies(struct push *p, struct slice payload, struct slu_err *err)
{
	int rc = 0;

	for (uint64_t i = 0; i < p->count && !rc; i++)
		rc = add(p, payload, err);
	return rc;
}

/* --- where payloads come from ------------------------------------------------- */

/* All of it, or as much as shows that it is too large for a batch. */
static int
read_all(int fd, const char *name, struct buf *out, struct slu_err *err)
{
	char room[64 * 1024];
	ssize_t n = 1;

	while (n > 0 && out->n <= PAYLOAD_MAX) {
		n = read(fd, room, sizeof room);
		if (n > 0)
			buf_put(out, room, (size_t)n);
	}
	if (n < 0)
		return slu_fail(err, SLU_EFAILED, "%s: %m", name);
	return out->failed ? slu_fail(err, SLU_ENOMEM, "%s: no memory for it", name) : 0;
}

static int
add_large(struct push *p, struct slice head, int fd, const char *name, struct slu_err *err)
{
	struct slu_client_put put = p->put;
	int rc = flush_batch(p, err);

	if (rc)
		return rc;
	if (p->count > 1)
		return slu_fail(err, SLU_EINVAL, "--count: not with a payload of more than 12 MiB");
	p->n = 1; /* for push_failed */
	rc = push_large(&p->s, p->queue, &put, &(struct large){ head, fd, name }, err);
	if (rc)
		return rc;
	p->n = 0;
	p->accepted++;
	print_id(p, &put);
	return 0;
}

static int
add_whole(struct push *p, int fd, const char *name, struct slu_err *err)
{
	struct buf all;
	int rc;

	buf_init(&all, PAYLOAD_MAX + (1 << 20));
	rc = read_all(fd, name, &all, err);
	if (!rc)
		rc = all.n > PAYLOAD_MAX ? add_large(p, buf_slice(&all), fd, name, err)
					 : add_copies(p, buf_slice(&all), err);
	buf_release(&all);
	return rc;
}

static int
add_file(struct push *p, struct slu_err *err)
{
	const int fd = open(p->file, O_RDONLY | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return slu_fail(err, SLU_EFAILED, "%s: %m", p->file);
	rc = add_whole(p, fd, p->file, err);
	close(fd);
	return rc;
}

static int
check_json(const struct push *p, struct slice line, struct slu_err *err)
{
	struct slu_err why;
	struct json r;

	json_init(&r, line, JSON_DEPTH);
	if (json_end(&r, &why))
		return slu_fail(err, SLU_EINVAL, "line %" PRIu64 " of stdin is no JSON: %s",
				p->line, why.text);
	return 0;
}

static bool
is_blank(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!strchr(" \t\r", s.p[i]) || !s.p[i])
			return false;
	return true;
}

static int
add_line(struct push *p, struct slice line, struct slu_err *err)
{
	int rc;

	p->line++;
	if (p->json_lines && is_blank(line))
		return 0;
	rc = p->json_lines ? check_json(p, line, err) : 0;
	return rc ? rc : add(p, line, err);
}

/* Every whole line in the buffer; the rest moves to its front. */
static int
add_lines_of(struct push *p, struct buf *b, struct slu_err *err)
{
	size_t at = 0;
	int rc = 0;

	while (!rc && at < b->n) {
		const char *lf = memchr(b->p + at, '\n', b->n - at);

		if (!lf)
			break;
		rc = add_line(p, (struct slice){ b->p + at, (size_t)(lf - b->p) - at }, err);
		at = (size_t)(lf - b->p) + 1;
	}
	memmove(b->p, b->p + at, b->n - at);
	b->n -= at;
	return rc;
}

/* What has come is sent before waiting for more, so that `tail -f` works. */
static bool
would_wait(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 0;
}

static int
add_lines(struct push *p, struct slu_err *err)
{
	char room[64 * 1024];
	struct buf rest;
	ssize_t n = 1;
	int rc = 0;

	buf_init(&rest, PAYLOAD_MAX + sizeof room);
	while (!rc && n > 0) {
		rc = would_wait(STDIN_FILENO) ? flush_batch(p, err) : 0;
		if (rc)
			break;
		n = read(STDIN_FILENO, room, sizeof room);
		if (n > 0)
			buf_put(&rest, room, (size_t)n);
		if (n < 0)
			rc = slu_fail(err, SLU_EFAILED, "stdin: %m");
		else if (rest.failed)
			rc = slu_fail(err, SLU_ETOOBIG, "line %" PRIu64 " of stdin is too long",
				      p->line + 1);
		else if (rest.n > 0)
			rc = add_lines_of(p, &rest, err);
	}
	if (!rc && rest.n > 0) /* the last line has no end */
		rc = add_line(p, buf_slice(&rest), err);
	buf_release(&rest);
	return rc;
}

static int
add_words(struct push *p, int n, char **words, struct slu_err *err)
{
	int rc = 0;

	for (int i = 0; i < n && !rc; i++) {
		if (strcmp(words[i], "-") == 0)
			rc = add_whole(p, STDIN_FILENO, "stdin", err);
		else
			rc = add_copies(p, slice_of(words[i]), err);
	}
	return rc;
}

static int
add_made(struct push *p, struct slu_err *err)
{
	struct buf payload;
	int rc = 0;

	buf_init(&payload, PAYLOAD_MAX);
	for (uint64_t i = 1; i <= p->count && !rc; i++) {
		rc = template_fill(p->template, i, &payload, err);
		if (!rc)
			rc = add(p, buf_slice(&payload), err);
	}
	buf_release(&payload);
	return rc;
}

/* --- the command --------------------------------------------------------------- */

static const struct session_help push_help = {
	.usage = "push QUEUE [PAYLOAD...] [options]",
	.text = "Every PAYLOAD is a message of its own; - is all of stdin. Prints their ids, a\n"
		"line each. What was printed is safe on the server's disk. A file, or stdin, of more\n"
		"than 12 MiB is sent as it is read; it takes no priority, key, trace or kept result.\n",
	.examples = "  sluice push mail 'hello'\n"
		    "  sluice push mail --file letter.txt --priority high\n"
		    "  date | sluice push mail -\n"
		    "  seq 1000 | sluice push numbers --lines --quiet\n"
		    "  sluice push orders --key customer-7 --delay 5m '{\"order\":1}'\n"
		    "  sluice push load -q --count 10000 --template '{\"n\":{n},\"id\":\"{uuid}\"}'\n"
		    "  sluice push orders --idempotency-key order-1 '{\"order\":1}'\n",
	.min_words = 1,
	.max_words = SESSION_ANY,
};

/* One source of payloads, and a key that can only be one message's. */
static const char *
misuse(const struct push *p, int words)
{
	const int sources = (words > 0) + (p->file != NULL) + p->lines + p->json_lines + (p->template != NULL);

	if (sources == 0)
		return "no payload; give words, - for stdin, --file, --lines or --template";
	if (sources > 1)
		return "payloads come from words, --file, --lines, --json-lines or --template, not from two";
	if (p->count > 1 && (p->lines || p->json_lines))
		return "--count: not with --lines, which has as many messages as lines";
	if (p->at && p->put.delay)
		return "--at or --delay, not both";
	if (p->put.idempotency_key && (words > 1 || p->count > 1 || p->lines || p->json_lines))
		return "--idempotency-key names one message; push them one at a time";
	return NULL;
}

static int
read_moment(struct push *p, struct slu_err *err)
{
	struct slu_err why;

	if (!p->at || rfc3339_parse(slice_of(p->at), &p->put.deliver_at, &why) == 0)
		return 0;
	return slu_fail(err, SLU_EINVAL, "invalid --at: %s; expected a moment as 2026-11-16T08:00:00Z (%s)",
			p->at, why.text);
}

static int
push(struct push *p, int words, char **argv, struct slu_err *err)
{
	const uint64_t each = words > 0 ? (uint64_t)words : 1;
	int rc = read_moment(p, err);

	if (rc)
		return rc;
	p->put.is_json = p->json_lines;
	buf_init(&p->payloads, PAYLOAD_MAX);
	if (p->count > 1)
		progress_begin(&p->progress, "pushing", p->count * each, false);
	if (p->template)
		rc = add_made(p, err);
	else if (p->file)
		rc = add_file(p, err);
	else if (p->lines || p->json_lines)
		rc = add_lines(p, err);
	else
		rc = add_words(p, words, argv, err);
	if (!rc)
		rc = flush_batch(p, err);
	progress_end(&p->progress);
	buf_release(&p->payloads);
	return rc;
}

static int
push_failed(struct push *p, struct slu_err *err)
{
	session_fail(&p->s, err);
	if (err->code == SLU_EUNKNOWN)
		session_note(&p->s, "the last %zu may or may not have been accepted; with "
				    "--idempotency-key they could safely be pushed again",
			     p->n);
	if (p->accepted > 0 || p->lines || p->json_lines)
		session_note(&p->s, "%" PRIu64 " messages before that were accepted", p->accepted);
	return session_end(&p->s);
}

int
cli_push(int argc, char **argv)
{
	struct push p = { .s = SESSION("push"), .count = 1 };
	const struct arg rows[] = {
		{ "-f, --file FILE", ARG_TEXT, &p.file, "the payload is in a file" },
		{ "--lines", ARG_FLAG, &p.lines, "a message for every line of stdin" },
		{ "--json-lines", ARG_FLAG, &p.json_lines, "the same; every line is JSON" },
		{ "-p, --priority high|normal|low|N", ARG_TEXT, &p.put.priority, "lower first (normal, 5)" },
		{ "-c, --count", ARG_COUNT, &p.count, "so many messages of each payload (1)" },
		{ "-t, --template TEXT", ARG_TEXT, &p.template,
		  "the payload, with {n}, {uuid} and {time} replaced for each of --count" },
		{ "-d, --delay", ARG_TIME, &p.put.delay, "not before that time has passed" },
		{ "--at MOMENT", ARG_TEXT, &p.at, "not before then: 2026-11-16T08:00:00Z" },
		{ "-k, --key KEY", ARG_TEXT, &p.put.key, "in order with others of this key" },
		{ "--ttl", ARG_TIME, &p.put.ttl, "a dead letter when not taken by then" },
		{ "--idempotency-key KEY", ARG_TEXT, &p.put.idempotency_key,
		  "accepted once, however often it is pushed" },
		{ "--correlation-id ID", ARG_TEXT, &p.put.correlation_id, "given to the consumer" },
		{ "--attributes JSON", ARG_TEXT, &p.put.attributes, "an object, given to the consumer" },
		{ "--content-type TYPE", ARG_TEXT, &p.put.content_type, "of the payload, given to the consumer" },
		{ "--traceparent TEXT", ARG_TEXT, &p.put.traceparent, "the trace it belongs to (W3C)" },
		{ "--max-attempts", ARG_COUNT, &p.max_attempts,
		  "failures until it is a dead letter" },
		{ "--keep-result", ARG_TIME, &p.put.keep_result, "keep the consumer's result so long" },
		{ "-q, --quiet", ARG_FLAG, &p.quiet, "print no ids" },
		SESSION_ROWS(&p.s),
	};
	struct slu_err err;
	const char *wrong;

	if (!session_begin(&p.s, &push_help, &argc, &argv, rows, COUNT(rows)))
		return p.s.exit;
	wrong = misuse(&p, argc - 1);
	if (wrong) {
		session_usage(&p.s, "%s", wrong);
		return session_end(&p.s);
	}
	p.queue = argv[0];
	p.put.max_attempts = (unsigned)p.max_attempts;
	if (push(&p, argc - 1, argv + 1, &err))
		return push_failed(&p, &err);
	return session_end(&p.s);
}
