/*
 * run.c - has a child work on a message: a process for each message, or with --lines one long-lived
 * process that reads a message a line:
 *
 *      {"id":318497266802130945,"uid":"...","queue":"mail","attempts":1,...,"text":"hello"}
 *      {"checkpoint":{...}}  any number: how far it has come
 *      {"outcome":"ack"}     or nack, defer, dead; with "error", "delay", "result", "enqueue"; an
 *                            "id" or "uid" must be the id of the message
 *
 * A payload that is not UTF-8 is sent as `payload`, in base64, instead of `text`.
 */
#include "cli/work/work.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/json/json.h"
#include "base/json/json_out.h"
#include "base/json/json_table.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	EXIT_DEFER = 75, /* EX_TEMPFAIL of sysexits.h */
	EXIT_DEAD = 100, /* the code that mail transports use */
	RESULT_MAX = 1 << 20
};

/* --- the environment of a child ----------------------------------------------- */

/* All variables that describe a message. The values of an outer worker are removed from the environment. */
static const char *const variables[] = {
	"ID", "UID", "QUEUE", "NAMESPACE", "ATTEMPTS", "FAILURE_ATTEMPTS", "PRIORITY", "KEY", "KIND",
	"CORRELATION_ID", "CONTENT_TYPE", "ATTRIBUTES", "CHECKPOINT", "RECEIPT", "LEASE_ID", "LEASE_EXPIRES_AT",
	"FENCING_TOKEN", "SERVER", "TOKEN", "TOKEN_FILE", "CA_FILE", "CERT", "CERT_KEY"
};

static bool
is_ours(const char *entry)
{
	static const char prefix[] = "SLUICE_";

	if (strncmp(entry, prefix, sizeof prefix - 1) != 0)
		return false;
	entry += sizeof prefix - 1;
	for (size_t i = 0; i < COUNT(variables); i++) {
		const size_t n = strlen(variables[i]);

		if (strncmp(entry, variables[i], n) == 0 && entry[n] == '=')
			return true;
	}
	return false;
}

static void
put_text(struct buf *b, const char *name, const char *value)
{
	if (!*value)
		return;
	buf_printf(b, "SLUICE_%s=%s", name, value);
	buf_putc(b, '\0');
}

static void
put_number(struct buf *b, const char *name, int64_t value)
{
	buf_printf(b, "SLUICE_%s=%" PRId64, name, value);
	buf_putc(b, '\0');
}

static void
put_message(struct buf *b, const struct slu_client_message *m)
{
	put_number(b, "ID", (int64_t)m->id);
	put_text(b, "UID", m->uid);
	put_number(b, "ATTEMPTS", (int64_t)m->attempts);
	put_number(b, "FAILURE_ATTEMPTS", (int64_t)m->failures);
	put_number(b, "PRIORITY", m->priority);
	put_text(b, "KEY", m->key);
	put_text(b, "KIND", m->kind);
	put_text(b, "CORRELATION_ID", m->correlation_id);
	put_text(b, "CONTENT_TYPE", m->content_type);
	put_text(b, "ATTRIBUTES", m->attributes);
	put_text(b, "CHECKPOINT", m->checkpoint);
	put_text(b, "RECEIPT", m->receipt ? m->receipt : "");
	put_text(b, "LEASE_ID", m->lease_id);
	put_text(b, "LEASE_EXPIRES_AT", m->lease_expires_at);
	put_number(b, "FENCING_TOKEN", (int64_t)m->fencing_token);
}

/* The environment without the variables above, plus s->env. The caller frees the array, not its
 * strings. */
static char **
environment(struct work_slot *s)
{
	size_t n = 0, size = 1 + COUNT(variables);
	char **env;

	for (char **e = environ; *e; e++)
		size++;
	env = mem_array(size, sizeof *env);
	if (!env)
		return NULL;
	for (char **e = environ; *e; e++)
		if (!is_ours(*e))
			env[n++] = *e;
	for (size_t at = 0; at < s->env.n; at += strlen(s->env.p + at) + 1)
		env[n++] = s->env.p + at;
	return env;
}

/* Adds the address and the credentials of the server, so that `sluice` in the child uses the same server. The
 * command may log its environment, so it gets the token only with --pass-token. */
static void
put_server(struct work_slot *s)
{
	const struct session *const session = &s->work->s;
	const struct {
		const char *name, *value;
	} rows[] = {
		{ "SERVER", session->server },
		{ "TOKEN", s->work->pass_token ? session->token : NULL },
		{ "CA_FILE", session->ca_file },
		{ "CERT", session->cert },
		{ "CERT_KEY", session->cert_key },
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		if (rows[i].value)
			put_text(&s->env, rows[i].name, rows[i].value);
}

static bool
takes_output(const struct work_slot *s)
{
	return s->work->result && strcmp(s->work->result, "stdout") == 0;
}

static int
start(struct work_slot *s, struct slu_err *err)
{
	struct child_start how = {
		.argv = s->work->argv,
		.lines = s->work->lines,
		.whole = takes_output(s),
		.children = !s->work->lines, /* an answer line has them */
		.grace = child_grace(s->work->lease),
	};
	char **env;
	int rc;

	buf_clear(&s->env);
	put_text(&s->env, "QUEUE", s->work->queue);
	put_text(&s->env, "NAMESPACE", s->work->s.space);
	put_server(s);
	if (!s->work->lines) /* otherwise the child would outlive the message */
		put_message(&s->env, s->message);
	env = s->env.failed ? NULL : environment(s);
	if (!env)
		return slu_fail(err, SLU_ENOMEM, "no memory for a child");
	how.env = env;
	rc = child_start(&s->child, &how, err);
	mem_free(env);
	return rc;
}

/* --- what becomes of the message ------------------------------------------------ */

void
slot_put_tail(struct work_slot *s)
{
	struct slice tail = { s->child.tail, s->child.tail_n };

	while (tail.n > 0 && strchr("\n\r\t ", tail.p[tail.n - 1]))
		tail.n--;
	if (tail.n == 0)
		return;
	buf_puts(&s->verdict.error, ": ");
	buf_put(&s->verdict.error, tail.p, tail.n);
}

/* WORK-2 */
static void
judge_exit(struct work_slot *s)
{
	const int status = s->child.status;
	const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	char death[CHILD_DEATH_TEXT];

	switch (code) {
	case 0:
		s->verdict.outcome = WORK_DONE;
		return;
	case EXIT_DEFER:
		s->verdict.outcome = WORK_DEFERRED;
		break;
	case EXIT_DEAD:
		s->verdict.outcome = WORK_DEAD;
		break;
	default:
		s->verdict.outcome = WORK_FAILED;
	}
	buf_puts(&s->verdict.error, child_death(&s->child, death));
	slot_put_tail(s);
}

/* Writes the output as a result: JSON as it is, other text as a string without the last newline. */
static void
put_result(struct buf *b, struct slice out)
{
	struct json_out w;

	if (out.n > 0 && out.p[out.n - 1] == '\n')
		out.n--;
	if (json_check(out, JSON_NONE, JSON_DEPTH - 2, "result", NULL) == 0) {
		buf_put(b, out.p, out.n);
	} else if (out.n > 0) {
		json_out_init(&w, b);
		json_out_str(&w, NULL, out);
		json_out_end(&w);
	}
}

static void
take_output(struct work_slot *s)
{
	struct work_verdict *const v = &s->verdict;
	const struct slice out = child_output(&s->child);

	if (utf8_valid(out))
		put_result(&v->result, out);
	if (utf8_valid(out) && !v->result.failed && v->result.n <= RESULT_MAX)
		return;
	v->outcome = WORK_FAILED;
	buf_printf(&v->error, "invalid result: %zu bytes of output; expected JSON, or text in UTF-8, of at most %d",
		   out.n, RESULT_MAX);
}

/* WORK-7 */
static void
take_children(struct work_slot *s)
{
	struct work_verdict *const v = &s->verdict;
	struct slu_err err;

	if (!children_take_lines(buf_slice(&s->child.written), s->work->s.space, &v->enqueue, &err))
		return;
	v->outcome = WORK_FAILED;
	buf_puts(&v->error, err.text);
}

static int
run_once(struct work_slot *s, struct slu_err *err)
{
	int rc = start(s, err);

	if (rc)
		return rc;
	child_feed(&s->child, (struct slice){ s->message->payload, s->message->size });
	if (slot_wait(s) == CHILD_ENDED)
		judge_exit(s);
	if (takes_output(s) && s->verdict.outcome == WORK_DONE)
		take_output(s);
	if (s->verdict.outcome == WORK_DONE)
		take_children(s);
	child_release(&s->child);
	return 0;
}

/* --- lines ----------------------------------------------------------------------- */

static void
out_text(struct json_out *w, const char *name, const char *text)
{
	if (*text)
		json_out_str(w, name, slice_of(text));
}

/* JSON has newlines only between its values. */
static void
put_on_one_line(struct buf *line)
{
	for (size_t i = 0; i < line->n; i++)
		if (line->p[i] == '\n')
			line->p[i] = ' ';
	buf_putc(line, '\n');
}

static void
write_line(struct work_slot *s)
{
	const struct slu_client_message *m = s->message;
	const struct slice payload = { m->payload, m->size };
	struct json_out w;

	buf_clear(&s->line);
	json_out_open(&w, &s->line);
	json_out_u64(&w, "id", m->id);
	out_text(&w, "uid", m->uid);
	json_out_str(&w, "queue", slice_of(s->work->queue));
	json_out_str(&w, "namespace", slice_of(s->work->s.space));
	json_out_u64(&w, "attempts", m->attempts);
	json_out_u64(&w, "failure_attempts", m->failures);
	out_text(&w, "key", m->key);
	out_text(&w, "share", m->share);
	out_text(&w, "kind", m->kind);
	out_text(&w, "correlation_id", m->correlation_id);
	out_text(&w, "content_type", m->content_type);
	json_out_u64(&w, "fencing_token", m->fencing_token);
	if (*m->attributes)
		json_out_raw(&w, "attributes", slice_of(m->attributes));
	if (*m->checkpoint)
		json_out_raw(&w, "checkpoint", slice_of(m->checkpoint));
	if (utf8_valid(payload))
		json_out_str(&w, "text", payload);
	else
		json_out_base64(&w, "payload", payload);
	json_out_finish(&w);
	put_on_one_line(&s->line);
}

struct reply {
	uint64_t id;
	struct slice uid, outcome, error, delay, result, enqueue, checkpoint;
};

static bool
take_outcome(struct work_verdict *v, struct slice word)
{
	static const struct {
		struct slice word;
		enum work_outcome outcome;
	} words[] = {
		{ { "ack", 3 }, WORK_DONE },
		{ { "nack", 4 }, WORK_FAILED },
		{ { "defer", 5 }, WORK_DEFERRED },
		{ { "dead", 4 }, WORK_DEAD },
	};

	for (size_t i = 0; i < COUNT(words); i++) {
		if (slice_eq(word, words[i].word)) {
			v->outcome = words[i].outcome;
			return true;
		}
	}
	return false;
}

/* Compares ids. A child in JavaScript may send the id rounded to a double. */
static bool
is_about(const struct reply *reply, const struct slu_client_message *m)
{
	const bool rounded = id_is_rounded(reply->id) && (double)reply->id == (double)m->id;

	if (reply->uid.n > 0 && !slice_eq(reply->uid, slice_of(m->uid)))
		return false;
	return reply->id == 0 || reply->id == m->id || rounded;
}

/* *only: the line has a checkpoint, and the answer comes later. */
static int
read_reply(struct work_slot *s, struct slice line, bool *only, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_FIELD(u64, struct reply, id),
		JSON_FIELD(text, struct reply, uid),
		JSON_FIELDS(text, struct reply, outcome, error, delay),
		JSON_FIELDS(raw, struct reply, result, enqueue, checkpoint),
	};
	struct work_verdict *v = &s->verdict;
	struct reply reply = { 0 };
	struct json r;
	char *room = mem_alloc(line.n + 1);
	int rc;

	if (!room)
		return slu_fail(err, SLU_ENOMEM, "no memory for the answer of a child");
	json_init(&r, line, JSON_DEPTH);
	json_room(&r, room, line.n);
	json_fields(&r, fields, COUNT(fields), JSON_LENIENT, &reply);
	rc = json_end(&r, err);
	if (!rc && !is_about(&reply, s->message))
		rc = slu_fail(err, SLU_EINVAL, "invalid id: it is of another message");
	if (!rc && reply.checkpoint.n) { /* WORK-10 */
		buf_clear(&s->checkpoint);
		buf_put(&s->checkpoint, reply.checkpoint.p, reply.checkpoint.n);
	}
	*only = reply.checkpoint.n && !reply.outcome.n;
	if (!rc && !*only && !take_outcome(v, reply.outcome))
		rc = slu_fail(err, SLU_EINVAL, "invalid outcome; expected ack, nack, defer or dead");
	if (!rc && reply.delay.n > 0)
		rc = parse_duration(reply.delay, &v->delay, err);
	if (!rc && v->outcome == WORK_DONE)
		rc = children_take_list(reply.enqueue, s->work->s.space, &v->enqueue, err);
	buf_put(&v->error, reply.error.p, reply.error.n);
	buf_put(&v->result, reply.result.p, reply.result.n);
	mem_free(room);
	return rc;
}

enum line_kind {
	LINE_ANSWER, /* the verdict is set */
	LINE_CHECKPOINT
};

/* A malformed answer could be the answer to any message, so the child is ended. The same holds for a child
 * that answers twice, or before it has read its message. */
static enum line_kind
judge_line(struct work_slot *s)
{
	struct slu_err why;
	bool only = false;
	int rc = read_reply(s, child_line(&s->child), &only, &why);

	if (!rc && only)
		return LINE_CHECKPOINT;
	if (!rc && !child_is_quiet(&s->child))
		rc = slu_fail(&why, SLU_EINVAL, "expected one line, after the message has been read");
	if (!rc)
		return LINE_ANSWER;
	child_release(&s->child);
	s->verdict.outcome = WORK_FAILED;
	buf_clear(&s->verdict.error);
	buf_printf(&s->verdict.error, "malformed answer of the child: %s", why.text);
	return LINE_ANSWER;
}

/* As slot_wait, and stores the checkpoints of the child. */
static enum child_event
wait_for_answer(struct work_slot *s)
{
	for (;;) {
		const enum child_event e = slot_wait(s);

		if (e != CHILD_LINE || judge_line(s) == LINE_ANSWER)
			return e;
		if (slot_keep_lease(s))
			continue;
		s->verdict.outcome = WORK_LOST;
		child_release(&s->child);
		return CHILD_STOP;
	}
}

static int
run_line(struct work_slot *s, struct slu_err *err)
{
	int rc = 0;

	if (s->child.pid == 0 || !child_is_quiet(&s->child)) {
		child_release(&s->child); /* the verdict of the previous message */
		rc = start(s, err);
	}
	if (rc)
		return rc;
	write_line(s);
	if (s->line.failed)
		return slu_fail(err, SLU_ENOMEM, "no memory for the line of message %" PRIu64,
				s->message->id);
	child_feed(&s->child, buf_slice(&s->line));
	if (wait_for_answer(s) != CHILD_ENDED)
		return 0;
	judge_exit(s);
	if (s->verdict.outcome == WORK_DONE) { /* the child ended without an answer */
		s->verdict.outcome = WORK_FAILED;
		buf_puts(&s->verdict.error, "the child ended without an answer");
	}
	return 0;
}

int
slot_run(struct work_slot *s, struct slu_err *err)
{
	buf_clear(&s->verdict.error);
	buf_clear(&s->verdict.result);
	buf_clear(&s->verdict.enqueue);
	buf_clear(&s->checkpoint);
	s->seen = 0;
	s->verdict.delay = -1;
	s->timed_out = s->canceled = false;
	s->end_at = s->work->timeout ? time_add(clock_mono(&clock_system), s->work->timeout) : SLU_NEVER;
	return s->work->lines ? run_line(s, err) : run_once(s, err);
}

void
slot_dismiss(struct work_slot *s)
{
	child_close_input(&s->child);
	while (s->child.pid > 0) {
		const enum child_event e = child_wait(&s->child, SLU_NEVER, s->work->force_fd);

		if (e == CHILD_LINE)
			(void)child_line(&s->child); /* an unexpected answer */
		if (e == CHILD_STOP)
			child_kill(&s->child);
		if (e == CHILD_STOP)
			break;
	}
	child_release(&s->child);
}
