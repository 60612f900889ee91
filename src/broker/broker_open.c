/*
 * broker_open.c - opens shards, adds shards, closes all.
 */
#include "base/mem.h"
#include "engine/spaces.h"
#include "broker/broker_private.h"
#include "broker/outbox.h"
#include "broker/layout.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* ---- Lanes ---- */

static bool
note_progress(void *arg, uint64_t done, uint64_t all)
{
	struct broker_progress *const p = arg;

	atomic_store(&p->done, done);
	atomic_store(&p->all, all);
	return !p->stop || !p->stop();
}

static void
note_given(void *arg, uint64_t id)
{
	struct broker *const b = arg;

	(void)idgen_lift(&b->ids, id, NULL); /* a number that is not an id was not given */
}

struct lane_at {
	struct broker *b;
	uint32_t index;
};

static void
note_left(void *arg, struct slice space, struct slice queue)
{
	const struct lane_at *const at = arg;

	broker_note_left(at->b, at->index, space, queue);
}

/* The settings of the engine of a lane. */
static int
lane_storage(struct broker *b, struct broker_shard *s, uint32_t lane,
	     const struct broker_shard_conf *conf, char *folder, size_t size,
	     struct engine_conf *out, struct slu_err *err)
{
	*out = conf->storage;
	if (out->folder && s->lanes > 1) {
		const int n = snprintf(folder, size, "%s/%u", out->folder, lane);

		if (n >= (int)size)
			return slu_fail(err, SLU_EINVAL, "invalid folder: the name is too long");
		out->folder = folder;
	}
	out->meter = (struct meter_lane){ &s->meter, lane };
	out->quota = &b->quota;
	out->lane = lane;
	out->lanes = s->lanes;
	out->given = note_given;
	out->given_arg = b;
	return 0;
}

static int
open_lane(struct broker *b, struct broker_shard *s, uint32_t lane,
	  const struct broker_shard_conf *conf, struct broker_progress *progress,
	  struct slu_err *err)
{
	const uint32_t index = s->first + lane;
	struct lane_at at = { b, index };
	struct engine_conf storage;
	struct outbox *outbox = NULL;
	char folder[4096];
	struct lane *made;
	int rc = lane_storage(b, s, lane, conf, folder, sizeof folder, &storage, err);

	if (!rc)
		rc = outbox_new(&outbox, b, index, err);
	if (rc)
		return rc;
	storage.home = outbox_home;
	storage.home_arg = outbox;
	storage.left = note_left;
	storage.left_arg = &at;
	if (progress) {
		atomic_store(&progress->shard, index);
		storage.reading = note_progress;
		storage.reading_arg = progress;
	}
	made = mem_aligned(_Alignof(struct lane), sizeof *made);
	rc = made ? lane_open(made, conf->engine, &storage, b->clock, index, &b->open, err)
		  : slu_fail(err, SLU_ENOMEM, "no memory for shard %s", s->name);
	if (rc) {
		outbox_free(outbox);
		mem_free(made);
		return rc;
	}
	made->follows = b->follows;
	made->remote = b->remote;
	made->notice = b->notice;
	b->lanes[index] = made;
	b->shard_of[index] = s;
	outbox_start(outbox, made);
	return 0;
}

static void
end_lane(struct broker *b, struct lane *s)
{
	while (b->by_hand && lane_round(s))
		;
	lane_join(s);
}

static int
release_lane(struct broker *b, uint32_t lane)
{
	struct outbox *const outbox = b->lanes[lane]->outbox;
	const int rc = lane_release(b->lanes[lane]);

	outbox_free(outbox);
	mem_free(b->lanes[lane]);
	b->lanes[lane] = NULL;
	return rc;
}

/* ---- Shards ---- */

const struct broker_shard *
broker_find_shard(const struct broker *b, const char *name)
{
	const uint32_t open = broker_lanes(b);

	for (uint32_t i = 0; i < open; i += b->shard_of[i]->lanes)
		if (strcmp(b->shard_of[i]->name, name) == 0)
			return b->shard_of[i];
	return NULL;
}

static int
name_lanes(const struct broker *b, struct broker_shard *s, struct slu_err *err)
{
	const char **const labels = mem_array(s->lanes, sizeof *labels);
	int rc = labels ? 0 : SLU_ENOMEM;

	for (uint32_t i = 0; !rc && i < s->lanes; i++) {
		char text[METER_LABELS]; /* always fits */

		if (b->named)
			(void)snprintf(text, sizeof text, "shard=\"%s\",lane=\"%u\"", s->name, i);
		else
			(void)snprintf(text, sizeof text, "shard=\"%u\"", i);
		labels[i] = memcpy(s->labels[i], text, sizeof text);
	}
	if (!rc)
		rc = meter_init(&s->meter, s->lanes, labels, s->name);
	mem_free(labels);
	return rc ? slu_fail(err, SLU_ENOMEM, "no memory for shard %s", s->name) : 0;
}

/* BROKER-6, BROKER-7 */
static int
name_marks(struct broker_shard *s, const uint8_t uuid[static BROKER_UUID], struct slu_err *err)
{
	char text[2 * BROKER_UUID + 1];

	s->marks = mem_array(s->lanes, sizeof *s->marks);
	if (!s->marks)
		return slu_fail(err, SLU_ENOMEM, "no memory for shard %s", s->name);
	for (unsigned i = 0; i < BROKER_UUID; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", uuid[i]);
	for (uint32_t i = 0; i < s->lanes; i++)
		(void)snprintf(s->marks[i], sizeof s->marks[i], "%s/%" PRIu32, text, i);
	s->bits = (uint32_t)uuid[0] | (uint32_t)uuid[1] << 8;
	return 0;
}

static int
make_shard(const struct broker *b, const struct broker_shard_conf *conf,
	   struct broker_shard **out, struct slu_err *err)
{
	const uint32_t first = broker_lanes(b);
	const uint32_t lanes = conf->lanes ? conf->lanes : 1;
	const char *const name = conf->name ? conf->name : "default";
	struct broker_shard *s;

	if (lanes > BROKER_LANES_MAX - first)
		return slu_fail(err, SLU_EINVAL, "too many shards: shard %s has %u lanes, %u are open; expected at most %d",
				name, lanes, first, BROKER_LANES_MAX);
	s = mem_zalloc(sizeof *s + (size_t)lanes * METER_LABELS);
	if (!s)
		return slu_fail(err, SLU_ENOMEM, "no memory for shard %s", name);
	assert(strlen(name) < sizeof s->name);
	memcpy(s->name, name, strlen(name) + 1);
	s->standard = conf->name == NULL;
	s->first = first;
	s->lanes = lanes;
	s->by_namespace = conf->by_namespace;
	*out = s;
	if (conf->store && name_marks(s, conf->store, err))
		return SLU_ENOMEM;
	return name_lanes(b, s, err);
}

static void
free_shard(struct broker_shard *s)
{
	if (!s)
		return;
	meter_release(&s->meter);
	mem_free(s->marks);
	mem_free(s);
}

static int
start_lane(struct broker *b, struct lane *s, struct slu_err *err)
{
	int rc = 0;

	if (s->engine->ops->commit) {
		rc = standin_start(&b->standin, b->clock, b->lanes, &b->open, err);
		s->standin = &b->standin;
	}
	return rc ? rc : lane_start(s, err);
}

static int
start_lanes(struct broker *b, uint32_t first, uint32_t n, struct slu_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && !b->by_hand && i < n; i++)
		rc = start_lane(b, b->lanes[first + i], err);
	return rc;
}

/* No other thread has seen the shard. */
static void
undo_shard(struct broker *b, struct broker_shard *s, uint32_t opened)
{
	for (uint32_t i = 0; i < opened; i++)
		lane_close(b->lanes[s->first + i]);
	for (uint32_t i = 0; i < opened; i++) {
		end_lane(b, b->lanes[s->first + i]);
		(void)release_lane(b, s->first + i); /* the first error says more */
	}
	free_shard(s);
}

static int
lift_ids(struct broker *b, const struct broker_shard *s, struct slu_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < s->lanes; i++)
		rc = idgen_lift(&b->ids, b->lanes[s->first + i]->highest_id, err);
	return rc;
}

/* LAYOUT-1. Only the log engine has a folder. */
static int
check_layout(const struct broker_shard *s, const struct broker_shard_conf *conf,
	     struct slu_err *err)
{
	const struct engine_conf *const at = &conf->storage;
	const char *const setting = conf->name ? "poolSize" : "--shards";

	if (!at->folder || at->disk || !conf->engine->durable || conf->engine->shared)
		return 0;
	return layout_check(at->folder, s->lanes, conf->embedded ? NULL : setting, err);
}

/* Opens all lanes of a shard, or none. A lane that is added to a running broker runs before it is listed. */
static int
open_shard(struct broker *b, const struct broker_shard_conf *conf,
	   struct broker_progress *progress, struct slu_err *err)
{
	const bool serves = atomic_load(&b->routes) != NULL;
	struct broker_shard *s = NULL;
	uint32_t opened = 0;
	int rc = make_shard(b, conf, &s, err);

	if (!rc)
		rc = check_layout(s, conf, err);
	for (; !rc && opened < s->lanes; opened += rc == 0)
		rc = open_lane(b, s, opened, conf, progress, err);
	if (!rc)
		rc = lift_ids(b, s, err);
	if (!rc && serves)
		rc = start_lanes(b, s->first, s->lanes, err);
	if (rc) {
		undo_shard(b, s, opened);
		return rc;
	}
	if (s->marks)
		b->stored = true;
	atomic_store_explicit(&b->open, s->first + s->lanes, memory_order_release);
	return 0;
}

static int
open_shards(struct broker *b, const struct broker_shard_conf *shards, unsigned n,
	    struct broker_progress *progress, struct slu_err *err)
{
	int rc = 0;

	for (unsigned i = 0; !rc && i < n; i++)
		if (!broker_find_shard(b, shards[i].name ? shards[i].name : "default"))
			rc = open_shard(b, &shards[i], progress, err);
	return rc;
}

/* ---- Open ---- */

int
broker_open(struct broker **out, const struct broker_conf *conf, struct slu_err *err)
{
	struct broker *b = mem_zalloc(sizeof *b);
	struct routes *routes = NULL;
	int rc;

	assert(conf->n_shards > 0);
	if (!b) {
		shardmap_free(conf->map);
		return slu_fail(err, SLU_ENOMEM, "no memory for the broker");
	}
	b->by_hand = conf->by_hand;
	b->hand = conf->hand;
	b->remote = conf->remote;
	b->notice = conf->notice;
	b->named = conf->map != NULL;
	b->clock = conf->clock ? conf->clock : &clock_system;
	list_init(&b->left);
	pthread_mutex_init(&b->stop, NULL); /* cannot fail with these attributes */
	rc = idgen_init(&b->ids, b->clock, conf->node, 0, err);
	if (!rc)
		rc = spaces_new(&b->quota.spaces, err);
	if (!rc)
		rc = broker_open_follows(b, conf->shards[0].storage.log, err);
	if (!rc)
		rc = open_shards(b, conf->shards, conf->n_shards, conf->progress, err);
	if (rc)
		shardmap_free(conf->map);
	else
		rc = routes_new(b, conf->map, &routes, err);
	if (!rc)
		broker_routes_use(b, routes);
	if (!rc)
		rc = start_lanes(b, 0, broker_lanes(b), err);
	if (rc) {
		(void)broker_close(b); /* the first error says more */
		return rc;
	}
	broker_finish_left(b);
	*out = b;
	return 0;
}

int
broker_routes_new(struct broker *b, struct shardmap *map, const struct broker_shard_conf *shards,
		  unsigned n, struct routes **out, struct slu_err *err)
{
	int rc = 0;

	pthread_mutex_lock(&b->stop);
	b->named = true;
	if (b->stopped || b->draining)
		rc = slu_fail(err, SLU_ECLOSED, "the broker is stopping");
	if (!rc)
		rc = open_shards(b, shards, n, NULL, err);
	broker_finish_left(b); /* also of shards that were opened before another failed */
	pthread_mutex_unlock(&b->stop);
	if (!rc)
		return routes_new(b, map, out, err);
	shardmap_free(map);
	return rc;
}

/* ---- Close ---- */

static void
end_waits(struct broker *b, void (*end)(struct lane *s))
{
	b->waits_end = true;
	pthread_mutex_lock(&b->stop); /* shards that are being opened are listed, or never will be */
	for (uint32_t i = 0; i < broker_lanes(b); i++)
		end(b->lanes[i]);
	pthread_mutex_unlock(&b->stop);
}

void
broker_drain(struct broker *b)
{
	b->draining = true;
	end_waits(b, lane_drain);
	if (b->remote)
		b->remote->end_waits(b->remote->arg);
}

void
broker_end_waits(struct broker *b)
{
	end_waits(b, lane_hurry);
	if (b->remote)
		b->remote->end_waits(b->remote->arg);
}

slu_time
broker_round(struct broker *b)
{
	slu_time first = SLU_NEVER;

	assert(b->by_hand);
	for (uint32_t i = 0; i < broker_lanes(b); i++)
		if (lane_sleeps(b->lanes[i]) <= clock_boot(b->clock))
			(void)lane_round(b->lanes[i]);   /* only a stop ends its rounds */
	for (uint32_t i = 0; i < broker_lanes(b); i++) { /* one shard may have woken another */
		const slu_time until = lane_sleeps(b->lanes[i]);

		first = until < first ? until : first;
	}
	return first;
}

/* BROKER-2: one caller stops the broker, the others wait for the lock. */
void
broker_stop(struct broker *b)
{
	pthread_mutex_lock(&b->stop);
	if (!b->stopped) {
		moverepair_stop(b->moverepair);
		for (uint32_t i = 0; i < broker_lanes(b); i++)
			lane_close(b->lanes[i]);
		if (b->remote)
			b->remote->stop(b->remote->arg);
		for (uint32_t i = 0; i < broker_lanes(b); i++)
			end_lane(b, b->lanes[i]);
		standin_stop(&b->standin);
		moverepair_free(b->moverepair);
		b->moverepair = NULL;
		b->stopped = true;
	}
	pthread_mutex_unlock(&b->stop);
}

static int
release_shards(struct broker *b)
{
	uint32_t open = broker_lanes(b);
	int rc = 0;

	for (uint32_t i = 0; i < open; i++) {
		const int one = release_lane(b, i);

		rc = rc ? rc : one;
	}
	for (uint32_t i = 0; i < open;) {
		struct broker_shard *const s = b->shard_of[i];

		i += s->lanes;
		free_shard(s);
	}
	return rc;
}

int
broker_close(struct broker *b)
{
	int rc;

	if (!b)
		return 0;
	broker_stop(b);
	rc = release_shards(b);
	follows_free(b->follows);
	broker_forget_left(b);
	broker_routes_free(atomic_load(&b->routes));
	pthread_mutex_destroy(&b->stop);
	spaces_free(b->quota.spaces);
	mem_free(b);
	return rc;
}
