#include "server/ownership.h"

#include "base/log.h"
#include "base/mem.h"
#include "engine/log/logengine.h"
#include "engine/formats.h"
#include "engine/tenure.h"
#include "members/find.h"
#include "members/membership.h"
#include "server/caches.h"
#include "server/links.h"
#include "server/shards.h"
#include "server/storeformat.h"
#include "store/pool.h"
#include "store/probe.h"
#include "store/store.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>

enum {
	MORE_THREADS = 8,  /* of the pool, beside one for each shard */
	MORE_REQUESTS = 64 /* of the pool, for each shard */
};

_Static_assert((int)FORMATS_LAST == (int)SETTINGS_FORMAT, "every format of the table can be in the settings");

#define PATIENCE   (30 * SLU_SEC) /* how long a store may fail at start */
#define SETTLE_MAX (30 * SLU_SEC) /* the start waits no longer for the owners of shards */

/* The address of a node. It stays until close: errors point to it. */
struct known_address {
	struct known_address *next;
	char text[BEAT_ADDRESS_MAX + 1];
};

struct ownership {
	_Atomic(struct ownership *) next; /* OWNERSHIP-3: of the store of another shard */
	char shard[SHARDMAP_NAME];
	char *url;
	const struct nodename *self;
	struct peernet *const *links; /* of the node: NULL = no links to other nodes */
	struct slu_log *log;
	struct store *store;
	struct store_pool *pool;  /* of all lanes; beats have a pool of their own */
	struct settings settings; /* as the node found them at its start */
	struct storeformat format;
	struct engine_tenure engine;
	struct caches *caches;                   /* the folders of shards that other nodes own */
	_Atomic(struct membership *) membership; /* NULL = not started */
	slu_time lease;
	slu_time settle;
	enum settings_place place; /* of the settings of this server */
	bool place_given;          /* and not the default */
	uint32_t first;            /* lane of the broker that has shard 0 of the store; set by the start */
	_Atomic bool leaving;      /* the node leaves the store: a stop has begun */
	bool front;                /* store.front: shards that the node takes stay here */
	_Atomic bool *pinned;      /* for each shard: this node has its front folder */

	pthread_mutex_t mtx;
	struct broker *broker;           /* NULL = no more orders; under mtx */
	struct known_address *addresses; /* of the thread that calls on_event */
};

/* ---- For the engines ---- */

static bool
may_take(void *arg, uint32_t lane, const struct line_group *newest)
{
	const struct ownership *const o = arg;
	struct members *const m = membership_lock(o->membership);
	const bool may = members_may_take(m, lane, newest, membership_now());

	membership_unlock(o->membership);
	return may;
}

static bool
is_fresh(void *arg, slu_time proved)
{
	const struct ownership *const o = arg;
	struct members *const m = membership_lock(o->membership);
	const bool fresh = members_is_fresh(m, proved, membership_now());

	membership_unlock(o->membership);
	return fresh;
}

/* LINE-16 */
static int
need_format(void *arg, uint32_t format, struct slu_err *err)
{
	struct ownership *const o = arg;
	int rc;

	if (storeformat_has(&o->format, format))
		return 0;
	if (!o->membership)
		return slu_fail(err, SLU_EDOWN, "the server has not joined its store yet");
	rc = storeformat_check(membership_lock(o->membership), format, err);
	membership_unlock(o->membership);
	return rc ? rc : storeformat_raise(&o->format, format, err);
}

static void
pins(void *arg, uint32_t lane, bool pinned)
{
	const struct ownership *const o = arg;

	atomic_store(&o->pinned[lane], pinned);
}

static bool
taken(void *arg, uint32_t lane, uint64_t epoch)
{
	const struct ownership *const o = arg;
	bool may_serve;

	may_serve = members_opened(membership_lock(o->membership), lane, epoch);
	membership_unlock(o->membership);
	return may_serve;
}

static void
closed(void *arg, uint32_t lane, uint64_t epoch)
{
	const struct ownership *const o = arg;

	caches_closed(o->caches, lane);
	members_closed(membership_lock(o->membership), lane, epoch, membership_now());
	membership_unlock(o->membership);
}

static void
waits(void *arg, uint32_t lane, const char *folder, bool pinned)
{
	const struct ownership *const o = arg;

	atomic_store(&o->pinned[lane], pinned);
	caches_waits(o->caches, lane, folder);
}

static bool
is_pinned(void *arg, uint32_t shard)
{
	const struct ownership *const o = arg;

	return atomic_load(&o->pinned[shard]);
}

static void
takes(void *arg, uint32_t lane)
{
	const struct ownership *const o = arg;

	caches_takes(o->caches, lane);
}

static enum members_role
role(void *arg, uint32_t shard)
{
	const struct ownership *const o = arg;
	const enum members_role r = members_role(membership_lock(o->membership), shard);

	membership_unlock(o->membership);
	return r;
}

/* ---- Events ---- */

/* NULL if there is no memory. */
static const char *
keep_address(struct ownership *o, const char *address)
{
	struct known_address *a = o->addresses;

	while (a && strcmp(a->text, address) != 0)
		a = a->next;
	if (a)
		return a->text;
	a = mem_zalloc(sizeof *a);
	if (!a)
		return NULL;
	(void)snprintf(a->text, sizeof a->text, "%s", address);
	a->next = o->addresses;
	o->addresses = a;
	return a->text;
}

/* Under mtx. */
static void
publish(struct ownership *o, struct membership *ms, uint32_t shard)
{
	char address[BEAT_ADDRESS_MAX + 1] = "";
	struct members_node owner;
	const uint64_t epoch = members_owner(membership_lock(ms), shard, &owner);
	const bool other = epoch && !owner.self;

	if (other)
		(void)snprintf(address, sizeof address, "%s", owner.address);
	links_set_owner(*o->links, shard, epoch, other ? &owner : NULL);
	membership_unlock(ms);
	broker_set_owner(o->broker, o->first + shard, *address ? keep_address(o, address) : NULL, other ? epoch : 0);
}

/* Under mtx. */
static void
tell_lease(const struct ownership *o, struct membership *ms)
{
	const bool lapsed = members_has_lapsed(membership_lock(ms));

	membership_unlock(ms);
	if (lapsed)
		log_warn(o->log, "other nodes may have taken the shards", F_STR("store", o->url));
	for (uint32_t i = 0; i < o->settings.shards; i++)
		broker_set_lapsed(o->broker, o->first + i, lapsed);
}

/* The membership thread. */
static void
on_event(void *arg, struct membership *ms, const struct members_event *e)
{
	struct ownership *const o = arg;

	atomic_store(&o->membership, ms);
	pthread_mutex_lock(&o->mtx);
	if (o->broker && e->kind == MEMBERS_OWNER)
		publish(o, ms, e->shard);
	else if (o->broker && e->kind == MEMBERS_LEASE)
		tell_lease(o, ms);
	else if (o->broker)
		broker_order(o->broker, o->first + e->shard,
			     e->kind == MEMBERS_TAKE ? BROKER_TAKE : BROKER_GIVE);
	pthread_mutex_unlock(&o->mtx);
}

/* ---- Open ---- */

static bool
goes_on(void)
{
	return !node_stop_pending();
}

static void
pause_a_moment(void)
{
	static const struct timespec moment = { .tv_nsec = 2 * SLU_MS };

	nanosleep(&moment, NULL);
}

static enum store_result
open_and_probe(struct ownership *o, const struct store_conf *sc, struct slu_err *err)
{
	enum store_result r = store_open(&o->store, store_rows, sc, err);

	if (r == STORE_OK)
		r = store_probe(o->store, err);
	if (r != STORE_OK) {
		store_close(o->store);
		o->store = NULL;
	}
	return r;
}

/* Opens the store, again for a while if it fails: a server may start before its network. */
static int
open_patiently(struct ownership *o, const struct store_conf *sc, struct slu_err *err)
{
	const slu_time until = time_add(membership_now(), PATIENCE);
	enum store_result r = open_and_probe(o, sc, err);

	while (r == STORE_FAILED && membership_now() < until && goes_on()) {
		pause_a_moment();
		r = open_and_probe(o, sc, err);
	}
	return r == STORE_OK ? 0 : (int)err->code;
}

/* shards: as the settings have it; 0 = any number. */
static int
open_store(struct ownership *o, const struct logengine_options *own, uint32_t shards, struct slu_err *err)
{
	const struct store_conf sc = { .url = o->url, .unsafe = own->unsafe, .delay = own->delay, .log = o->log };
	int rc = open_patiently(o, &sc, err);

	if (rc)
		return rc;
	assert(o->store);
	o->lease = o->lease ? o->lease : o->store->ops->lease;
	rc = settings_find(o->store, shards ? shards : o->store->ops->shards, o->place, PATIENCE, goes_on,
			   &o->settings, err);
	if (rc)
		return rc;
	if (o->place_given && o->place != o->settings.place)
		return slu_fail(err, SLU_EINVAL, "invalid place: %s; the store was created with %s", conf_places[o->place],
				conf_places[o->settings.place]);
	if (shards && shards != o->settings.shards)
		return slu_fail(err, SLU_EINVAL, "invalid number of shards: %u; the store has %u", shards,
				o->settings.shards);
	if (o->settings.shards > BROKER_LANES_MAX)
		return slu_fail(err, SLU_EINVAL, "the store has %u shards; expected at most %d",
				o->settings.shards, BROKER_LANES_MAX);
	return 0;
}

/* One thread for the put of each shard, and some for what a shard reads. */
static int
open_pool(struct ownership *o, uint32_t puts, struct slu_err *err)
{
	const struct store_pool_conf conf = {
		.store = o->store,
		.threads = o->settings.shards + MORE_THREADS,
		.max = o->settings.shards * MORE_REQUESTS,
		.puts = puts ? puts : o->store->ops->puts,
	};

	return store_pool_open(&o->pool, &conf, err);
}

static int
open_caches(struct ownership *o, struct slu_err *err)
{
	const struct caches_conf conf = {
		.store = o->store,
		.uuid = o->settings.uuid,
		.shards = o->settings.shards,
		.log = o->log,
		.lease = o->lease,
		.settle = o->settle,
		.role = role,
		.arg = o,
	};

	return caches_new(&o->caches, &conf, err);
}

/* OWNERSHIP-3 */
static int
check_store(const struct ownership *o, const struct ownership *all, struct slu_err *err)
{
	for (; all; all = all->next)
		if (all != o && memcmp(all->settings.uuid, o->settings.uuid, SETTINGS_UUID) == 0)
			return slu_fail(err, SLU_EINVAL,
					"shards %s and %s have the same store; expected a store for each",
					all->shard, o->shard);
	return 0;
}

/* The newest ownership of the shard; NULL if the shard has none, or if it was not started and the
 * store is another one by now. */
static struct ownership *
find(struct ownership *all, const char *shard, const char *url)
{
	struct ownership *found = NULL;

	for (; all; all = all->next)
		if (strcmp(all->shard, shard) == 0 && (all->membership || strcmp(all->url, url) == 0))
			found = all;
	return found;
}

static void
free_one(struct ownership *o)
{
	caches_free(o->caches);
	membership_close(o->membership);
	storeformat_release(&o->format);
	store_pool_close(o->pool);
	store_close(o->store);
	while (o->addresses) {
		struct known_address *const a = o->addresses;

		o->addresses = a->next;
		mem_free(a);
	}
	pthread_mutex_destroy(&o->mtx);
	mem_free(o->url);
	mem_free(o->pinned);
	mem_free(o);
}

static void
append(_Atomic(struct ownership *) *all, struct ownership *o)
{
	while (*all)
		all = &(*all)->next;
	atomic_store(all, o);
}

static int
open_one(struct node *n, const char *shard, const struct logengine_options *own, uint32_t shards,
	 struct ownership **out, struct slu_err *err)
{
	struct ownership *const o = mem_zalloc(sizeof *o);
	int rc;

	if (!o)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	pthread_mutex_init(&o->mtx, NULL); /* cannot fail with these attributes */
	(void)snprintf(o->shard, sizeof o->shard, "%s", shard);
	o->url = mem_strdup(own->store);
	o->self = &n->nodename;
	o->links = &n->links;
	o->log = n->log;
	o->lease = conf_origin(n->conf, "store.lease") ? n->conf->store_lease : 0;
	o->settle = n->conf->store_settle;
	o->front = own->front == LOGENGINE_FRONT_FOLDER;
	o->place_given = conf_origin(n->conf, "place");
	o->place = (enum settings_place)n->conf->place;
	o->first = UINT32_MAX;
	rc = o->url ? open_store(o, own, shards, err) : slu_fail(err, SLU_ENOMEM, "out of memory");
	if (!rc)
		rc = check_store(o, n->ownership, err);
	if (!rc)
		o->pinned = mem_array(o->settings.shards, sizeof *o->pinned);
	if (!rc && !o->pinned)
		rc = slu_fail(err, SLU_ENOMEM, "out of memory");
	if (!rc)
		rc = open_pool(o, own->puts, err);
	if (!rc)
		rc = open_caches(o, err);
	if (rc) {
		free_one(o);
		return rc;
	}
	storeformat_init(&o->format, o->store, &o->settings, o->log);
	o->engine = (struct engine_tenure){
		.life = n->nodename.life,
		.store = o->store,
		.pool = o->pool,
		.uuid = o->settings.uuid,
		.arg = o,
		.waits = waits,
		.takes = takes,
		.may_take = may_take,
		.is_fresh = is_fresh,
		.need_format = need_format,
		.pins = pins,
		.taken = taken,
		.closed = closed,
	};
	append(&n->ownership, o);
	*out = o;
	return 0;
}

int
ownership_open(struct node *n, struct broker_shard_conf *conf, uint32_t shards, struct slu_err *err)
{
	const struct logengine_options *const own = conf->engine == &engine_log ? conf->storage.options : NULL;
	const char *const shard = conf->name ? conf->name : "default";
	struct ownership *o;
	int rc = 0;

	if (!own || !own->store || n->hand || n->only_checks)
		return 0;
	o = find(n->ownership, shard, own->store);
	if (!o)
		rc = shards_make_data(n, err);
	if (!o && !rc)
		rc = nodename_open(n, err);
	if (!o && !rc)
		rc = open_one(n, shard, own, shards, &o, err);
	if (rc)
		return rc;
	conf->lanes = o->settings.shards;
	conf->store = o->settings.uuid;
	conf->by_namespace = o->settings.place == SETTINGS_BY_NAMESPACE;
	conf->storage.tenure = &o->engine;
	return 0;
}

uint32_t
ownership_shards(const struct ownership *o)
{
	return o->settings.shards;
}

uint32_t
ownership_first_lane(const struct ownership *o)
{
	return o->first;
}

const struct ownership *
ownership_next(const struct ownership *o)
{
	return o->next;
}

const struct settings *
ownership_settings(const struct ownership *o)
{
	return &o->settings;
}

void
ownership_count(const struct ownership *o, uint64_t *requests, slu_time *rest)
{
	const slu_time now = store_pool_rest(o->pool);

	for (unsigned i = 0; i < STORE_VERBS; i++)
		requests[i] += atomic_load_explicit(&o->store->requests[i], memory_order_relaxed);
	*rest = now > *rest ? now : *rest;
}

slu_time
ownership_lease(const struct ownership *o)
{
	return o->lease;
}

struct membership *
ownership_membership(const struct ownership *o)
{
	return o->membership;
}

/* ---- Start and stop ---- */

/* The owner of a shard, as the start saw it first. */
struct first_owner {
	uint8_t life[LINE_LIFE];
	uint64_t beat; /* 0 = not seen */
};

/* Whether this node owns the shard, or a node whose beat has risen since the start saw it first. */
static bool
has_living_owner(const struct members *m, uint32_t shard, struct first_owner *first)
{
	struct members_node owner;

	if (!members_owner(m, shard, &owner))
		return false;
	if (first->beat == 0 || memcmp(first->life, owner.life, LINE_LIFE) != 0) {
		memcpy(first->life, owner.life, LINE_LIFE);
		first->beat = owner.beat;
	}
	return owner.self || owner.beat > first->beat;
}

static bool
is_settled(const struct ownership *o, struct first_owner *first)
{
	const struct members *const m = membership_lock(o->membership);
	bool settled = true;

	for (uint32_t i = 0; i < o->settings.shards; i++)
		settled = has_living_owner(m, i, &first[i]) && settled;
	membership_unlock(o->membership);
	return settled;
}

/* A folder that cannot be used ends the start. */
static int
check_folders(const struct ownership *o, struct slu_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc != SLU_EINVAL && i < o->settings.shards; i++)
		rc = broker_failure(o->broker, o->first + i, err);
	return rc == SLU_EINVAL ? rc : 0;
}

/* Waits until each shard has an owner that lives. Nodes that died a moment ago seem to live. */
static int
settle(const struct ownership *o, struct slu_err *err)
{
	const slu_time lease = 3 * o->lease + SLU_SEC;
	const slu_time until = time_add(membership_now(), lease < SETTLE_MAX ? lease : SETTLE_MAX);
	struct first_owner *const first = mem_array(o->settings.shards, sizeof *first);
	bool settled = false;
	int rc = first ? 0 : slu_fail(err, SLU_ENOMEM, "out of memory");

	while (!rc && !settled && membership_now() < until && !node_stop_pending()) {
		pause_a_moment();
		settled = is_settled(o, first);
		rc = check_folders(o, err);
	}
	mem_free(first);
	if (!rc && !settled)
		log_warn(o->log, "some shards have no owner yet");
	return rc;
}

static struct membership_conf
membership_conf(struct ownership *o)
{
	struct membership_conf conf = {
		.store = o->store,
		.log = o->log,
		.members = {
			.name = o->self->name,
			.address = o->self->address,
			.port = *o->links ? (uint16_t)peernet_port(*o->links) : 0,
			.version = SLUICE_VERSION,
			.shards = o->settings.shards,
			.format = o->settings.format,
			.writes = SETTINGS_FORMAT,
			.reads = SETTINGS_FORMAT,
			.lease = o->lease,
			.hand_over = o->settle,
			.is_pinned = is_pinned,
			.arg = o,
		},
		.event = on_event,
		.arg = o,
	};

	memcpy(conf.members.life, o->self->life, LINE_LIFE);
	memcpy(conf.members.former, o->self->former, LINE_LIFE);
	return conf;
}

static int
start_one(struct ownership *o, struct broker *b, struct slu_err *err)
{
	const struct membership_conf conf = membership_conf(o);
	struct membership *ms;
	int rc;

	o->broker = b;
	log_info(o->log, "node joins the store", F_STR("store", o->url), F_STR("name", o->self->name),
		 F_STR("address", o->self->address), F_U64("shards", o->settings.shards));
	rc = membership_open(&ms, &conf, err);
	if (rc)
		return rc;
	atomic_store(&o->membership, ms);
	return caches_start(o->caches, err);
}

int
ownership_start(struct node *n, struct slu_err *err)
{
	struct ownership *first = NULL;
	int rc = 0;

	for (struct ownership *o = n->ownership; !rc && o; o = o->next) {
		if (!o->membership)
			o->first = broker_first_lane(n->broker, o->shard);
		if (o->membership || o->first == UINT32_MAX)
			continue;
		first = first ? first : o;
		rc = start_one(o, n->broker, err);
	}
	for (struct ownership *o = first; !rc && o; o = o->next)
		if (o->membership)
			rc = settle(o, err);
	return rc;
}

/* Whether another node could take the shards. */
static bool
has_successor(const struct members *m)
{
	struct members_node n;

	for (uint32_t i = 1; members_node(m, i, &n); i++)
		if (n.beat > 0 && n.living && !n.draining)
			return true;
	return false;
}

/* Whether the node may drain in this store, or resume. */
static int
check_drain(const struct ownership *o, bool drain, struct slu_err *err)
{
	bool has;

	if (atomic_load(&o->leaving))
		return slu_fail(err, SLU_ECLOSED, "the server stops");
	if (o->front && drain)
		return slu_fail(err, SLU_ECONFLICT, "shards with a front folder stay at this node; stop the server instead");
	has = has_successor(membership_lock(o->membership));
	membership_unlock(o->membership);
	return has || !drain ? 0 : slu_fail(err, SLU_ECONFLICT, "no other node of %.100s could take the shards; start or resume one first", o->url);
}

int
ownership_drain(struct node *n, bool drain, struct slu_err *err)
{
	bool has_joined = false;
	int rc = 0;

	if (!n->ownership)
		return slu_fail(err, SLU_ENOTFOUND, "this server shares no store with other nodes");
	for (const struct ownership *o = n->ownership; !rc && o; o = o->next) {
		has_joined |= o->membership != NULL;
		rc = o->membership ? check_drain(o, drain, err) : 0;
	}
	if (!rc && !has_joined)
		rc = slu_fail(err, SLU_ESTARTING, "the server has not joined its store yet");
	if (rc)
		return rc;
	for (const struct ownership *o = n->ownership; o; o = o->next) {
		if (!o->membership)
			continue;
		members_drain(membership_lock(o->membership), drain);
		membership_unlock(o->membership);
	}
	log_info(n->log, drain ? "node drains" : "node resumes", F_STR("name", n->nodename.name));
	return 0;
}

static bool
is_drained(const struct ownership *o)
{
	const bool drained = members_is_drained(membership_lock(o->membership));

	membership_unlock(o->membership);
	return drained;
}

static void
begin_leaving(struct ownership *o)
{
	atomic_store(&o->leaving, true);
	members_leave(membership_lock(o->membership));
	membership_unlock(o->membership);
}

static void
end_leaving(struct ownership *o, slu_time until)
{
	while (!is_drained(o) && membership_now() < until)
		pause_a_moment();
	if (!is_drained(o))
		log_warn(o->log, "shards not handed over in time", F_STR("store", o->url));
	caches_stop(o->caches);
	pthread_mutex_lock(&o->mtx);
	o->broker = NULL;
	pthread_mutex_unlock(&o->mtx);
}

/* Whether the node takes and gives shards of the store. */
static bool
is_active(const struct ownership *o)
{
	return o->membership && o->broker;
}

void
ownership_leave(struct node *n)
{
	const slu_time now = membership_now();

	for (struct ownership *o = n->ownership; o; o = o->next)
		if (is_active(o))
			begin_leaving(o);
	for (struct ownership *o = n->ownership; o; o = o->next)
		if (is_active(o))
			end_leaving(o, time_add(now, o->lease));
}

void
ownership_close(struct node *n)
{
	while (n->ownership) {
		struct ownership *const o = n->ownership;

		n->ownership = o->next;
		free_one(o);
	}
	nodename_close(&n->nodename);
}
