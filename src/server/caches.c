#include "server/caches.h"

#include "base/clock.h"
#include "base/disk.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/log/standby.h"

#include <pthread.h>

enum {
	ROOM = 256 << 20, /* CACHES-1, in bytes */
	RATE = 32 << 20,  /* CACHES-2, in bytes a second */
	NO_SHARD = -1
};

#define PAUSE (10 * SLU_MIN) /* CACHES-1 */

struct cached {
	char *folder;    /* NULL = unknown */
	bool taken;      /* a lane has the folder, or wants it; under mtx */
	bool changed;    /* a lane has had the folder since the thread looked; under mtx */
	bool empty;      /* nothing is left to remove */
	bool kept;       /* CACHES-4 */
	slu_time since;  /* since when the node does not need the folder; SLU_NEVER = it does */
	slu_time follow; /* when the folder follows again */
	uint64_t span;   /* logengine_standby.span */
};

struct caches {
	struct caches_conf conf;
	slu_time pause_until; /* of the thread: CACHES-1 */

	pthread_mutex_t mtx;
	pthread_cond_t changed;

	/* shared, under mtx */
	struct cached *shards; /* of the thread, but for what is marked */
	int64_t at;            /* the shard whose folder the thread uses; NO_SHARD = none */
	bool started, stopping;
	pthread_t thread;
};

static slu_time
now(void)
{
	return clock_mono(&clock_system);
}

/* ---- One folder ---- */

/* Under mtx. */
static bool
is_wanted(const struct caches *c)
{
	return c->stopping || c->shards[c->at].taken;
}

/* Waits as long as the bytes take at RATE. */
static bool
goes_on(void *arg, uint64_t bytes)
{
	struct caches *const c = arg;
	const slu_time until = now() + (slu_time)(bytes * (SLU_SEC / SLU_MS) / RATE) * SLU_MS;
	bool wanted;

	pthread_mutex_lock(&c->mtx);
	while (!(wanted = is_wanted(c)) && now() < until)
		clock_wait(&clock_system, &c->changed, &c->mtx, until);
	pthread_mutex_unlock(&c->mtx);
	return !wanted;
}

/* The thread has the folder of shard c->at. */
static int
use(struct caches *c, bool follow, struct slu_err *err)
{
	struct cached *const s = &c->shards[c->at];
	struct logengine_standby standby = {
		.store = c->conf.store,
		.uuid = c->conf.uuid,
		.shard = (uint32_t)c->at,
		.folder = s->folder,
		.log = c->conf.log,
		.goes_on = goes_on,
		.arg = c,
		.span = s->span,
	};
	const int rc = follow ? logengine_standby_follow(&standby, err) : logengine_standby_empty(&standby, err);

	s->span = standby.span;
	if (standby.bytes)
		log_info(c->conf.log, "shard fetched ahead", F_U64("shard", standby.shard),
			 F_U64("bytes", standby.bytes));
	if (!rc && !follow)
		log_info(c->conf.log, "cache emptied", F_U64("shard", standby.shard));
	return rc;
}

/* Waits for the next time after a failure: the store or the disk may be back then. */
static void
note(struct caches *c, int rc, bool follow, const struct slu_err *err)
{
	struct cached *const s = &c->shards[c->at];

	s->empty = !rc && !follow;
	s->kept = rc == SLU_ECORRUPT || rc == SLU_EINVAL;
	if (rc == SLU_EFULL)
		c->pause_until = now() + PAUSE;
	if (s->kept)
		log_warn(c->conf.log, "cache not touched", F_U64("shard", (uint64_t)c->at), F_STR("why", err->text));
}

static void
visit(struct caches *c, uint32_t shard, bool follow)
{
	struct slu_err err = { 0 };
	int rc;

	pthread_mutex_lock(&c->mtx);
	c->at = c->shards[shard].taken || c->stopping ? NO_SHARD : (int64_t)shard;
	pthread_mutex_unlock(&c->mtx);
	if (c->at == NO_SHARD)
		return;
	rc = use(c, follow, &err);
	note(c, rc, follow, &err);
	pthread_mutex_lock(&c->mtx);
	c->at = NO_SHARD;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->mtx);
}

/* ---- All folders ---- */

/* Whether the disk of the folder has little room. */
static bool
is_short(const char *path)
{
	const int folder = disk_posix.ops->folder(&disk_posix, path);
	const int64_t room = folder < 0 ? ROOM : disk_posix.ops->room(&disk_posix, folder);

	if (folder >= 0)
		disk_posix.ops->close(&disk_posix, folder);
	return room >= 0 && room < ROOM;
}

/* The node does not need the folder. */
static void
leave(struct caches *c, uint32_t shard, bool paused)
{
	struct cached *const s = &c->shards[shard];

	if (s->since == SLU_NEVER)
		s->since = now();
	if (!s->empty && (paused || now() - s->since >= c->conf.settle))
		visit(c, shard, false);
}

/* If a lane has had the folder, what the thread knew of it does not hold any more. */
static void
forget_changed(struct caches *c, struct cached *s)
{
	bool changed;

	pthread_mutex_lock(&c->mtx);
	changed = s->changed;
	s->changed = s->taken;
	pthread_mutex_unlock(&c->mtx);
	if (!changed)
		return;
	s->since = SLU_NEVER;
	s->empty = s->kept = false;
	s->span = 0;
}

static void
attend(struct caches *c, uint32_t shard)
{
	struct cached *const s = &c->shards[shard];
	const enum members_role role = c->conf.role(c->conf.arg, shard);
	bool paused;

	forget_changed(c, s);
	if (role == MEMBERS_OPEN || s->kept)
		return;
	if (is_short(s->folder))
		c->pause_until = now() + PAUSE;
	paused = now() < c->pause_until;
	if (role == MEMBERS_OTHER || paused) {
		leave(c, shard, paused);
		return;
	}
	s->since = SLU_NEVER;
	if (now() >= s->follow) {
		s->follow = now() + c->conf.lease;
		visit(c, shard, true);
	}
}

static void *
run(void *arg)
{
	struct caches *const c = arg;

	pthread_mutex_lock(&c->mtx);
	while (!c->stopping) {
		clock_wait(&clock_system, &c->changed, &c->mtx, now() + c->conf.lease / 5);
		pthread_mutex_unlock(&c->mtx);
		for (uint32_t i = 0; i < c->conf.shards; i++)
			if (c->shards[i].folder)
				attend(c, i);
		pthread_mutex_lock(&c->mtx);
	}
	pthread_mutex_unlock(&c->mtx);
	return NULL;
}

/* ---- Open and close ---- */

int
caches_new(struct caches **out, const struct caches_conf *conf, struct slu_err *err)
{
	struct caches *const c = mem_zalloc(sizeof *c);

	if (!c)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	c->conf = *conf;
	c->at = NO_SHARD;
	c->shards = mem_array(conf->shards, sizeof *c->shards);
	if (!c->shards) {
		mem_free(c);
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	}
	for (uint32_t i = 0; i < conf->shards; i++)
		c->shards[i].since = SLU_NEVER;
	pthread_mutex_init(&c->mtx, NULL);    /* cannot fail with these attributes */
	pthread_cond_init(&c->changed, NULL); /* nor this */
	*out = c;
	return 0;
}

int
caches_start(struct caches *c, struct slu_err *err)
{
	if (pthread_create(&c->thread, NULL, run, c) != 0)
		return slu_fail(err, SLU_EDOWN, "cannot start a thread for the caches of shards");
	c->started = true;
	return 0;
}

void
caches_stop(struct caches *c)
{
	if (!c->started)
		return;
	pthread_mutex_lock(&c->mtx);
	c->stopping = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->mtx);
	pthread_join(c->thread, NULL);
	c->started = false;
}

void
caches_free(struct caches *c)
{
	if (!c)
		return;
	caches_stop(c);
	for (uint32_t i = 0; i < c->conf.shards; i++)
		mem_free(c->shards[i].folder);
	mem_free(c->shards);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->mtx);
	mem_free(c);
}

void
caches_waits(struct caches *c, uint32_t shard, const char *folder)
{
	mem_free(c->shards[shard].folder);
	c->shards[shard].folder = folder ? mem_strdup(folder) : NULL; /* without memory the folder is left alone */
}

void
caches_takes(struct caches *c, uint32_t shard)
{
	pthread_mutex_lock(&c->mtx);
	c->shards[shard].taken = c->shards[shard].changed = true;
	pthread_cond_broadcast(&c->changed);
	while (c->at == (int64_t)shard)
		clock_wait(&clock_system, &c->changed, &c->mtx, SLU_NEVER);
	pthread_mutex_unlock(&c->mtx);
}

void
caches_closed(struct caches *c, uint32_t shard)
{
	pthread_mutex_lock(&c->mtx);
	c->shards[shard].taken = false;
	pthread_mutex_unlock(&c->mtx);
}
