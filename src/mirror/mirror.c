/*
 * mirror.c - requests of the line and their answers; commits.
 */
#include "mirror/mirror_private.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define PAUSE (100 * SLU_MS) /* the longest wait before the mirror looks at its patience again */

void
mirror_give_up(struct mirror *m, const struct slu_err *why)
{
	if (!m->over)
		m->why = *why;
	m->over = true;
	m->busy = false;
	m->news = true;
	atomic_store(&m->goal_reached, true);
}

/* ---- Requests ---- */

static int
post(struct mirror *m, struct mirror_shot *shot, struct slu_err *err)
{
	const int rc = store_pool_post(m->pool, &shot->request, err);

	m->flying += !rc;
	return rc;
}

void
mirror_landed(struct mirror *m)
{
	m->flying--;
	pthread_cond_broadcast(&m->changed);
}

int
mirror_post(struct mirror *m, const struct line_request *r, slu_time due,
	    void (*done)(struct store_request *r), struct slu_err *err)
{
	struct mirror_shot *const shot = &m->shots[r->slot];
	struct store_request *const to = &shot->request;

	assert(r->slot < MIRROR_SHOTS && !to->posted);
	on_store_ask(to, r);
	to->due = due;
	to->urgent = r->verb == LINE_PUT; /* a commit does not wait behind what the line reads */
	to->done = done;
	shot->mirror = m;
	shot->slot = r->slot;
	return post(m, shot, err);
}

/* Notes whether the store answers. A refused request ends the mirror: it would never succeed. */
static void
note_health(struct mirror *m, const struct store_request *r)
{
	const bool failed = r->result == STORE_FAILED;

	if (failed)
		m->last = r->err;
	else
		m->good = clock_boot(m->conf.clock);
	m->doubt |= failed && !m->down;
	m->down = failed;
	if (r->result == STORE_REFUSED && !m->closing)
		mirror_give_up(m, &r->err);
}

/* MIRROR-7 */
static void
doubt(struct mirror *m)
{
	const uint64_t breaks = atomic_load(&m->conf.store->breaks);

	m->doubt |= breaks != m->breaks;
	if (!m->doubt || !line_is_open(m->line))
		return;
	m->doubt = false;
	m->breaks = breaks;
	line_reopen(m->line);
}

static void
on_done(struct store_request *r)
{
	struct mirror_shot *const shot = CONTAINER(r, struct mirror_shot, request);
	struct mirror *const m = shot->mirror;
	const struct line_answer a = on_store_answer(r);
	bool news;

	pthread_mutex_lock(&m->mtx);
	note_health(m, r);
	doubt(m);
	line_reply(m->line, shot->slot, &a, clock_boot(m->conf.clock));
	mirror_pump(m);
	news = m->news && !m->closing && m->conf.poke;
	m->news = false;
	if (news) {
		pthread_cond_broadcast(&m->changed);
		pthread_mutex_unlock(&m->mtx);
		m->conf.poke(m->conf.arg);
		pthread_mutex_lock(&m->mtx);
	}
	mirror_landed(m);
	pthread_mutex_unlock(&m->mtx);
}

/* The next request of the line. If it has to wait for its back-off, sets *due. */
static bool
next(struct mirror *m, struct line_request *r, slu_time *due)
{
	*due = 0;
	if (line_next(m->line, clock_boot(m->conf.clock), r))
		return true;
	*due = line_due(m->line);
	return *due != SLU_NEVER && line_next(m->line, *due, r);
}

/* Compares the line with the store, and gives it the commit when it is ready. */
static void
drive(struct mirror *m)
{
	doubt(m);
	if (m->unsent && line_is_ready(m->line)) {
		m->unsent = false;
		(void)line_append(m->line, buf_slice(&m->text), m->time); /* `lost` follows if it fails */
	}
	if (m->conf.front && m->opened)
		mirror_carry_on(m);
}

void
mirror_pump(struct mirror *m)
{
	struct line_request r;
	struct slu_err err;
	slu_time due;

	if (!m->over && !m->closing)
		drive(m);
	while (!m->over && !m->closing && next(m, &r, &due))
		if (mirror_post(m, &r, due, on_done, &err))
			mirror_give_up(m, &err);
}

/* ---- Time ---- */

static void
on_tick(struct store_request *r)
{
	struct mirror *const m = CONTAINER(r, struct mirror_shot, request)->mirror;

	pthread_mutex_lock(&m->mtx);
	if (!m->closing && !m->over) {
		line_span(m->line);
		mirror_pump(m);
		mirror_tick(m);
	}
	mirror_landed(m);
	pthread_mutex_unlock(&m->mtx);
}

void
mirror_tick(struct mirror *m)
{
	struct mirror_shot *const shot = &m->shots[MIRROR_TICK];
	struct slu_err err;

	shot->mirror = m;
	shot->request.verb = STORE_CLOCK;
	shot->request.due = clock_boot(m->conf.clock) + m->conf.span_age;
	shot->request.done = on_tick;
	if (post(m, shot, &err))
		mirror_give_up(m, &err);
}

/* Under mtx. */
static const char *
waits_for(const struct mirror *m)
{
	return *m->last.text ? m->last.text : m->conf.store->label;
}

int
mirror_pause(struct mirror *m, struct slu_err *err)
{
	const slu_time now = clock_boot(m->conf.clock);

	if (m->conf.goes_on && !m->conf.goes_on(m->conf.arg))
		return slu_fail(err, SLU_ECANCELED, "canceled");
	if (now - m->good > m->conf.patience)
		return slu_fail(err, SLU_EDOWN, "the store does not answer: %.200s", waits_for(m));
	clock_wait(m->conf.clock, &m->changed, &m->mtx,
		   time_add(clock_mono(m->conf.clock), PAUSE));
	return 0;
}

/* ---- Commits ---- */

/* The log continues where it ended, or begins the next segment. */
static bool
continues(const struct cache *c, uint32_t segment, uint32_t offset)
{
	if (offset == 0)
		return c->end_segment == 0 || segment == c->end_segment + 1;
	return segment == c->end_segment && offset == c->end_offset;
}

static void
wrote(void *arg, uint32_t segment, uint32_t offset, struct slice bytes)
{
	struct mirror *const m = arg;
	const struct body_piece piece = { segment, offset, bytes };

	body_add(&m->body, &piece);
	pthread_mutex_lock(&m->mtx);
	m->misplaced |= !continues(&m->cache, segment, offset);
	if (cache_wrote(&m->cache, line_facts(m->line).last + 1, segment, offset, bytes.n))
		m->body.places.failed = true;
	pthread_mutex_unlock(&m->mtx);
}

static void
recycled(void *arg, uint32_t segment)
{
	struct mirror *const m = arg;

	pthread_mutex_lock(&m->mtx);
	cache_recycled(&m->cache, segment);
	pthread_mutex_unlock(&m->mtx);
}

const struct wal_mirror *
mirror_hook(struct mirror *m)
{
	m->hook = (struct wal_mirror){
		.behind = m->conf.front,
		.mend = mirror_mend,
		.wrote = wrote,
		.recycled = recycled,
		.arg = m,
	};
	return &m->hook;
}

/* Under mtx. MIRROR-3: segments that are recycled now went after their copies were confirmed. */
static int
append(struct mirror *m, slu_time time, struct slu_err *err)
{
	const uint64_t begin = cache_begin(&m->cache);

	if (m->over)
		return slu_fail(err, m->why.code, "%s", m->why.text);
	if (begin && begin <= line_facts(m->line).last)
		line_begin(m->line, begin);
	m->busy = m->unsent = true;
	m->stored = false;
	m->time = time;
	m->last = (struct slu_err){ 0 };
	m->sent = m->good = clock_boot(m->conf.clock); /* a replay before may have taken long */
	mirror_pump(m);
	return m->over ? slu_fail(err, m->why.code, "%s", m->why.text) : 0;
}

static int
refuse_misplaced(struct mirror *m, struct slu_err *err)
{
	mirror_distrust(m);
	return slu_fail(err, SLU_ECORRUPT, "%s: the folder does not end where the line ends",
			m->conf.folder);
}

/* MIRROR-6 */
static int
prove(struct mirror *m, slu_time time, struct slu_err *err)
{
	int rc = 0;

	pthread_mutex_lock(&m->mtx);
	m->stored = false;
	if (m->wanted || (m->conf.is_fresh && !m->conf.is_fresh(m->conf.arg, line_facts(m->line).proved))) {
		m->wanted = false;
		buf_clear(&m->text);
		rc = append(m, time, err);
	}
	pthread_mutex_unlock(&m->mtx);
	return rc;
}

void
mirror_want_group(struct mirror *m)
{
	m->wanted = true;
}

int
mirror_commit(struct mirror *m, slu_time time, struct slu_err *err)
{
	int rc;

	if (m->body.n == 0)
		return prove(m, time, err);
	if (m->misplaced)
		return refuse_misplaced(m, err);
	buf_clear(&m->text);
	rc = body_encode(&m->body, &m->text);
	if (rc)
		return slu_fail(err, rc, "out of memory");
	body_clear(&m->body);
	m->wanted = false;
	pthread_mutex_lock(&m->mtx);
	rc = append(m, time, err);
	pthread_mutex_unlock(&m->mtx);
	return rc;
}

/* Under mtx. */
static int
check(const struct mirror *m, struct slu_err *err)
{
	if (m->over && !m->stored)
		return slu_fail(err, m->why.code, "%s", m->why.text);
	if (!m->busy)
		return 0;
	(void)slu_fail(err, SLU_EDOWN, "%s", waits_for(m));
	return MIRROR_BUSY;
}

int
mirror_check(struct mirror *m, struct slu_err *err)
{
	int rc;

	pthread_mutex_lock(&m->mtx);
	rc = check(m, err);
	pthread_mutex_unlock(&m->mtx);
	return rc;
}

int
mirror_wait(struct mirror *m, slu_time most, struct slu_err *err)
{
	const slu_time until = time_add(clock_boot(m->conf.clock), most);
	int rc = 0;

	pthread_mutex_lock(&m->mtx);
	while (m->busy && !rc && clock_boot(m->conf.clock) < until)
		rc = mirror_pause(m, err);
	pthread_mutex_unlock(&m->mtx);
	return rc ? rc : mirror_check(m, err);
}

slu_time
mirror_rest(struct mirror *m)
{
	return m->pool ? store_pool_rest(m->pool) : 0;
}

void
mirror_distrust(struct mirror *m)
{
	struct slu_err err;

	pthread_mutex_lock(&m->mtx);
	if (m->cache.conf.disk && !mirror_is_whole(m))
		(void)cache_distrust(&m->cache, &err); /* the next open finds the damage again */
	pthread_mutex_unlock(&m->mtx);
}

int
mirror_clock(struct mirror *m, slu_time *wall, struct slu_err *err)
{
	enum store_result r;
	int rc = 0;

	pthread_mutex_lock(&m->mtx);
	m->good = clock_boot(m->conf.clock);
	pthread_mutex_unlock(&m->mtx);
	while ((r = store_clock(m->conf.store, wall, err)) == STORE_FAILED && !rc) {
		pthread_mutex_lock(&m->mtx);
		m->last = *err;
		rc = mirror_pause(m, err);
		pthread_mutex_unlock(&m->mtx);
	}
	return r == STORE_OK ? 0 : rc ? rc
				      : SLU_EDOWN;
}

uint64_t
mirror_put_epoch(struct mirror *m)
{
	uint64_t epoch;

	pthread_mutex_lock(&m->mtx);
	epoch = m->line ? line_facts(m->line).put_epoch : 0;
	pthread_mutex_unlock(&m->mtx);
	return epoch;
}

struct mirror_facts
mirror_facts(struct mirror *m)
{
	struct mirror_facts f;

	pthread_mutex_lock(&m->mtx);
	f = (struct mirror_facts){
		.took = m->took,
		.sent = m->busy ? m->sent : 0,
		.bytes = m->busy ? m->text.n : 0,
		.fetched = m->fetched,
		.trusted = m->trusted,
		.opened = m->opened,
		.whole = m->was_whole,
		.superseded = m->superseded,
	};
	if (m->line)
		f.line = line_facts(m->line);
	pthread_mutex_unlock(&m->mtx);
	return f;
}
