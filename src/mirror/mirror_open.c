/*
 * mirror_open.c - the settings of the store; taking the shard; mending the folder.
 */
#include "mirror/mirror_private.h"

#include "base/hash.h"
#include "base/mem.h"
#include "members/settings.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum {
	SPAN_GROUPS = 500,
	LOOSE_GROUPS = 1000,
	SPAN_BYTES = 16 << 20,
	CARRY_BYTES = 1 << 20,
	ASK = MIRROR_SHOTS - 1 /* the slot of requests that no line makes */
};

#define PATIENCE (30 * SLU_SEC)
#define SPAN_AGE (10 * SLU_MIN)

/* ---- Settings ---- */

static void
on_asked(struct store_request *r)
{
	struct mirror *const m = CONTAINER(r, struct mirror_shot, request)->mirror;

	pthread_mutex_lock(&m->mtx);
	m->busy = false;
	if (r->result == STORE_FAILED)
		m->last = r->err;
	else
		m->good = clock_boot(m->conf.clock);
	mirror_landed(m);
	pthread_mutex_unlock(&m->mtx);
}

/* Executes one request and waits for its answer. */
static int
ask(struct mirror *m, struct line_request *r, struct line_answer *a, struct slu_err *err)
{
	const struct store_request *const done = &m->shots[ASK].request;
	int rc;

	r->slot = ASK;
	m->busy = true;
	rc = mirror_post(m, r, 0, on_asked, err);
	while (m->busy && !rc)
		rc = mirror_pause(m, err);
	if (rc)
		return rc;
	if (done->result == STORE_REFUSED)
		return slu_fail(err, done->err.code, "%s", done->err.text);
	*a = on_store_answer(done);
	return 0;
}

static int
propose(const struct mirror *m, struct settings *s, struct slu_err *err)
{
	int rc;

	*s = (struct settings){ .version = 1, .format = SETTINGS_FIRST, .shards = m->conf.shards };
	rc = hash_random(s->uuid, sizeof s->uuid, err);
	return rc ? rc : hash_random(s->secret, sizeof s->secret, err);
}

static uint64_t
draw(void *arg)
{
	uint64_t random = 0;

	(void)arg;
	(void)hash_random(&random, sizeof random, NULL); /* fails only before it ever succeeded */
	return random;
}

static int
use_settings(struct mirror *m, const struct settings_search *s, struct slu_err *err)
{
	if (s->failed)
		return slu_fail(err, s->err.code, "%s", s->err.text);
	if (s->settings.format > SETTINGS_FORMAT)
		return slu_fail(err, SLU_EINVAL,
				"the store has format %" PRIu32 ", which is newer than this program's %d",
				s->settings.format, SETTINGS_FORMAT);
	if (s->settings.shards != m->conf.shards)
		return slu_fail(err, SLU_EINVAL, "invalid number of shards: %" PRIu32 "; the store has %" PRIu32,
				m->conf.shards, s->settings.shards);
	memcpy(m->uuid, s->settings.uuid, sizeof m->uuid);
	return 0;
}

/* Under mtx. */
static int
find_settings(struct mirror *m, struct slu_err *err)
{
	struct settings_search s = { 0 };
	struct settings proposal;
	struct line_request r;
	struct line_answer a;
	int rc;

	rc = propose(m, &proposal, err);
	if (!rc)
		settings_search_init(&s, &proposal, &m->conf.retry);
	while (!rc && !s.found && !s.failed) {
		if (!settings_search_next(&s, clock_boot(m->conf.clock), &r)) {
			rc = mirror_pause(m, err);
			continue;
		}
		rc = ask(m, &r, &a, err);
		if (!rc)
			settings_search_reply(&s, &a, clock_boot(m->conf.clock), draw(m));
	}
	return rc ? rc : use_settings(m, &s, err);
}

/* ---- Open and close ---- */

void
mirror_boot(char boot[static CACHE_BOOT])
{
	const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	uint64_t random = draw(NULL);
	ssize_t n = -1;

	if (file >= 0) {
		n = read(file, boot, CACHE_BOOT - 1);
		close(file);
	}
	if (n <= 0)
		snprintf(boot, CACHE_BOOT, "%" PRIx64, random);
	else
		boot[n] = 0;
}

static void
fill_conf(struct mirror *m, const struct mirror_conf *conf)
{
	struct mirror_conf *const c = &m->conf;

	*c = *conf;
	c->disk = c->disk ? c->disk : &disk_posix;
	c->clock = c->clock ? c->clock : &clock_system;
	c->shards = c->shards ? c->shards : 1;
	c->patience = c->patience ? c->patience : PATIENCE;
	c->span_groups = c->span_groups ? c->span_groups : SPAN_GROUPS;
	c->loose_groups = c->loose_groups ? c->loose_groups : LOOSE_GROUPS;
	c->span_bytes = c->span_bytes ? c->span_bytes : SPAN_BYTES;
	c->span_age = c->span_age ? c->span_age : SPAN_AGE;
	c->carry_bytes = c->carry_bytes ? c->carry_bytes : CARRY_BYTES;
	if (!c->retry.max)
		c->retry = (struct slu_backoff){ .kind = SLU_BACKOFF_EXPONENTIAL, .jitter = SLU_JITTER_FULL, .base = 10 * SLU_MS, .max = SLU_SEC };
	if (c->front)
		snprintf(m->boot, sizeof m->boot, "front"); /* a front folder is synced: a restart changes nothing */
	else if (c->boot)
		snprintf(m->boot, sizeof m->boot, "%s", c->boot);
	else
		mirror_boot(m->boot);
}

static struct mirror *
new_mirror(const struct mirror_conf *conf)
{
	struct mirror *const m = mem_zalloc(sizeof *m);

	if (!m)
		return NULL;
	fill_conf(m, conf);
	body_init(&m->body);
	buf_init(&m->text, SIZE_MAX / 2);
	for (unsigned i = 0; i < MIRROR_SHOTS; i++)
		store_request_init(&m->shots[i].request);
	pthread_mutex_init(&m->mtx, NULL);    /* cannot fail with these attributes */
	pthread_cond_init(&m->changed, NULL); /* nor this */
	m->good = clock_boot(m->conf.clock);
	m->goal_reached = true;
	return m;
}

/* The names of other objects of a store begin with these. */
static bool
is_reserved(const char *shard)
{
	return strcmp(shard, "node") == 0 || strcmp(shard, "settings") == 0;
}

static int
check_shard(const char *shard, struct slu_err *err)
{
	if (strlen(shard) <= LINE_SHARD_MAX && store_name_is_valid(shard) && !strchr(shard, '/') &&
	    !is_reserved(shard))
		return 0;
	return slu_fail(err, SLU_EINVAL,
			"invalid name of a shard in a store: %.100s; expected letters, digits, . _ -",
			shard);
}

/* The pool and the settings, unless the caller has them. */
static int
join_store(struct mirror *m, struct slu_err *err)
{
	const struct store_pool_conf pool = {
		.store = m->conf.store,
		.threads = MIRROR_THREADS,
		.max = 2 * MIRROR_SHOTS,
		.clock = m->conf.clock,
	};
	int rc = 0;

	if (!m->conf.pool)
		rc = store_pool_open(&m->own_pool, &pool, err);
	if (rc)
		return rc;
	m->pool = m->own_pool ? m->own_pool : m->conf.pool;
	if (m->conf.uuid) {
		memcpy(m->uuid, m->conf.uuid, sizeof m->uuid);
		return 0;
	}
	pthread_mutex_lock(&m->mtx);
	rc = find_settings(m, err);
	pthread_mutex_unlock(&m->mtx);
	return rc;
}

int
mirror_open(struct mirror **out, const struct mirror_conf *conf, struct slu_err *err)
{
	struct mirror *m;
	int rc;

	rc = check_shard(conf->shard, err);
	if (rc)
		return rc;
	m = new_mirror(conf);
	if (!m)
		return slu_fail(err, SLU_ENOMEM, "no memory for a mirror");
	m->breaks = atomic_load(&conf->store->breaks);
	rc = join_store(m, err);
	if (rc)
		mirror_close(m);
	else
		*out = m;
	return rc;
}

/* Others may share the pool. */
static void
end_requests(struct mirror *m)
{
	pthread_mutex_lock(&m->mtx);
	m->closing = true;
	pthread_mutex_unlock(&m->mtx);
	for (unsigned i = 0; i < MIRROR_SHOTS && m->pool; i++)
		store_pool_cancel(m->pool, &m->shots[i].request);
	pthread_mutex_lock(&m->mtx);
	while (m->flying)
		clock_wait(m->conf.clock, &m->changed, &m->mtx, SLU_NEVER);
	pthread_mutex_unlock(&m->mtx);
}

void
mirror_close(struct mirror *m)
{
	if (!m)
		return;
	end_requests(m);
	store_pool_close(m->own_pool);
	line_free(m->line);
	cache_close(&m->cache);
	heads_close(&m->heads);
	carrier_release(&m->carrier);
	if (m->leaves)
		m->conf.disk->ops->close(m->conf.disk, m->leaves - 1);
	for (unsigned i = 0; i < MIRROR_SHOTS; i++)
		store_request_release(&m->shots[i].request);
	body_release(&m->body);
	buf_release(&m->text);
	pthread_cond_destroy(&m->changed);
	pthread_mutex_destroy(&m->mtx);
	mem_free(m);
}

/* ---- What the line reports: under mtx ---- */

/* LINE-15: the line lacks a group that it had confirmed. The folder may be the only copy. */
static void
went_back(struct mirror *m)
{
	struct slu_err err;

	(void)slu_fail(&err, SLU_ECORRUPT,
		       "%s: the store went back: it lacks group %" PRIu64 ", which it had confirmed to %.100s; "
		       "expected a newer copy of the store, or another folder",
		       m->conf.shard, m->cache.seen.number, m->conf.folder);
	mirror_give_up(m, &err);
}

static void
on_reads(void *arg, uint64_t from)
{
	struct mirror *const m = arg;
	const uint64_t known = m->cache.known.number;
	struct slu_err err;

	m->from = from;
	m->trusted = known && from == known + 1;
	if (m->trusted)
		return;
	if (known && from <= known)
		went_back(m);
	else if (mirror_is_whole(m))
		cache_forget(&m->cache);
	else if (heads_wipe(&m->heads, &err) || cache_wipe(&m->cache, &err))
		mirror_give_up(m, &err);
}

/* Without its head a group cannot be put again. */
static void
keep_head(struct mirror *m, uint64_t number, struct slice object, bool flush)
{
	struct slu_err err;

	if (heads_add(&m->heads, number, object, &err) || (flush && heads_flush(&m->heads, &err)))
		log_warn(m->conf.log, "heads of groups not written", F_STR("why", err.text));
}

static void
on_forgets(void *arg, uint64_t number, struct slice object, bool last)
{
	struct mirror *const m = arg;
	struct slu_err err;

	keep_head(m, number, object, last);
	if (last)
		(void)heads_begin(&m->heads, line_facts(m->line).begin, &err); /* the next call tries again */
}

static void
on_again(void *arg, uint64_t number, struct buf *out)
{
	const struct mirror *const m = arg;

	heads_get(&m->heads, number, out);
}

static void
on_restored(void *arg, uint64_t first, uint64_t n)
{
	const struct mirror *const m = arg;

	log_warn(m->conf.log, "store went back, groups put again", F_STR("shard", m->conf.shard),
		 F_U64("first", first), F_U64("groups", n));
}

static void
on_read(void *arg, const struct line_group *g, struct slice object)
{
	struct mirror *const m = arg;
	struct slu_err err;

	m->fetched++;
	if (g->number == m->cache.seen.number && !line_mark_eq(g->mark, m->cache.seen.mark))
		went_back(m);
	if (m->over)
		return;
	if (mirror_is_whole(m) ? cache_match(&m->cache, g, &err)
			       : cache_take(&m->cache, g, g->number == m->from, &err))
		mirror_give_up(m, &err);
	else
		keep_head(m, g->number, object, false);
	if (g->number == m->from && g->body.n == 0)
		m->from++; /* an opening of line_reopen has the number for which a piece was written */
}

/* MIRROR-9: the folder may be broken. Then its next open reads more groups. */
static int
save_whole(struct mirror *m, const struct line_known *known, struct slu_err *err)
{
	const int rc = cache_save(&m->cache, known, err);

	return m->conf.leaves ? 0 : rc;
}

static void
on_opened(void *arg)
{
	struct mirror *const m = arg;
	const struct line_facts facts = line_facts(m->line);
	const struct line_known known = { facts.last, facts.mark };
	struct slu_err err;

	if (facts.last <= m->cache.seen.number) /* the opening has the number of a confirmed group */
		went_back(m);
	if (m->over)
		return;
	if ((mirror_is_whole(m) ? save_whole(m, &known, &err)
				: cache_finish(&m->cache, &known, &err)) ||
	    (m->conf.front && mirror_front_opened(m, &err))) {
		mirror_give_up(m, &err);
		return;
	}
	if (heads_flush(&m->heads, &err))
		log_warn(m->conf.log, "heads of groups not written", F_STR("why", err.text));
	m->opened = true;
	mirror_tick(m);
}

static void
on_confirmed(void *arg, const struct line_known *group)
{
	struct mirror *const m = arg;
	struct slu_err err;

	m->took = clock_boot(m->conf.clock) - m->sent;
	if (m->conf.front) {
		mirror_carried(m);
	} else {
		m->busy = false;
		m->stored = m->news = true;
	}
	if (cache_save(&m->cache, group, &err)) /* the next open fetches more */
		log_warn(m->conf.log, "mirror file not written", F_STR("why", err.text));
}

/* Whether the line may have the commit that is on its way. */
static bool
is_unknown(const struct mirror *m)
{
	return m->opened && m->busy && !m->unsent && !line_facts(m->line).refuted;
}

static void
on_lost(void *arg, const struct slu_err *why)
{
	struct mirror *const m = arg;
	struct slu_err err = *why;

	if (m->opened)
		log_error(m->conf.log, "shard lost", F_STR("why", why->text));
	if (err.code == SLU_EBUSY && is_unknown(m))
		err.code = SLU_EUNKNOWN;
	mirror_give_up(m, &err);
}

/* ---- Mending ---- */

/* MIRROR-4 */
static bool
is_own(void *arg, const struct line_group *newest)
{
	const struct mirror *const m = arg;

	return memcmp(newest->life, m->conf.life, LINE_LIFE) == 0;
}

static bool
may_take(void *arg, const struct line_group *newest)
{
	struct mirror *const m = arg;

	if (mirror_is_whole(m))
		return mirror_front_may_take(m, newest);
	if (m->conf.may_take)
		return m->conf.may_take(m->conf.arg, newest);
	return !m->conf.only_own || is_own(arg, newest);
}

static int
new_line(struct mirror *m, struct slu_err *err)
{
	struct line_conf lc = {
		.shard = m->conf.shard,
		.known = m->cache.known,
		.span_groups = m->conf.span_groups,
		.span_bytes = m->conf.span_bytes,
		.loose_groups = m->conf.loose_groups,
		.removes = m->conf.store->ops->remove_all ? STORE_REMOVES : 1,
		.retry = m->conf.retry,
		.random = draw,
		.may_take = may_take,
		.reads = on_reads,
		.read = on_read,
		.opened = on_opened,
		.confirmed = on_confirmed,
		.forgets = on_forgets,
		.again = on_again,
		.restored = on_restored,
		.lost = on_lost,
		.arg = m,
	};
	static const uint8_t zeros[LINE_LIFE];
	int rc = 0;

	lc.pinned = m->conf.front;
	lc.unpins = m->conf.without_front;
	lc.left = m->conf.left;
	memcpy(lc.life, m->conf.front ? m->front.uuid : m->conf.life, LINE_LIFE);
	if (memcmp(lc.life, zeros, LINE_LIFE) == 0)
		rc = hash_random(lc.life, sizeof lc.life, err);
	if (rc)
		return rc;
	return line_new(&m->line, &lc) ? slu_fail(err, SLU_ENOMEM, "no memory for a line") : 0;
}

/* Under mtx: takes the shard; the line hands its groups to the cache. */
static int
take(struct mirror *m, struct slu_err *err)
{
	int rc = new_line(m, err);

	if (rc)
		return rc;
	m->good = clock_boot(m->conf.clock);
	line_take(m->line);
	mirror_pump(m);
	while (!m->opened && !m->over && !rc)
		rc = mirror_pause(m, err);
	if (!rc && m->over)
		rc = slu_fail(err, m->why.code, "%s", m->why.text);
	return rc;
}

int
mirror_mend(void *arg, struct disk *disk, int folder, struct slu_err *err)
{
	struct mirror *const m = arg;
	struct cache_conf cc = {
		.disk = m->conf.disk,
		.folder = folder,
		.path = m->conf.folder,
		.log = m->conf.log,
		.shard = m->conf.shard,
		.boot = m->boot,
	};
	int rc;

	(void)disk; /* its syncs do nothing */
	memcpy(cc.uuid, m->uuid, sizeof cc.uuid);
	pthread_mutex_lock(&m->mtx);
	rc = mirror_front_open(m, folder, err);
	if (!rc)
		rc = cache_open(&m->cache, &cc, err);
	if (!rc)
		rc = mirror_front_begin(m, folder, err);
	if (!rc)
		rc = heads_open(&m->heads, cc.disk, folder, err);
	if (!rc)
		rc = take(m, err);
	pthread_mutex_unlock(&m->mtx);
	if (!rc)
		log_info(m->conf.log, "shard taken", F_STR("shard", m->conf.shard),
			 F_U64("epoch", line_facts(m->line).epoch), F_U64("fetched", m->fetched));
	return rc;
}
