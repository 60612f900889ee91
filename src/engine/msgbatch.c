#include "engine/msgbatch.h"

#include "base/le.h"

#include <inttypes.h>

/* The head of a batch: version, outcome, closed, 0; members, done, failed; 64-bit numbers in this order. */
enum {
	AT_COUNTS = 4,
	AT_NUMBERS = 16,
	NUMBERS = 8,
	AT_SEEN = 80 /* how many ids follow, 4 bytes; 4 zeros */
};

_Static_assert(AT_NUMBERS + NUMBERS * 8 == AT_SEEN && AT_SEEN + 8 == MSGBATCH_HEAD, "the head of a batch");

void
msgbatch_encode(const struct msgbatch *b, struct buf *out)
{
	const int64_t numbers[NUMBERS] = { b->created, b->deadline, b->ended, (int64_t)b->callback, b->delay, b->ttl };
	char *const p = buf_add(out, MSGBATCH_HEAD + (size_t)b->n_seen * 8);

	if (!p)
		return;
	memset(p, 0, MSGBATCH_HEAD);
	p[0] = MSGBATCH_VERSION;
	p[1] = (char)b->outcome;
	p[2] = b->closed;
	le32_put(p + AT_COUNTS, b->members);
	le32_put(p + AT_COUNTS + 4, b->done);
	le32_put(p + AT_COUNTS + 8, b->failed);
	for (unsigned i = 0; i < NUMBERS; i++)
		le64_put(p + AT_NUMBERS + i * 8, (uint64_t)numbers[i]);
	le32_put(p + AT_SEEN, b->n_seen);
	for (uint32_t i = 0; i < b->n_seen; i++)
		le64_put(p + MSGBATCH_HEAD + i * 8, b->seen[i]);
	buf_put(out, b->message.p, b->message.n);
}

static void
read_head(const char *p, struct msgbatch *out)
{
	const char *const n = p + AT_NUMBERS;

	*out = (struct msgbatch){
		.outcome = (enum msgbatch_outcome)p[1],
		.closed = p[2] == 1,
		.members = le32_get(p + AT_COUNTS),
		.done = le32_get(p + AT_COUNTS + 4),
		.failed = le32_get(p + AT_COUNTS + 8),
		.created = (slu_time)le64_get(n),
		.deadline = (slu_time)le64_get(n + 8),
		.ended = (slu_time)le64_get(n + 16),
		.callback = le64_get(n + 24),
		.delay = (slu_time)le64_get(n + 32),
		.ttl = (slu_time)le64_get(n + 40),
		.n_seen = le32_get(p + AT_SEEN),
	};
}

int
msgbatch_decode(struct slice text, struct msgbatch *out, struct slu_err *err)
{
	const bool sound = text.n >= MSGBATCH_HEAD && text.p[0] == MSGBATCH_VERSION && (unsigned char)text.p[1] < MSGBATCH_OUTCOMES;
	size_t at;

	*out = (struct msgbatch){ 0 };
	if (sound)
		read_head(text.p, out);
	at = MSGBATCH_HEAD + (size_t)out->n_seen * 8;
	if (!sound || out->n_seen > MSGBATCH_SEEN || text.n < at || out->members > MSGBATCH_MEMBERS_MAX || out->deadline < 0 ||
	    out->delay < 0 || out->ttl < 0)
		return slu_fail(err, SLU_ECORRUPT, "a malformed batch of %zu bytes", text.n);
	for (uint32_t i = 0; i < out->n_seen; i++)
		out->seen[i] = le64_get(text.p + MSGBATCH_HEAD + i * 8);
	out->message = (struct slice){ text.p + at, text.n - at };
	return 0;
}

void
msgbatch_event_encode(const struct msgbatch_event *e, char out[static MSGBATCH_EVENT])
{
	out[0] = (char)e->what;
	le32_put(out + 1, e->n);
}

int
msgbatch_event_decode(struct slice text, struct msgbatch_event *out, struct slu_err *err)
{
	if (text.n != MSGBATCH_EVENT || (unsigned char)text.p[0] >= MSGBATCH_WHATS)
		return slu_fail(err, SLU_ECORRUPT, "a malformed event of a batch, of %zu bytes", text.n);
	*out = (struct msgbatch_event){ (enum msgbatch_what)text.p[0], le32_get(text.p + 1) };
	return 0;
}

void
msgbatch_count(struct msgbatch *b, const struct msgbatch_event *e)
{
	if (e->what == MSGBATCH_ACKED)
		b->done += e->n;
	else if (e->what == MSGBATCH_LOST)
		b->failed += e->n;
	else if (e->what == MSGBATCH_REDRIVEN)
		b->failed -= e->n;
	else
		b->members -= e->n;
}

bool
msgbatch_ends(const struct msgbatch *b, slu_time now, enum msgbatch_outcome *how)
{
	const bool all = b->closed && b->done + b->failed == b->members;

	*how = !all ? MSGBATCH_LATE : b->failed ? MSGBATCH_FAILED
						: MSGBATCH_DONE;
	return b->outcome == MSGBATCH_OPEN && (all || (b->deadline && now >= b->deadline));
}

slu_time
msgbatch_due(const struct msgbatch *b)
{
	if (b->outcome != MSGBATCH_OPEN)
		return b->ended + MSGBATCH_KEEP;
	return b->deadline ? b->deadline : MSGBATCH_NEVER;
}

static const char *
outcome_text(enum msgbatch_outcome how)
{
	static const char *const texts[MSGBATCH_OUTCOMES] = { "open", "done", "failed", "deadline" };

	return texts[how];
}

const char *
msgbatch_status(const struct msgbatch *b)
{
	return b->outcome == MSGBATCH_OPEN && b->closed ? "closed" : outcome_text(b->outcome);
}

void
msgbatch_name(struct message *m, struct slice space)
{
	*m = (struct message){
		.space = space,
		.queue = SLICE(MSGBATCH_QUEUE),
		.terms.batch = MSGBATCH_SELF,
	};
}

void
msgbatch_attributes(const struct msgbatch *b, uint64_t id, struct slice own, struct buf *out)
{
	struct slice rest = slice_trim(own, " \t\r\n");

	buf_printf(out, "{\"batch\":\"%" PRIu64 "\",\"outcome\":\"%s\",\"members\":%" PRIu32 ",\"done\":%" PRIu32 ",\"failed\":%" PRIu32, id,
		   outcome_text(b->outcome), b->members, b->done, b->failed);
	if (rest.n)
		slice_skip(&rest, 1);
	rest = slice_trim(rest, " \t\r\n");
	if (rest.n > 1)
		buf_putc(out, ',');
	if (rest.n)
		buf_put(out, rest.p, rest.n);
	else
		buf_putc(out, '}');
}
