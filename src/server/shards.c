#include "server/shards.h"

#include "base/log.h"
#include "base/mem.h"
#include "broker/layout.h"
#include "engine/log.h"
#include "engine/memory.h"
#include "server/place.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	FOLDER = 4096
};

/* What the shards of some settings were told. It lives as long as their engines. */
struct node_shards {
	struct node_shards *older;
	struct sharding *from;
	struct routes *next; /* prepared, not in use */
	unsigned n;
	struct one {
		struct redis_conf redis;
		char folder[FOLDER];
	} * ones;
	struct broker_shard_conf confs[];
};

/* Those of the library, and those that need more. */
static const struct engine_ops *const kept_in[] = { &engine_log, &engine_memory, &engine_redis,
						    NULL };

static const struct engine_ops *const engines_of_shards[] = {
	[SHARDING_REDIS] = &engine_redis,
	[SHARDING_LOG] = &engine_log,
	[SHARDING_MEMORY] = &engine_memory,
};

/* ---- Settings ---- */

static const struct engine_ops *
find_engine(const struct conf *conf, struct slu_err *err)
{
	const struct engine_ops *found = NULL;
	char names[128] = "";
	size_t n = 0;

	for (const struct engine_ops *const *e = kept_in; *e && n < sizeof names; e++) {
		if (strcmp((*e)->name, conf->engine) == 0)
			found = *e;
		n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "",
				      (*e)->name);
	}
	if (!found)
		slu_fail(err, SLU_EINVAL, "--engine %s: there is no such engine; there are: %s",
			 conf->engine, names);
	return found;
}

const struct engine_ops *
shards_standard(const struct node *n, struct slu_err *err)
{
	return n->hand ? n->hand->engine : find_engine(n->conf, err);
}

bool
shards_use_redis(const struct conf *conf)
{
	const struct engine_ops *const standard = find_engine(conf, NULL);
	const struct sharding *const s = conf->sharding;
	bool any = standard == &engine_redis && !sharding_is_used(conf);

	for (unsigned i = 0; sharding_is_used(conf) && i < s->n_shards; i++)
		any |= (s->shards[i]->line ? engines_of_shards[s->shards[i]->engine] : standard) ==
		       &engine_redis;
	return any;
}

unsigned
shards_lanes(const struct conf *conf)
{
	const struct sharding *const s = conf->sharding;
	unsigned lanes = 0;

	if (!sharding_is_used(conf))
		return conf->shards;
	for (unsigned i = 0; i < s->n_shards; i++)
		lanes += s->shards[i]->line ? s->shards[i]->pool : conf->shards;
	return lanes;
}

const char *
shards_engine(const struct conf *conf, const struct engine_ops *standard)
{
	const struct sharding *const s = conf->sharding;
	const char *name = NULL;

	if (!sharding_is_used(conf))
		return standard->name;
	for (unsigned i = 0; i < s->n_shards; i++) {
		const struct engine_ops *const e =
			s->shards[i]->line ? engines_of_shards[s->shards[i]->engine] : standard;

		if (name && strcmp(name, e->name) != 0)
			return "mixed";
		name = e->name;
	}
	return name;
}

/* ---- What shards are told ---- */

static struct engine_conf
storage_of(const struct node *n)
{
	static const enum engine_sync syncs[] = {
		[CONF_SYNC_ALWAYS] = ENGINE_SYNC,
		[CONF_SYNC_INTERVAL] = ENGINE_SYNC_INTERVAL,
		[CONF_SYNC_NONE] = ENGINE_SYNC_NONE,
	};

	return (struct engine_conf){
		.log = n->log,
		.sync = syncs[n->conf->sync.mode],
		.sync_interval = n->conf->sync.interval,
		.disk = n->hand ? n->hand->disk : NULL,
	};
}

static int
make_folder(const struct node *n, const char *folder, const char *what, struct slu_err *err)
{
	if (n->only_checks)
		return place_check(what, folder, PLACE_FOLDER, err);
	if (!n->hand && mkdir(folder, 0700) && errno != EEXIST)
		return slu_fail(err, SLU_EDOWN, "%s %s: %m", what, folder);
	return 0;
}

/* By the settings that are not of a shard: as if there were no others. */
static int
tell_standard(const struct node *n, struct one *one, struct broker_shard_conf *out,
	      struct slu_err *err)
{
	const struct conf *const conf = n->conf;

	*out = (struct broker_shard_conf){
		.engine = shards_standard(n, err),
		.lanes = conf->shards,
		.storage = storage_of(n),
	};
	if (!out->engine)
		return SLU_EINVAL;
	one->redis = (struct redis_conf){
		.wire = {
			.address = conf->redis_address,
			.username = conf->redis_username,
			.password = conf->redis_password,
			.tls = conf->redis_tls,
			.tls_ca = conf->redis_tls_ca,
			.tls_cert = conf->redis_tls_cert,
			.tls_key = conf->redis_tls_key,
			.tls_name = conf->redis_tls_name,
			.db = conf->redis_db,
			.timeout = conf->redis_timeout,
		},
		.prefix = conf->redis_prefix,
	};
	out->storage.redis = &one->redis;
	if (!n->hand && (!out->engine->durable || out->engine->shared))
		return 0;
	out->storage.folder = conf->data;
	return make_folder(n, conf->data, "--data", err);
}

static int
tell_folder(const struct node *n, const struct sharding_shard *s, struct one *one,
	    struct broker_shard_conf *out, struct slu_err *err)
{
	int rc = 0;

	if (s->folder)
		(void)snprintf(one->folder, sizeof one->folder, "%s", s->folder);
	else if (snprintf(one->folder, sizeof one->folder, "%s/%s", n->conf->data, s->name) >=
		 (int)sizeof one->folder)
		return slu_fail(err, SLU_EINVAL, "shard %s: the name of its folder is too long",
				s->name);
	out->storage.folder = one->folder;
	if (!s->folder)
		rc = make_folder(n, n->conf->data, "--data", err);
	if (n->only_checks && !s->folder && access(n->conf->data, F_OK))
		return rc; /* it would be made, and this one in it */
	return rc ? rc : make_folder(n, one->folder, "folder of a shard,", err);
}

static int
tell_named(const struct node *n, const struct sharding_shard *s, struct one *one,
	   struct broker_shard_conf *out, struct slu_err *err)
{
	*out = (struct broker_shard_conf){
		.name = s->name,
		.engine = engines_of_shards[s->engine],
		.lanes = s->pool,
		.storage = storage_of(n),
	};
	one->redis = (struct redis_conf){
		.wire = {
			.address = s->address,
			.username = s->username,
			.password = s->password,
			.tls = s->tls,
			.tls_ca = s->tls_ca,
			.tls_cert = s->tls_cert,
			.tls_key = s->tls_key,
			.tls_name = s->tls_name,
			.db = s->db,
			.timeout = s->timeout,
		},
		.prefix = s->prefix,
		.shard = s->name,
		.late = !n->broker, /* at a reload it is the new settings that are wrong */
	};
	out->storage.redis = &one->redis;
	return s->engine == SHARDING_LOG ? tell_folder(n, s, one, out, err) : 0;
}

static void
free_shards(struct node_shards *s)
{
	if (!s)
		return;
	sharding_unref(s->from);
	mem_free(s->ones);
	mem_free(s);
}

static int
tell_shards(const struct node *n, const struct conf *conf, struct node_shards **out,
	    struct slu_err *err)
{
	struct sharding *const from = conf->sharding;
	const unsigned many = sharding_is_used(conf) ? from->n_shards : 0;
	const unsigned room = many ? many : 1;
	struct node_shards *s =
		mem_zalloc(sizeof *s + room * sizeof(struct broker_shard_conf));
	int rc = 0;

	if (s)
		s->ones = mem_array(room, sizeof *s->ones);
	if (!s || !s->ones) {
		mem_free(s);
		return slu_fail(err, SLU_ENOMEM, "no memory for %u shards", room);
	}
	s->from = sharding_ref(from);
	for (; !rc && s->n < room; s->n++)
		rc = many && from->shards[s->n]->line
			     ? tell_named(n, from->shards[s->n], &s->ones[s->n], &s->confs[s->n], err)
			     : tell_standard(n, &s->ones[s->n], &s->confs[s->n], err);
	if (rc)
		free_shards(s);
	else
		*out = s;
	return rc;
}

static void
keep(struct node *n, struct node_shards *s)
{
	s->older = n->shards;
	n->shards = s;
}

static void
log_map(const struct node *n, const struct shardmap *m)
{
	char hash[17];

	(void)snprintf(hash, sizeof hash, "%016" PRIx64, shardmap_hash(m));
	log_info(n->log, "shard map", F_U64("version", shardmap_version(m)), F_STR("hash", hash),
		 F_U64("shards", shardmap_count(m)));
}

static void
log_warnings(const struct node *n, const struct sharding *s)
{
	for (unsigned i = 0; i < s->warnings.n; i++)
		log_warn(n->log, "setting is odd", F_STR("why", s->warnings.items[i]));
}

/* ---- Reload ---- */

/* M2 */
static void
tell_restarts(const struct node *n, const struct sharding *old, const struct sharding *next)
{
	for (unsigned i = 0; i < next->n_shards; i++) {
		const struct sharding_shard *const is = sharding_find(old, next->shards[i]->name);
		const char *const what = is ? sharding_differs(is, next->shards[i]) : NULL;

		if (what)
			log_warn(n->log, "setting needs a restart", F_STR("shard", is->name),
				 F_STR("key", what));
	}
}

/* M1. Is it to be replaced? */
static int
compare_maps(const struct node *n, const struct conf *next, bool *differs, struct slu_err *err)
{
	const struct shardmap *const is = broker_map(broker_routes(n->broker));
	struct shardmap *as_old;
	int rc;

	*differs = is || sharding_is_used(next);
	if (!is)
		return 0;
	rc = sharding_map(next, shardmap_version(is), &as_old, err);
	if (rc)
		return rc;
	*differs = shardmap_hash(as_old) != shardmap_hash(is);
	shardmap_free(as_old);
	if (next->sharding_version > shardmap_version(is)) {
		*differs = true;
		return 0;
	}
	if (!*differs && next->sharding_version == shardmap_version(is))
		return 0;
	return slu_fail(err, SLU_EINVAL, "sharding.version %u: it must be higher than %" PRIu64 ", "
					 "for %s",
			next->sharding_version, shardmap_version(is),
			*differs ? "the mapping differs" : "that is in force");
}

/* A value that was set by hand may name what the file has not. */
static int
check_standard(const struct conf *next, struct slu_err *err)
{
	if (!sharding_is_used(next) || sharding_find(next->sharding, next->sharding_default))
		return 0;
	return slu_fail(err, SLU_EINVAL, "sharding.defaultShard: there is no shard %s",
			next->sharding_default);
}

static int
prepare(void *arg, const struct conf *old, const struct conf *next, struct slu_err *err)
{
	struct node *const n = arg;
	struct node_shards *s = NULL;
	struct shardmap *map = NULL;
	bool differs;
	int rc = check_standard(next, err);

	if (!n->broker)
		return rc; /* it starts: what is in force then counts */
	if (!rc)
		rc = compare_maps(n, next, &differs, err);
	if (rc || !differs)
		return rc;
	tell_restarts(n, old->sharding, next->sharding);
	rc = tell_shards(n, next, &s, err);
	if (!rc)
		rc = sharding_map(next, next->sharding_version, &map, err);
	if (rc) {
		free_shards(s);
		return rc;
	}
	keep(n, s); /* whatever comes of it, engines may have been opened */
	return broker_routes_new(n->broker, map, s->confs, s->n, &s->next, err);
}

static void
commit(void *arg, const struct conf *now)
{
	struct node *const n = arg;

	(void)now; /* prepare has seen it */
	if (!n->shards || !n->shards->next)
		return;
	broker_routes_use(n->broker, n->shards->next);
	n->shards->next = NULL;
	log_map(n, broker_map(broker_routes(n->broker)));
	log_warnings(n, n->shards->from);
}

static void
abandon(void *arg)
{
	struct node *const n = arg;

	if (!n->shards)
		return;
	broker_routes_free(n->shards->next);
	n->shards->next = NULL;
}

/* ---- What the data folder holds ---- */

struct unused {
	const struct node *node;
	const struct node_shards *shards;
	unsigned used;
	unsigned n;
	char first[FOLDER]; /* that no shard uses */
};

static bool
is_used(const struct node_shards *s, const char *folder)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->confs[i].storage.folder && strcmp(s->confs[i].storage.folder, folder) == 0)
			return true;
	return false;
}

static void
see_logs(void *arg, const char *folder)
{
	struct unused *const u = arg;

	if (is_used(u->shards, folder)) {
		u->used++;
		return;
	}
	if (u->n++ == 0)
		(void)snprintf(u->first, sizeof u->first, "%s", folder);
	if (!u->node->only_checks)
		log_warn(u->node->log, "no shard uses the log in this folder", F_STR("folder", folder));
}

/* Would these settings open empty logs beside those that are there? M3 */
static int
check_data(const struct node *n, const struct node_shards *s, struct slu_err *err)
{
	const char *const data = n->conf->data;
	struct unused u = { .node = n, .shards = s };
	bool needs_data = false;
	int rc;

	for (unsigned i = 0; i < s->n; i++) {
		const char *const folder = s->confs[i].storage.folder;

		needs_data |= folder && strncmp(folder, data, strlen(data)) == 0;
	}
	if (n->hand || !needs_data)
		return 0;
	rc = layout_each(data, see_logs, &u, err);
	if (rc || u.n == 0 || u.used)
		return rc;
	return slu_fail(err, SLU_EINVAL,
			"%.100s holds messages, and no shard of these settings uses it; %s",
			u.first,
			strcmp(u.first, data) == 0
				? "name the shard `default` in sharding: docs/sharding.md"
				: "start with the --config that names this shard in redis.shards");
}

static int
check_layout(const struct broker_shard_conf *conf, struct slu_err *err)
{
	if (conf->engine != &engine_log)
		return 0;
	return layout_fits(conf->storage.folder, conf->lanes, conf->name ? "poolSize" : "--shards", err);
}

/* ---- Check ---- */

typedef int shards_fn(const struct node *n, const struct node_shards *s, struct slu_err *err);

/* Run check with what the shards of these settings are told. */
static int
with_shards(const struct conf *conf, shards_fn *check, struct slu_err *err)
{
	struct node *const n = mem_zalloc(sizeof *n);
	struct node_shards *s = NULL;
	int rc = n ? 0 : slu_fail(err, SLU_ENOMEM, "out of memory");

	if (!rc) {
		n->conf = conf;
		n->only_checks = true;
		rc = tell_shards(n, conf, &s, err);
	}
	if (!rc)
		rc = check(n, s, err);
	free_shards(s);
	mem_free(n);
	return rc;
}

static int
check_addresses(const struct node *n, const struct node_shards *s, struct slu_err *err)
{
	int rc = 0;

	(void)n; /* for who needs it */
	for (unsigned i = 0; !rc && i < s->n; i++)
		if (s->confs[i].engine == &engine_redis)
			rc = redis_check(&s->ones[i].redis, err);
	return rc;
}

int
shards_check(const struct conf *conf, struct slu_err *err)
{
	return with_shards(conf, check_addresses, err);
}

static int
check_stored(const struct node *n, const struct node_shards *s, struct slu_err *err)
{
	int rc = check_data(n, s, err);

	for (unsigned i = 0; !rc && i < s->n; i++)
		rc = check_layout(&s->confs[i], err);
	return rc;
}

int
shards_check_stored(const struct conf *conf, struct slu_err *err)
{
	return shards_check(conf, err) ? 0 : with_shards(conf, check_stored, err);
}

/* ---- Open and close ---- */

int
shards_open(struct node *n, struct slu_err *err)
{
	struct node_shards *s;
	struct broker_conf conf = {
		.node = n->conf->node_id,
		.progress = &n->progress,
		.clock = n->hand ? n->hand->clock : NULL,
		.by_hand = n->hand != NULL,
	};
	int rc = tell_shards(n, n->conf, &s, err);

	if (rc)
		return rc;
	keep(n, s);
	rc = check_data(n, s, err);
	conf.shards = s->confs;
	conf.n_shards = s->n;
	if (!rc && sharding_is_used(n->conf))
		rc = sharding_map(n->conf, n->conf->sharding_version, &conf.map, err);
	if (!rc)
		rc = broker_open(&n->broker, &conf, err);
	if (rc)
		return rc;
	reload_add(n->reload, &(struct reload_part){ "sharding", prepare, commit, abandon, n });
	if (conf.map)
		log_map(n, broker_map(broker_routes(n->broker)));
	log_warnings(n, n->conf->sharding);
	return 0;
}

void
shards_close(struct node *n)
{
	while (n->shards) {
		struct node_shards *const s = n->shards;

		n->shards = s->older;
		free_shards(s);
	}
}
