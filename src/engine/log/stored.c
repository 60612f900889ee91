/*
 * stored.c - a log engine whose log lives in a store (LOGENGINE-11).
 */
#include "engine/log/logengine_private.h"

#include "base/option/option.h"
#include "engine/formats.h"
#include "engine/tenure.h"
#include "mirror/cache.h"
#include "mirror/frontfolder.h"

#include <stdio.h>

static const char *const fronts[] = {
	[LOGENGINE_FRONT_NONE] = "none",
	[LOGENGINE_FRONT_FOLDER] = "folder",
	NULL,
};

static const char *const downs[] = {
	[LOGENGINE_DOWN_REFUSE] = "refuse",
	[LOGENGINE_DOWN_SLOW] = "slow",
	NULL,
};

/* clang-format off */
static const struct option rows[] = {
	{ .key = "store", .kind = &text_kind, .offset = offsetof(struct logengine_options, store), .standard = "", .server_key = "store",
	  .value = "URL", .doc = "where the log lives, for several machines: file:///srv/sluice, postgres://HOST/DATABASE, s3://BUCKET or azure://ACCOUNT/CONTAINER; the folder of the shard is then a cache; empty: in the folder" },
	{ .key = "storePatience", .kind = &time_kind, .offset = offsetof(struct logengine_options, patience), .standard = "1s", .min = SLU_MS, .max = SLU_HOUR, .server_key = "store.patience",
	  .value = "TIME", .doc = "how long a request waits for the store; after that its outcome is unknown (503), and new requests get 503 until the store answers" },
	{ .key = "storeUnsafe", .kind = &bool_kind, .offset = offsetof(struct logengine_options, unsafe), .standard = "false", .server_key = "store.unsafe",
	  .value = "", .doc = "accept a store on a file system that is not known to be safe for several machines, or on another machine without TLS" },
	{ .key = "storeDelay", .kind = &time_kind, .offset = offsetof(struct logengine_options, delay), .standard = "0s", .max = SLU_MIN, .server_key = "store.delay",
	  .value = "TIME", .doc = "wait so long before each request to the store, to try a store that is far away" },
	{ .key = "storePuts", .kind = &count_kind, .offset = offsetof(struct logengine_options, puts), .standard = "0", .max = 1000000, .server_key = "store.puts",
	  .value = "N", .doc = "puts to the store each second; if requests need more, they wait longer and share puts; 0: 20 on s3 and azure, others without a limit" },
	{ .key = "storeFront", .kind = &word_kind, .offset = offsetof(struct logengine_options, front), .standard = "none", .words = fronts, .server_key = "store.front",
	  .value = "none|folder", .doc = "folder: the folder of the shard answers, synced, and the log goes to the store behind; the shard stays on this server" },
	{ .key = "frontFlushInterval", .kind = &time_kind, .offset = offsetof(struct logengine_options, flush_interval), .standard = "1s", .min = SLU_MS, .max = SLU_HOUR, .server_key = "front.flush.interval",
	  .value = "TIME", .doc = "with store.front: the log goes to the store this often" },
	{ .key = "frontFlushBytes", .kind = &size_kind, .offset = offsetof(struct logengine_options, flush_bytes), .standard = "1M", .min = 4096, .max = 8 << 20, .server_key = "front.flush.bytes",
	  .value = "BYTES", .doc = "with store.front: the log goes to the store sooner if it has grown by so much; about the size of a group in the store" },
	{ .key = "frontMax", .kind = &size_kind, .offset = offsetof(struct logengine_options, front_max), .standard = "1G", .max = INT64_MAX, .server_key = "front.max",
	  .value = "BYTES", .doc = "with store.front: if the store lacks so many bytes of a shard, new messages wait for store.patience and then get 503; 0: no limit" },
	{ .key = "frontDrain", .kind = &time_kind, .offset = offsetof(struct logengine_options, front_drain), .standard = "5s", .max = SLU_HOUR, .server_key = "front.drain",
	  .value = "TIME", .doc = "with store.front: how long a stop waits until the store has everything" },
	{ .key = "frontDown", .kind = &word_kind, .offset = offsetof(struct logengine_options, front_down), .standard = "refuse", .words = downs, .server_key = "front.down",
	  .value = "refuse|slow", .doc = "with store.front, if the folder cannot be written or its disk is full: refuse requests (503), or leave the folder and let requests wait for the store" },
	{ .key = "frontSpare", .kind = &text_kind, .offset = offsetof(struct logengine_options, front_spare), .standard = "", .server_key = "front.spare",
	  .value = "FOLDER", .doc = "with front.down: slow: the cache of the shards that have left their folder; on another disk, or in memory" },
	{ .key = "prefetchBatch", .kind = &count_kind, .offset = offsetof(struct logengine_options, prefetch_batch), .standard = "50", .max = 1000, .server_key = "prefetch.batch",
	  .value = "N", .doc = "with --store: when a consumer claims messages of a queue, payloads over 1 MiB of the next N messages are fetched into the folder, if the folder lacks them; 0: off" },
	{ .key = "prefetchBytes", .kind = &size_kind, .offset = offsetof(struct logengine_options, prefetch_bytes), .standard = "64M", .max = 1ull << 40, .server_key = "prefetch.bytes",
	  .value = "BYTES", .doc = "at most this many bytes of payloads ahead of a consumer" },
};
/* clang-format on */

#define END_PATIENCE (5 * SLU_SEC) /* of a shard that is given up */

static const char *
place(const void *values)
{
	return ((const struct logengine_options *)values)->store;
}

static int
try_store(const struct engine_conf *conf, struct slu_err *err)
{
	const struct logengine_options *const own = conf->options;

	if (!own || !own->store)
		return 0;
	return store_check_url(conf->stores, &(struct store_conf){ .url = own->store, .unsafe = own->unsafe }, err);
}

const struct engine_options logengine_options = {
	.rows = rows,
	.n = sizeof rows / sizeof rows[0],
	.size = sizeof(struct logengine_options),
	.try = try_store,
	.place = place,
};

static const char *
url_of(const struct engine_conf *conf)
{
	const struct logengine_options *const own = conf->options;

	return own ? own->store : NULL;
}

bool
logengine_is_stored(const struct logengine *l, const struct engine_conf *conf)
{
	return l->more.store || url_of(conf);
}

bool
logengine_has_front(const struct logengine *l, const struct engine_conf *conf)
{
	const struct logengine_options *const own = conf->options;

	if (l->leave.left)
		return false;
	return own && own->store ? own->front == LOGENGINE_FRONT_FOLDER : l->more.front > 0;
}

bool
logengine_is_pinned(const struct logengine *l, const struct engine_conf *conf)
{
	struct disk *const disk = conf->disk ? conf->disk : &disk_posix;
	const int folder = logengine_has_front(l, conf) ? disk->ops->folder(disk, conf->folder) : -1;
	bool pinned;

	if (folder < 0)
		return false;
	pinned = frontfolder_is_log(disk, folder);
	disk->ops->close(disk, folder);
	return pinned;
}

slu_time
logengine_store_patience(const struct logengine *l, const struct engine_conf *conf)
{
	const struct logengine_options *const own = conf->options;

	return own && own->store && !logengine_has_front(l, conf) ? own->patience : 0;
}

/* Sets l->stored.front from the settings. */
static void
set_front(struct logengine *l, const struct engine_conf *conf)
{
	const struct logengine_options *const own = conf->options;
	struct logengine_front *const f = &l->stored.front;

	*f = (struct logengine_front){
		.on = logengine_has_front(l, conf),
		.slow = logengine_spare(l, conf),
		.interval = SLU_SEC,
		.bytes = l->more.front,
		.patience = SLU_SEC,
		.drain = SLU_SEC,
	};
	if (!own || !own->store)
		return;
	*f = (struct logengine_front){
		.on = logengine_has_front(l, conf),
		.slow = logengine_spare(l, conf),
		.interval = own->flush_interval,
		.bytes = own->flush_bytes,
		.max = own->front_max,
		.drain = own->front_drain,
		.patience = own->patience,
	};
}

/* ---- Lag ---- */

static void
note_lag(struct logengine *l, slu_time since, uint64_t bytes)
{
	atomic_store_explicit(&l->lag.groups, since != 0, memory_order_relaxed);
	atomic_store_explicit(&l->lag.bytes, bytes, memory_order_relaxed);
	atomic_store_explicit(&l->lag.since, since, memory_order_relaxed);
}

bool
logengine_store_lag(struct engine *e, struct engine_lag *out)
{
	const struct logengine_lag *const lag = &CONTAINER(e, struct logengine, engine)->lag;
	const slu_time since = atomic_load_explicit(&lag->since, memory_order_relaxed);

	*out = (struct engine_lag){ 0 };
	if (since)
		*out = (struct engine_lag){ atomic_load_explicit(&lag->groups, memory_order_relaxed), atomic_load_explicit(&lag->bytes, memory_order_relaxed), since };
	return lag->in_store;
}

/* ---- Open and close ---- */

static int
open_store(struct logengine *l, const struct engine_conf *conf, struct slu_err *err)
{
	const struct logengine_options *const own = conf->options;
	struct store_conf sc = { .url = url_of(conf), .log = conf->log };
	struct store *const shared = conf->tenure ? conf->tenure->store : NULL;

	if (l->more.store || shared) {
		l->stored.store = l->more.store ? l->more.store : shared;
		return 0;
	}
	if (!conf->stores)
		return slu_fail(err, SLU_EINVAL, "invalid store: %s; this program has no stores", sc.url);
	sc.unsafe = own->unsafe;
	sc.delay = own->delay;
	if (store_open(&l->stored.store, conf->stores, &sc, err) != STORE_OK)
		return err->code;
	l->stored.own_store = true;
	return 0;
}

static bool
goes_on(void *arg)
{
	const struct logengine *const l = arg;

	return !l->conf || !l->conf->reading || l->conf->reading(l->conf->reading_arg, 0, 1);
}

static void
on_news(void *arg)
{
	const struct logengine *const l = arg;

	if (l->stored.poke)
		l->stored.poke(l->stored.poke_arg);
}

static bool
may_take(void *arg, const struct line_group *newest)
{
	const struct logengine *const l = arg;

	return l->stored.tenure->may_take(l->stored.tenure->arg, l->stored.lane, newest);
}

static bool
is_fresh(void *arg, slu_time proved)
{
	const struct logengine *const l = arg;

	return l->stored.tenure->is_fresh(l->stored.tenure->arg, proved);
}

/* The node decides when to take the shard, and may take it again. */
static void
use_tenure(struct logengine *l, const struct engine_conf *conf, struct mirror_conf *mc)
{
	l->stored.tenure = conf->tenure;
	l->stored.lane = conf->lane;
	if (!conf->tenure)
		return;
	mc->only_own = false;
	mc->pool = conf->tenure->pool;
	mc->uuid = conf->tenure->uuid;
	memcpy(mc->life, conf->tenure->life, LINE_LIFE);
	mc->may_take = may_take;
	mc->is_fresh = is_fresh;
}

/* The shards of a store have numbers; names of the settings may differ from node to node. */
static void
name_line(struct logengine *l, const struct engine_conf *conf)
{
	snprintf(l->stored.line, sizeof l->stored.line, "%u", conf->lane);
}

static int
check_spare(const struct engine_conf *conf, struct slu_err *err)
{
	const struct logengine_options *const own = conf->options;

	if (!own || own->front != LOGENGINE_FRONT_FOLDER || own->front_down != LOGENGINE_DOWN_SLOW || own->front_spare)
		return 0;
	return slu_fail(err, SLU_EINVAL, "invalid front.spare: empty; expected a folder on another disk, for front.down: slow");
}

int
logengine_store_open(struct logengine *l, const struct engine_conf *conf, struct slu_err *err)
{
	static const uint8_t zeros[LINE_LIFE];
	struct mirror_conf mc = {
		.shard = l->stored.line,
		.shards = conf->lanes > 1 ? conf->lanes : 1,
		.folder = conf->folder,
		.disk = conf->disk,
		.clock = l->more.store_clock,
		.span_groups = l->more.span_groups,
		.log = conf->log,
		.only_own = l->owned,
		.boot = l->more.boot,
		.poke = on_news,
		.goes_on = goes_on,
		.arg = l,
	};
	int rc = 0;

	if (memcmp(l->life, zeros, sizeof zeros) == 0)
		rc = hash_random(l->life, sizeof l->life, err);
	if (rc)
		return rc;
	memcpy(mc.life, l->life, sizeof mc.life);
	name_line(l, conf);
	set_front(l, conf);
	rc = check_spare(conf, err);
	if (rc)
		return rc;
	mc.front = l->stored.front.on;
	mc.without_front = l->more.without_front;
	mc.left = l->leave.left ? l->leave.uuid : NULL;
	mc.leaves = l->leave.broken && !l->leave.left;
	mc.carry_bytes = l->stored.front.bytes;
	use_tenure(l, conf, &mc);
	l->stored.poke = conf->poke;
	l->stored.poke_arg = conf->poke_arg;
	rc = open_store(l, conf, err);
	if (!rc && l->stored.front.on && conf->tenure && conf->tenure->need_format)
		rc = conf->tenure->need_format(conf->tenure->arg, FORMATS_PINNED, err);
	if (rc)
		return rc;
	mc.store = l->stored.store;
	return mirror_open(&l->stored.mirror, &mc, err);
}

static void
note_epoch(struct logengine *l)
{
	const uint64_t put = l->stored.mirror ? mirror_put_epoch(l->stored.mirror) : 0;

	l->put_epoch = put > l->put_epoch ? put : l->put_epoch;
}

void
logengine_store_end(struct logengine *l)
{
	struct slu_err err = { 0 };
	int rc;

	if (l->failed || !l->stored.mirror || l->stored.front.on)
		return;
	mirror_want_group(l->stored.mirror);
	rc = mirror_commit(l->stored.mirror, l->now, &err);
	if (!rc)
		rc = mirror_wait(l->stored.mirror, END_PATIENCE, &err);
	if (rc)
		log_warn(l->log, "no last group", F_STR("why", err.text));
}

void
logengine_store_give(struct logengine *l)
{
	note_epoch(l);
	note_lag(l, 0, 0);
	mirror_close(l->stored.mirror);
	l->stored.mirror = NULL;
}

void
logengine_store_close(struct logengine *l)
{
	logengine_store_give(l);
	if (l->stored.own_store)
		store_close(l->stored.store);
	l->stored = (struct logengine_stored){ 0 };
}

int
logengine_refuse_cache(const struct engine_conf *conf, struct slu_err *err)
{
	struct disk *const disk = conf->disk ? conf->disk : &disk_posix;
	const int folder = disk->ops->folder(disk, conf->folder);
	bool is_cache;

	if (folder < 0)
		return 0; /* opening the log reports it */
	is_cache = cache_is_one(disk, folder);
	disk->ops->close(disk, folder);
	if (!is_cache)
		return 0;
	return slu_fail(err, SLU_EINVAL,
			"%s is the cache of a store; expected the setting `store`, or another folder",
			conf->folder);
}

/* ---- Running ---- */

int
logengine_store_now(struct logengine *l, slu_time *now, struct slu_err *err)
{
	slu_time wall;
	const int rc = mirror_clock(l->stored.mirror, &wall, err);

	if (rc)
		return rc;
	/* At a reopen *now is the time of the shard, which came from the store. */
	*now = l->owned && *now > wall ? *now : wall;
	return 0;
}

void
logengine_store_begin(struct logengine *l)
{
	struct mirror *const m = l->stored.mirror;
	struct line_facts line;

	if (l->stored.front.on) {
		(void)logengine_files_begin(&l->files, l->stored.front.seq + 1); /* the next record is proof enough */
		return;
	}
	if (!m)
		return;
	line = mirror_facts(m).line;
	l->stored.epoch = line.epoch;
	l->stored.counter = ledger_counter(l->ledger);
	if (logengine_files_begin(&l->files, line.last + 1))
		mirror_want_group(m);
}

static int
send(struct logengine *l, struct slu_err *err)
{
	const int rc = mirror_commit(l->stored.mirror, l->now, err);
	const struct mirror_facts facts = mirror_facts(l->stored.mirror);

	l->stored.sent = !rc;
	note_lag(l, facts.sent, facts.bytes);
	return rc;
}

/* The group is confirmed, or lost. */
static int
settle(struct logengine *l, int rc)
{
	struct ledgerengine *const k = &l->ledgerengine;
	struct mirror_facts facts;

	l->stored.sent = false;
	note_lag(l, 0, 0);
	if (rc)
		return rc;
	facts = mirror_facts(l->stored.mirror);
	meter_time(&k->meter, METER_SYNC, facts.took);
	ledgerengine_stored(k, facts.took);
	if (facts.line.epoch != l->stored.epoch) { /* LOGENGINE-16 */
		k->copied_above = l->stored.counter;
		k->copied_upto = ledger_counter(l->ledger);
	}
	return 0;
}

int
logengine_store_commit(struct logengine *l, struct slu_err *err)
{
	int rc;

	if (!l->stored.mirror)
		return 0;
	if (l->stored.front.on)
		return logengine_front_commit(l, err);
	rc = l->stored.sent ? 0 : send(l, err);
	if (!rc)
		rc = mirror_check(l->stored.mirror, err);
	return rc == MIRROR_BUSY ? ENGINE_LATER : settle(l, rc);
}

int
logengine_store_wait(struct logengine *l, struct slu_err *err)
{
	int rc;

	if (!l->stored.mirror)
		return 0;
	if (l->stored.front.on)
		return logengine_front_opened(l, err);
	rc = mirror_commit(l->stored.mirror, l->now, err);
	return rc ? rc : mirror_wait(l->stored.mirror, SLU_NEVER, err);
}

slu_time
logengine_store_rest(struct engine *e)
{
	struct logengine *const l = CONTAINER(e, struct logengine, engine);

	if (l->stored.front.on)
		return logengine_front_rest(l);
	return l->stored.mirror ? mirror_rest(l->stored.mirror) : 0;
}

void
logengine_store_files(struct logengine *l)
{
	struct mirror_facts facts;

	if (!l->stored.mirror)
		return;
	facts = mirror_facts(l->stored.mirror);
	logengine_files_keep_in(&l->files, l->stored.store, l->stored.line, facts.line.epoch);
	logengine_files_set_poke(&l->files, l->stored.poke, l->stored.poke_arg);
	l->files.front = l->stored.front.on;
	if (!facts.trusted && !facts.whole)
		logengine_files_drop(&l->files);
}

/* The open failed because the folder is damaged: the next one fills it from the store. */
bool
logengine_store_refill(struct logengine *l, int rc)
{
	if (rc != SLU_ECORRUPT || !l->stored.mirror || l->refilled || l->stored.front.on ||
	    !mirror_facts(l->stored.mirror).opened) /* the store is damaged, not the folder */
		return false;
	l->refilled = true;
	mirror_distrust(l->stored.mirror);
	return true;
}
