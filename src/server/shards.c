#include "server/shards.h"

#include "base/log.h"
#include "base/mem.h"
#include "broker/layout.h"
#include "projection/projection.h"
#include "server/links.h"
#include "server/ownership.h"
#include "server/nodename.h"
#include "server/place.h"
#include "store/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	FOLDER = 4096
};

/* The configurations of the shards of some settings. They live as long as the engines. */
struct node_shards {
	struct node_shards *older;
	struct sharding *from;
	struct routes *next; /* prepared, not in use */
	unsigned n;
	char (*folders)[FOLDER];
	struct broker_shard_conf confs[];
};

/* ---- Settings ---- */

const struct engine_ops *
shards_standard(const struct node *n)
{
	return n->hand ? n->hand->engine : engine_find(n->conf->engines, n->conf->engine);
}

/* The engine of the i-th shard. */
static const struct engine_ops *
engine_of(const struct conf *conf, unsigned i, const struct engine_ops *standard)
{
	const struct sharding_shard *const s = conf->sharding->shards[i];

	return s->engine ? s->engine : standard;
}

const struct engine_ops *
shards_without(const struct conf *conf, bool (*has)(const struct engine_ops *engine))
{
	const struct engine_ops *const standard = engine_find(conf->engines, conf->engine);

	if (!sharding_is_used(conf))
		return has(standard) ? NULL : standard;
	for (unsigned i = 0; i < conf->sharding->n_shards; i++)
		if (!has(engine_of(conf, i, standard)))
			return engine_of(conf, i, standard);
	return NULL;
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
		const struct engine_ops *const e = engine_of(conf, i, standard);

		if (name && strcmp(name, e->name) != 0)
			return "mixed";
		name = e->name;
	}
	return name;
}

/* ---- Configurations ---- */

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
		.stores = store_rows,
		.observer = projection_observer(n->projection),
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

int
shards_make_data(const struct node *n, struct slu_err *err)
{
	return make_folder(n, n->conf->data, "--data", err);
}

/* The shard that the settings beside `shards` describe. */
static int
tell_standard(struct node *n, struct broker_shard_conf *out, struct slu_err *err)
{
	const struct conf *const conf = n->conf;
	int rc;

	*out = (struct broker_shard_conf){
		.engine = shards_standard(n),
		.lanes = conf->shards,
		.storage = storage_of(n),
	};
	out->storage.options = conf_engine_values(conf, out->engine);
	rc = ownership_open(n, out, conf_origin(conf, "shards") ? conf->shards : 0, err);
	if (rc || (!n->hand && !out->engine->folder))
		return rc;
	out->storage.folder = conf->data;
	return shards_make_data(n, err);
}

static int
tell_folder(const struct node *n, const struct sharding_shard *s, char folder[static FOLDER],
	    struct broker_shard_conf *out, struct slu_err *err)
{
	int rc = 0;

	if (s->folder)
		(void)snprintf(folder, FOLDER, "%s", s->folder);
	else if (snprintf(folder, FOLDER, "%s/%s", n->conf->data, s->name) >= FOLDER)
		return slu_fail(err, SLU_EINVAL, "shard %s: folder name too long",
				s->name);
	out->storage.folder = folder;
	if (!s->folder)
		rc = make_folder(n, n->conf->data, "--data", err);
	if (n->only_checks && !s->folder && access(n->conf->data, F_OK))
		return rc; /* the start would create both */
	return rc ? rc : make_folder(n, folder, "folder of a shard,", err);
}

static int
tell_named(struct node *n, const struct sharding_shard *s, char folder[static FOLDER],
	   struct broker_shard_conf *out, struct slu_err *err)
{
	int rc;

	*out = (struct broker_shard_conf){
		.name = s->name,
		.engine = s->engine,
		.lanes = s->pool,
		.storage = storage_of(n),
	};
	out->storage.shard = s->name;
	out->storage.options = s->options;
	out->storage.late = !n->broker; /* at a reload the new settings are wrong instead */
	rc = ownership_open(n, out, sharding_origin(s, "poolSize") ? s->pool : 0, err);
	return !rc && s->engine->folder ? tell_folder(n, s, folder, out, err) : rc;
}

static void
free_shards(struct node_shards *s)
{
	if (!s)
		return;
	sharding_unref(s->from);
	mem_free(s->folders);
	mem_free(s);
}

static int
tell_shards(struct node *n, const struct conf *conf, struct node_shards **out,
	    struct slu_err *err)
{
	struct sharding *const from = conf->sharding;
	const unsigned many = sharding_is_used(conf) ? from->n_shards : 0;
	const unsigned room = many ? many : 1;
	struct node_shards *s =
		mem_zalloc(sizeof *s + room * sizeof(struct broker_shard_conf));
	int rc = 0;

	if (s)
		s->folders = mem_array(room, sizeof *s->folders);
	if (!s || !s->folders) {
		mem_free(s);
		return slu_fail(err, SLU_ENOMEM, "no memory for %u shards", room);
	}
	s->from = sharding_ref(from);
	for (; !rc && s->n < room; s->n++)
		rc = many && from->shards[s->n]->engine
			     ? tell_named(n, from->shards[s->n], s->folders[s->n], &s->confs[s->n], err)
			     : tell_standard(n, &s->confs[s->n], err);
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
		log_warn(n->log, "questionable setting", F_STR("why", s->warnings.items[i]));
}

/* ---- Reload ---- */

/* SHARDS-2 */
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

/* SHARDS-1. *differs: the map must be replaced. */
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
	return slu_fail(err, SLU_EINVAL, "invalid sharding.version %u; expected more than %" PRIu64 ", "
					 "because %s",
			next->sharding_version, shardmap_version(is),
			*differs ? "the mapping differs" : "that version is in force");
}

/* A value set by an administrator may name a shard that the file does not have. */
static int
check_standard(const struct conf *next, struct slu_err *err)
{
	if (!sharding_is_used(next) || sharding_find(next->sharding, next->sharding_default))
		return 0;
	return slu_fail(err, SLU_EINVAL, "sharding.defaultShard: unknown shard %s",
			next->sharding_default);
}

static int
prepare(void *arg, const struct conf *old, const struct conf *next, struct slu_err *err)
{
	struct node *const n = arg;
	struct node_shards *s = NULL;
	struct shardmap *map = NULL;
	struct slu_err ignored;
	bool differs = false;
	int rc = check_standard(next, err), started;

	if (!n->broker)
		return rc; /* the start checks it again */
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
	keep(n, s); /* in any case: engines may be open */
	rc = broker_routes_new(n->broker, map, s->confs, s->n, &s->next, err);
	started = ownership_start(n, rc ? &ignored : err); /* also of shards that were opened before one failed */
	return rc ? rc : started;
}

static void
commit(void *arg, const struct conf *now)
{
	struct node *const n = arg;

	(void)now; /* prepare used it */
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

/* ---- The data folder ---- */

struct unused {
	const struct node *node;
	const struct node_shards *shards;
	unsigned used;
	unsigned n;
	char first[FOLDER]; /* the first that no shard uses */
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
		log_warn(u->node->log, "log without a shard", F_STR("folder", folder));
}

/* Whether a shard has its folder in the data folder. */
static bool
uses_data(const struct node *n, const struct node_shards *s)
{
	const char *const data = n->conf->data;
	bool found = false;

	for (unsigned i = 0; i < s->n; i++) {
		const char *const folder = s->confs[i].storage.folder;

		found |= folder && strncmp(folder, data, strlen(data)) == 0;
	}
	return found && !n->hand;
}

/* SHARDS-3 */
static int
check_data(const struct node *n, const struct node_shards *s, struct slu_err *err)
{
	const char *const data = n->conf->data;
	struct unused u = { .node = n, .shards = s };
	int rc;

	if (!uses_data(n, s))
		return 0;
	rc = layout_each(data, see_logs, &u, err);
	if (rc || u.n == 0 || u.used)
		return rc;
	return slu_fail(err, SLU_EINVAL,
			"%.100s has messages, but no shard uses it; %s",
			u.first,
			strcmp(u.first, data) == 0
				? "name the shard `default` in sharding: docs/sharding.md"
				: "start with the --config that has this shard in `shards`");
}

static int
check_layout(const struct broker_shard_conf *conf, struct slu_err *err)
{
	if (!conf->engine->folder)
		return 0;
	return layout_fits(conf->storage.folder, conf->lanes, conf->name ? "poolSize" : "--shards", err);
}

/* ---- Check ---- */

typedef int shards_fn(const struct node *n, const struct node_shards *s, struct slu_err *err);

/* Run check with the configurations of these settings. */
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
try_engines(const struct node *n, const struct node_shards *s, struct slu_err *err)
{
	int rc = 0;

	(void)n; /* other checks need it */
	for (unsigned i = 0; !rc && i < s->n; i++)
		if (s->confs[i].engine->options && s->confs[i].engine->options->try)
			rc = s->confs[i].engine->options->try(&s->confs[i].storage, err);
	return rc;
}

int
shards_check(const struct conf *conf, struct slu_err *err)
{
	return with_shards(conf, try_engines, err);
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
	if (!rc && !n->nodename.is_open && uses_data(n, s))
		rc = nodename_check(n->conf->data, err);
	conf.shards = s->confs;
	conf.n_shards = s->n;
	if (!rc && n->conf->place && !n->ownership && !n->hand)
		rc = slu_fail(err, SLU_EINVAL, "--place %s: expected --store", conf_places[n->conf->place]);
	if (!rc)
		rc = links_open(n, err);
	conf.remote = n->links ? peernet_remote(n->links) : NULL;
	conf.notice = n->hand ? NULL : &n->notice;
	if (!rc && sharding_is_used(n->conf))
		rc = sharding_map(n->conf, n->conf->sharding_version, &conf.map, err);
	if (!rc)
		rc = broker_open(&n->broker, &conf, err);
	if (!rc && n->links)
		rc = peernet_start(n->links, n->broker, err);
	if (!rc)
		rc = ownership_start(n, err);
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
