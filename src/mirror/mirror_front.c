/*
 * mirror_front.c - MIRROR-8: carries the log of a front folder to the line.
 */
#include "mirror/mirror_private.h"

#include "base/hash.h"
#include "store/pool.h"

#include <inttypes.h>

/* ---- Open ---- */

static int
refuse_front(const struct mirror *m, struct slu_err *err)
{
	return slu_fail(err, SLU_EINVAL,
			"%s is a front folder, which may have more than the store; expected the setting "
			"`store.front: folder`, or another folder",
			m->conf.folder);
}

/* FRONT-1 */
static int
begin_front(struct mirror *m, int folder, struct slu_err *err)
{
	int rc = hash_random(m->front.uuid, sizeof m->front.uuid, err);

	m->front.state = FRONT_FILLING;
	return rc ? rc : frontfolder_write(&m->front, m->conf.disk, folder, err);
}

int
mirror_front_open(struct mirror *m, int folder, struct slu_err *err)
{
	int rc = frontfolder_read(&m->front, m->conf.disk, folder, err);

	if (rc)
		return rc;
	if (!m->conf.front)
		return mirror_is_whole(m) ? refuse_front(m, err) : 0;
	m->was_whole = mirror_is_whole(m);
	carrier_init(&m->carrier, m->conf.disk, folder);
	return 0;
}

int
mirror_front_begin(struct mirror *m, int folder, struct slu_err *err)
{
	const bool was_left = m->front.state == FRONT_LEFT;
	const bool was_filling = m->front.state == FRONT_FILLING;
	int rc = was_left || was_filling ? cache_distrust(&m->cache, err) : 0;

	if (rc)
		return rc;
	if (m->conf.front)
		return m->front.state == FRONT_NONE || was_left ? begin_front(m, folder, err) : 0;
	return was_left ? frontfolder_remove(m->conf.disk, folder, err) : 0;
}

/* The newest group is not pinned: the folder was given up, and its last messages are not in the line. */
bool
mirror_front_may_take(struct mirror *m, const struct line_group *newest)
{
	struct slu_err err;

	m->superseded = true;
	(void)slu_fail(&err, SLU_EBUSY,
		       "%s: the shard was taken without the front folder %.100s at group %" PRIu64
		       "; hand in what the folder has with `sluice admin store rejoin`",
		       m->conf.shard, m->conf.folder, newest->number);
	mirror_give_up(m, &err);
	return false;
}

int
mirror_front_opened(struct mirror *m, struct slu_err *err)
{
	const struct carry_place home = { m->cache.end_segment, m->cache.end_offset };
	int rc = 0;

	atomic_store(&m->home, mirror_pack(home));
	m->goal = home;
	if (mirror_is_whole(m))
		return 0;
	rc = cache_sync(&m->cache, err);
	if (rc)
		return rc;
	m->front.state = FRONT_WHOLE;
	return frontfolder_write(&m->front, m->conf.disk, m->cache.conf.folder, err);
}

/* ---- Carrying ---- */

/* Tells the cache which pieces the next group of the line has. */
static int
note_pieces(struct mirror *m)
{
	const uint64_t group = line_facts(m->line).last + 1;
	struct body_reader r;
	struct body_piece piece;
	struct slu_err err;
	int rc = body_open(&r, buf_slice(&m->text), &err);

	while (!rc && body_next(&r, &piece))
		rc = cache_wrote(&m->cache, group, piece.segment, piece.offset, piece.bytes.n);
	return rc;
}

static int
read_next(struct mirror *m, struct slu_err *err)
{
	int rc = carrier_next(&m->carrier, mirror_unpack(m->home), m->goal, m->conf.carry_bytes, &m->body,
			      &m->on_way, err);

	buf_clear(&m->text);
	if (!rc && body_encode(&m->body, &m->text))
		rc = slu_fail(err, SLU_ENOMEM, "out of memory");
	body_clear(&m->body);
	if (!rc && note_pieces(m))
		rc = slu_fail(err, SLU_ENOMEM, "out of memory");
	return rc;
}

void
mirror_carry_on(struct mirror *m)
{
	const uint64_t begin = cache_begin(&m->cache);
	struct slu_err err;

	if (!m->busy || !line_is_ready(m->line) || store_pool_rest(m->pool) > 0)
		return;
	if (read_next(m, &err)) {
		mirror_give_up(m, &err);
		return;
	}
	if (begin && begin <= line_facts(m->line).last)
		line_begin(m->line, begin);
	m->sent = clock_boot(m->conf.clock);
	(void)line_append(m->line, buf_slice(&m->text), m->on_way.time); /* `lost` follows if it fails */
}

void
mirror_carried(struct mirror *m)
{
	atomic_store(&m->home, mirror_pack(m->on_way.place));
	atomic_fetch_add(&m->carried, m->on_way.groups);
	m->busy = carry_is_before(m->on_way.place, m->goal);
	m->news = !m->busy;
	if (!m->busy)
		atomic_store(&m->goal_reached, true);
}

static int
refuse_short(const struct mirror *m, struct slu_err *err)
{
	return slu_fail(err, SLU_ECORRUPT, "%s: the log ends before the place that the store has", m->conf.folder);
}

void
mirror_carry(struct mirror *m, struct carry_place to)
{
	const struct carry_place home = mirror_unpack(m->home);
	struct slu_err err;

	pthread_mutex_lock(&m->mtx);
	if (carry_is_before(to, home) && !m->over) {
		(void)refuse_short(m, &err);
		mirror_give_up(m, &err);
	}
	if (!m->over) {
		m->goal = to;
		m->busy = carry_is_before(home, to);
		atomic_store(&m->goal_reached, !m->busy);
		mirror_pump(m);
	}
	pthread_mutex_unlock(&m->mtx);
}

void
mirror_nudge(struct mirror *m)
{
	pthread_mutex_lock(&m->mtx);
	mirror_pump(m);
	pthread_mutex_unlock(&m->mtx);
}

void
mirror_pause_until(struct mirror *m, slu_time until)
{
	pthread_mutex_lock(&m->mtx);
	while (m->busy && !m->over && clock_mono(m->conf.clock) < until)
		clock_wait(m->conf.clock, &m->changed, &m->mtx, until);
	pthread_mutex_unlock(&m->mtx);
}

struct mirror_home
mirror_home(struct mirror *m)
{
	return (struct mirror_home){
		.place = mirror_unpack(atomic_load(&m->home)),
		.groups = atomic_load(&m->carried),
		.reached = atomic_load(&m->goal_reached),
	};
}

int
mirror_count(struct mirror *m, struct carry_place to, uint64_t *groups, struct slu_err *err)
{
	const struct carry_place home = mirror_unpack(m->home);
	struct carrier c;
	struct carried done = { 0 };
	int rc;

	*groups = 0;
	if (carry_is_before(to, home))
		return refuse_short(m, err);
	carrier_init(&c, m->conf.disk, m->cache.conf.folder);
	rc = carrier_next(&c, home, to, UINT64_MAX, NULL, &done, err);
	carrier_release(&c);
	*groups = done.groups;
	return rc;
}
