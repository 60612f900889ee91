#include "mirror/adopt.h"

#include "base/clock.h"
#include "base/hash.h"
#include "members/on_store.h"
#include "mirror/body.h"
#include "wal/segment.h"

#include <time.h>

enum {
	PIECE = 4 << 20, /* bytes of a group */
	SPAN_GROUPS = 500,
	SPAN_BYTES = 16 << 20
};

#define PATIENCE (30 * SLU_SEC)
#define PAUSE    (10 * SLU_MS)

struct adoption {
	const struct adopt_conf *conf;
	struct line *line;
	struct store_request request;
	slu_time good;      /* boot: the last answer that was not a failure */
	bool is_new;        /* the shard had no groups */
	struct slu_err why; /* code 0 = the line is not lost */
	struct buf piece, text;
	struct body body;
};

/* ---- The line ---- */

static uint64_t
draw(void *arg)
{
	uint64_t random = 0;

	(void)arg;
	(void)hash_random(&random, sizeof random, NULL); /* fails only before it ever succeeded */
	return random;
}

/* Groups that are there before the opening. */
static void
on_read(void *arg, const struct line_group *group, struct slice object)
{
	struct adoption *const a = arg;

	(void)object;
	a->is_new = a->is_new && memcmp(group->life, a->conf->life, LINE_LIFE) == 0;
}

static void
on_opened(void *arg)
{
	(void)arg;
}

static void
on_confirmed(void *arg, const struct line_known *group)
{
	(void)arg;
	(void)group;
}

static void
on_lost(void *arg, const struct slu_err *why)
{
	struct adoption *const a = arg;

	a->why = *why;
}

static int
execute(struct adoption *a, const struct line_request *r, struct slu_err *err)
{
	struct store_request *const to = &a->request;
	const slu_time now = clock_boot(&clock_system);
	struct line_answer answer;

	on_store_ask(to, r);
	store_execute(a->conf->store, to, &clock_system);
	if (to->result == STORE_REFUSED)
		return slu_fail(err, to->err.code, "%s", to->err.text);
	if (to->result != STORE_FAILED)
		a->good = clock_boot(&clock_system);
	else if (now - a->good > PATIENCE)
		return slu_fail(err, SLU_EDOWN, "the store does not answer: %.200s", to->err.text);
	answer = on_store_answer(to);
	line_reply(a->line, r->slot, &answer, clock_boot(&clock_system));
	return 0;
}

/* Executes the requests of the line until it is ready for the next group. */
static int
settle(struct adoption *a, struct slu_err *err)
{
	static const struct timespec pause = { .tv_nsec = PAUSE };
	struct line_request r;
	int rc = 0;

	a->good = clock_boot(&clock_system);
	while (!rc && !a->why.code) {
		if (line_next(a->line, clock_boot(&clock_system), &r))
			rc = execute(a, &r, err);
		else if (line_is_ready(a->line))
			return 0;
		else
			nanosleep(&pause, NULL);
	}
	return rc ? rc : slu_fail(err, a->why.code, "%s", a->why.text);
}

/* newest: the group behind which a pinned shard is taken; NULL = the shard is new. */
static int
take(struct adoption *a, const struct line_group *newest, struct slu_err *err)
{
	struct line_conf lc = {
		.shard = a->conf->shard,
		.unpins = newest,
		.span_groups = SPAN_GROUPS,
		.span_bytes = SPAN_BYTES,
		.retry = { .kind = SLU_BACKOFF_EXPONENTIAL, .base = 10 * SLU_MS, .max = SLU_SEC },
		.random = draw,
		.read = on_read,
		.opened = on_opened,
		.confirmed = on_confirmed,
		.lost = on_lost,
		.arg = a,
	};
	int rc;

	if (newest)
		lc.known = (struct line_known){ newest->number, newest->mark };
	memcpy(lc.life, a->conf->life, LINE_LIFE);
	if (line_new(&a->line, &lc))
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	line_take(a->line);
	rc = settle(a, err);
	if (!rc && !newest && (!a->is_new || line_facts(a->line).last > 1))
		rc = slu_fail(err, SLU_EEXISTS, "shard %s has groups already", a->conf->shard);
	return rc;
}

/* ---- The log ---- */

static int
put_piece(struct adoption *a, const struct segment *s, uint32_t at, size_t n, slu_time time, struct slu_err *err)
{
	char *p;
	int rc;

	buf_clear(&a->piece);
	buf_clear(&a->text);
	body_clear(&a->body);
	p = buf_add(&a->piece, n);
	if (!p)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	rc = wal_copy_read(s, at, n, p, err);
	if (rc)
		return rc;
	body_add(&a->body, &(struct body_piece){ s->number, at, { p, n } });
	if (body_encode(&a->body, &a->text) || !line_append(a->line, buf_slice(&a->text), time))
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	rc = settle(a, err);
	if (!rc && a->conf->progress)
		a->conf->progress(a->conf->arg, n);
	return rc;
}

static int
put_segments(struct adoption *a, const struct wal_copy *copy, struct slu_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < copy->n; i++) {
		const struct wal_copy_file *const f = &copy->files[i];

		for (uint32_t at = 0; !rc && at < f->bytes; at += PIECE) {
			const size_t n = f->bytes - at < PIECE ? f->bytes - at : PIECE;

			rc = put_piece(a, f->segment, at, n, copy->time, err);
		}
	}
	return rc;
}

static void
release(struct adoption *a)
{
	line_free(a->line);
	store_request_release(&a->request);
	buf_release(&a->piece);
	buf_release(&a->text);
	body_release(&a->body);
}

int
adopt_log(const struct adopt_conf *conf, const struct wal *log, uint64_t *epoch, struct slu_err *err)
{
	struct adoption a = { .conf = conf, .is_new = true };
	struct wal_copy copy = { 0 };
	int rc = wal_copy_open(&copy, log, err);

	store_request_init(&a.request);
	buf_init(&a.piece, PIECE);
	buf_init(&a.text, 2 * PIECE);
	body_init(&a.body);
	if (!rc)
		rc = take(&a, NULL, err);
	if (!rc)
		rc = put_segments(&a, &copy, err);
	if (!rc)
		*epoch = line_facts(a.line).epoch;
	wal_copy_close(&copy);
	release(&a);
	return rc;
}

int
adopt_unpin(const struct adopt_conf *conf, const struct line_group *newest, uint64_t *epoch, struct slu_err *err)
{
	struct adoption a = { .conf = conf };
	int rc;

	store_request_init(&a.request);
	rc = take(&a, newest, err);
	if (!rc)
		*epoch = line_facts(a.line).epoch;
	release(&a);
	return rc;
}
