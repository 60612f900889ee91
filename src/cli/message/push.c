/*
 * push.c - `sluice push`: adds messages to a queue, from words, a file, stdin or its lines.
 */
#include "cli/lib/progress.h"
#include "cli/message/upload.h"
#include "cli/lib/session.h"
#include "cli/message/template.h"

#include "base/id.h"
#include "base/json/json.h"
#include "base/parse.h"
#include "base/rfc3339.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <unistd.h>

enum {
	BATCH_LINES = 1000,
	BATCH_BYTES = 1 << 20,
	PAYLOAD_MAX = 12 << 20 /* bytes of a payload that fit a request as base64 */
};

struct push {
	struct session s;
	struct slu_client_put put; /* the members that all messages share */
	uint64_t max_attempts;
	const char *queue;
	const char *file;
	const char *template; /* template.h */
	uint64_t count;       /* copies of each payload */
	const char *at, *deadline;
	const char *retry; /* --retry */
	const char *until; /* --until */
	struct slu_backoff backoff;
	bool lines, json_lines, quiet;

	struct slu_client_put puts[BATCH_LINES];
	struct buf payloads; /* the payloads of the batch, one after the other */
	size_t n;            /* how many messages the batch has */
	uint64_t accepted;   /* how many messages were accepted before the batch */
	uint64_t line;       /* number of the last line that was read */
	struct progress progress;
};

/* --- batches ---------------------------------------------------------------- */

static const char *
unique_text(const struct slu_client_put *put)
{
	if (!put->unique_key)
		return "";
	if (put->replaced)
		return ",\"unique\":\"replaced\"";
	return put->duplicate ? ",\"unique\":\"kept\"" : ",\"unique\":\"new\"";
}

static void
print_id(const struct push *p, const struct slu_client_put *put)
{
	char uid[ID_UUID_TEXT];

	if (p->s.json)
		printf("{\"id\":%" PRIu64 ",\"uid\":\"%s\",\"duplicate\":%s%s}\n", put->id,
		       id_to_uuid(put->id, uid), put->duplicate ? "true" : "false", unique_text(put));
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
		return slu_fail(err, SLU_ENOMEM, "no memory for payloads");
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

/* The option that a streamed payload cannot have; NULL if there is no such option. */
static const char *
unsupported(const struct push *p)
{
	return p->count > 1     ? "--count"
	       : p->put.batch   ? "--batch"
	       : p->put.replace ? "--replace"
				: NULL;
}

static int
add_large(struct push *p, struct slice head, int fd, const char *name, struct slu_err *err)
{
	struct slu_client_put put = p->put;
	const char *const option = unsupported(p);
	int rc = flush_batch(p, err);

	if (rc)
		return rc;
	if (option)
		return slu_fail(err, SLU_EINVAL, "%s does not support payloads of more than 12 MiB", option);
	p->n = 1; /* push_failed reports it */
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
	rc = session_read(fd, name, PAYLOAD_MAX, &all, err);
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
		return slu_fail(err, SLU_EINVAL, "line %" PRIu64 " of stdin: invalid JSON: %s",
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

/* Adds every complete line of the buffer and moves the rest to the front. */
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

/* Lines that were read are sent before waiting for more, so that `tail -f` works. */
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
	if (!rc && rest.n > 0) /* the last line has no newline */
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

/* Checks that there is one source of payloads, and that options fit together. */
static const char *
misuse(const struct push *p, int words)
{
	const int sources = (words > 0) + (p->file != NULL) + p->lines + p->json_lines + (p->template != NULL);

	if (sources == 0)
		return "missing payload; expected words, - for stdin, --file, --lines or --template";
	if (sources > 1)
		return "more than one source of payloads; expected words, --file, --lines, --json-lines or --template";
	if (p->count > 1 && (p->lines || p->json_lines))
		return "--count does not go with --lines: a line is a message";
	if (p->at && p->put.delay)
		return "--at and --delay exclude each other";
	if (p->put.idempotency_key && (words > 1 || p->count > 1 || p->lines || p->json_lines))
		return "--idempotency-key needs a single message";
	if (p->put.unique_key && (words > 1 || p->count > 1 || p->lines || p->json_lines))
		return "--unique needs a single message";
	if ((p->until || p->put.replace) && !p->put.unique_key)
		return "--until and --replace need --unique";
	if (p->put.unique_key && p->put.idempotency_key)
		return "--unique and --idempotency-key exclude each other";
	return NULL;
}

static int
read_moment(const char *name, const char *text, slu_time *out, struct slu_err *err)
{
	struct slu_err why;

	if (!text || rfc3339_parse(slice_of(text), out, &why) == 0)
		return 0;
	return slu_fail(err, SLU_EINVAL, "invalid %s: %s; expected a time like 2026-11-16T08:00:00Z (%s)", name, text,
			why.text);
}

/* KIND[:BASE[:MAX]] */
static int
read_retry(struct push *p, struct slu_err *err)
{
	static const char *const kinds[] = { "exponential", "linear", "fixed", "none" };
	struct slice rest = slice_of(p->retry ? p->retry : ""), word = { 0 };
	slu_time *const times[] = { &p->backoff.base, &p->backoff.max };
	unsigned kind = 0;
	bool good = true;

	if (!p->retry)
		return 0;
	(void)slice_cut(&rest, ':', &word);
	while (kind < SLU_BACKOFF_NONE && !slice_eq(word, slice_of(kinds[kind])))
		kind++;
	good = slice_eq(word, slice_of(kinds[kind]));
	p->backoff = (struct slu_backoff){ .kind = (enum slu_backoff_kind)kind, .jitter = SLU_JITTER_FULL };
	for (unsigned i = 0; good && i < 2 && rest.n; i++) {
		(void)slice_cut(&rest, ':', &word);
		good = !parse_duration(word, times[i], NULL);
	}
	if (!good || rest.n)
		return slu_fail(err, SLU_EINVAL, "invalid --retry: %s; expected exponential, linear, fixed or none, as in fixed:10s or exponential:1s:15m",
				p->retry);
	p->put.retry = &p->backoff;
	return 0;
}

/* started, done, or a time */
static int
read_until(struct push *p, struct slu_err *err)
{
	if (!p->put.unique_key)
		return 0;
	p->put.unique_until = p->until ? p->until : "done";
	if (strcmp(p->put.unique_until, "done") == 0 || strcmp(p->put.unique_until, "started") == 0)
		return 0;
	if (!parse_duration(slice_of(p->until), &p->put.unique_for, NULL) && p->put.unique_for >= SLU_SEC)
		return 0;
	return slu_fail(err, SLU_EINVAL, "invalid --until: %s; expected started, done or a time of a second or more, as 10m", p->until);
}

static int
push(struct push *p, int words, char **argv, struct slu_err *err)
{
	const uint64_t each = words > 0 ? (uint64_t)words : 1;
	int rc = read_moment("--at", p->at, &p->put.deliver_at, err);

	if (!rc)
		rc = read_moment("--deadline", p->deadline, &p->put.deadline, err);
	if (!rc)
		rc = read_retry(p, err);
	if (!rc)
		rc = read_until(p, err);
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

static void
push_failed(struct push *p, const struct slu_err *err)
{
	session_fail(&p->s, err);
	if (err->code == SLU_EUNKNOWN)
		session_note(&p->s, "the last %zu messages may or may not be accepted; with --idempotency-key "
				    "it is safe to push again",
			     p->n);
	if (p->accepted > 0 || p->lines || p->json_lines)
		session_note(&p->s, "%" PRIu64 " messages before that were accepted", p->accepted);
}

static int
run(struct session *s, struct slu_err *err)
{
	struct push *const p = (void *)s;
	const int words = p->s.n_words - 1;
	const char *const wrong = misuse(p, words);

	if (wrong)
		return session_usage(&p->s, "%s", wrong);
	p->queue = p->s.words[0];
	p->put.max_attempts = (unsigned)p->max_attempts;
	if (push(p, words, p->s.words + 1, err))
		push_failed(p, err);
	return 0;
}

const struct command cli_push = {
	.name = "push",
	.group = "Messages",
	.summary = "add messages to a queue",
	.usage = "QUEUE [PAYLOAD...] [options]",
	.text = "Every PAYLOAD is a message; - is all of stdin. Prints the ids, one a line. A message\n"
		"is safe on the server's disk when its id is printed. A file, or stdin, of more than\n"
		"12 MiB is sent while it is read.\n",
	.examples = "  sluice push mail 'hello'\n"
		    "  sluice push mail --file letter.txt --priority high\n"
		    "  date | sluice push mail -\n"
		    "  seq 1000 | sluice push numbers --lines --quiet\n"
		    "  sluice push orders --key customer-7 --delay 5m '{\"order\":1}'\n"
		    "  sluice push load -q --count 10000 --template '{\"n\":{n},\"id\":\"{uuid}\"}'\n"
		    "  sluice push orders --idempotency-key order-1 '{\"order\":1}'\n",
	.options = CLI_QUEUE,
	CLI_ARGS({ "-f, --file FILE", ARG_TEXT, AT(push, file), "read the payload from a file" },
		 { "--lines", ARG_FLAG, AT(push, lines), "push every line of stdin as a message" },
		 { "--json-lines", ARG_FLAG, AT(push, json_lines), "like --lines; every line is JSON" },
		 { "-p, --priority high|normal|low|N", ARG_TEXT, AT(push, put.priority), "priority; lower numbers first (normal, 5)" },
		 { "-c, --count", ARG_COUNT, AT(push, count), "push each payload this many times (1)" },
		 { "-t, --template TEXT", ARG_TEXT, AT(push, template),
		   "payload; {n}, {uuid} and {time} are replaced in each message" },
		 { "-d, --delay", ARG_TIME, AT(push, put.delay), "deliver after this time" },
		 { "--at MOMENT", ARG_TEXT, AT(push, at), "deliver not before, like 2026-11-16T08:00:00Z" },
		 { "-k, --key KEY", ARG_TEXT, AT(push, put.key), "ordering key: messages of a key are delivered in order" },
		 { "--share NAME", ARG_TEXT, AT(push, put.share), "share of the queue: shares take turns" },
		 { "--kind NAME", ARG_TEXT, AT(push, put.kind), "kind of work: consumers may take some kinds alone" },
		 { "--batch BATCH", ARG_TEXT, AT(push, put.batch), "batch that it is a member of" },
		 { "--lease", ARG_TIME, AT(push, put.lease), "lease of a claim that names none (the queue's)" },
		 { "--max-runtime", ARG_TIME, AT(push, put.max_runtime), "its lease ends after this time, however often it is extended" },
		 { "--deadline MOMENT", ARG_TEXT, AT(push, deadline), "becomes a dead letter if not taken before, like 2026-11-16T08:00:00Z" },
		 { "--ttl", ARG_TIME, AT(push, put.ttl), "becomes a dead letter if not taken within this time" },
		 { "--idempotency-key KEY", ARG_TEXT, AT(push, put.idempotency_key),
		   "the queue accepts a message with this key once" },
		 { "--unique KEY", ARG_TEXT, AT(push, put.unique_key), "the queue has one message with this key, see --until" },
		 { "--until started|done|TIME", ARG_TEXT, AT(push, until), "how long it is unique: until it is delivered, or done, or for a time (done)" },
		 { "--replace", ARG_FLAG, AT(push, put.replace), "a waiting message with the key of --unique gets this payload" },
		 { "--correlation-id ID", ARG_TEXT, AT(push, put.correlation_id), "id for the consumer" },
		 { "--attributes JSON", ARG_TEXT, AT(push, put.attributes), "JSON object for the consumer" },
		 { "--content-type TYPE", ARG_TEXT, AT(push, put.content_type), "content type of the payload" },
		 { "--traceparent TEXT", ARG_TEXT, AT(push, put.traceparent), "trace context (W3C)" },
		 { "--retry KIND[:BASE[:MAX]]", ARG_TEXT, AT(push, retry), "delays after failures, as fixed:10s (the queue's)" },
		 { "--max-attempts", ARG_COUNT, AT(push, max_attempts),
		   "failures after which it is a dead letter" },
		 { "--keep-result", ARG_TIME, AT(push, put.keep_result), "keep the result of the ack this long" },
		 { "-q, --quiet", ARG_FLAG, AT(push, quiet), "print no ids" }),
	CLI_STATE(struct push, .count = 1),
	.run = run,
};
