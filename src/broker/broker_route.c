/*
 * broker_route.c - finds the lane of an op.
 */
#include "base/mem.h"
#include "broker/broker_private.h"
#include "core/supplier.h"
#include "engine/move.h"

#include <assert.h>

/* ---- Maps ---- */

const struct routes *
broker_routes(const struct broker *b)
{
	return atomic_load_explicit(&b->routes, memory_order_acquire);
}

const struct shardmap *
broker_map(const struct routes *r)
{
	return r->map;
}

static int
find_shards(const struct broker *b, struct routes *r, struct slu_err *err)
{
	if (!r->map) {
		r->shards[0] = b->shard_of[0];
		return 0;
	}
	r->epoch = shardmap_version(r->map) << MOVE_EPOCH_BITS;
	for (uint32_t i = 0; i < shardmap_count(r->map); i++) {
		r->shards[i] = broker_find_shard(b, shardmap_name(r->map, i));
		if (!r->shards[i])
			return slu_fail(err, SLU_EINVAL, "unknown shard: %s",
					shardmap_name(r->map, i));
	}
	return 0;
}

int
routes_new(const struct broker *b, struct shardmap *map, struct routes **out,
	   struct slu_err *err)
{
	const unsigned n = map ? shardmap_count(map) : 1;
	struct routes *r = mem_zalloc(sizeof *r + n * sizeof(struct broker_shard *));
	int rc;

	if (!r) {
		shardmap_free(map);
		return slu_fail(err, SLU_ENOMEM, "no memory for the shard map");
	}
	r->map = map;
	rc = find_shards(b, r, err);
	if (rc)
		broker_routes_free(r);
	else
		*out = r;
	return rc;
}

void
broker_routes_use(struct broker *b, struct routes *r)
{
	r->older = atomic_load(&b->routes);
	atomic_store_explicit(&b->routes, r, memory_order_release);
}

/* Also frees all older routes. */
void
broker_routes_free(struct routes *r)
{
	while (r) {
		struct routes *const older = r->older;

		shardmap_free(r->map);
		mem_free(r);
		r = older;
	}
}

/* ---- Queues ---- */

uint32_t
broker_lane_in(const struct broker_shard *s, struct slice space, struct slice queue)
{
	const struct slice none = { 0 };

	if (s->lanes == 1)
		return s->first;
	return s->first + supplier_hash(space, s->by_namespace ? none : queue) % s->lanes;
}

static struct broker_place
place_on(const struct broker_shard *s, struct slice space, struct slice queue, const char *rule)
{
	return (struct broker_place){
		.lane = broker_lane_in(s, space, queue),
		.shard = s->name,
		.rule = rule,
	};
}

int
broker_place(const struct broker *b, const struct routes *r, struct slice space,
	     struct slice queue, struct broker_place *out, struct slu_err *err)
{
	struct shard_choice choice = { 0, "default" };
	int rc = 0;

	r = r ? r : broker_routes(b);
	if (r->map)
		rc = shardmap_current(r->map, space, queue, &choice, err);
	if (!rc)
		*out = place_on(r->shards[choice.shard], space, queue, choice.rule);
	return rc;
}

static int
places_by_map(const struct broker *b, const struct routes *r, struct slice space,
	      struct slice queue, struct broker_place out[SUPPLIED_MAX], unsigned *n,
	      struct slu_err *err)
{
	struct shard_choice choices[SUPPLIED_MAX] = { { 0, "default" } };
	int rc = 0;

	r = r ? r : broker_routes(b);
	*n = 1;
	if (r->map)
		rc = shardmap_all(r->map, space, queue, choices, n, err);
	for (unsigned i = 0; !rc && i < *n; i++)
		out[i] = place_on(r->shards[choices[i].shard], space, queue, choices[i].rule);
	return rc;
}

static bool
is_among(const struct broker_place *places, unsigned n, uint32_t lane)
{
	for (unsigned i = 0; i < n; i++)
		if (places[i].lane == lane)
			return true;
	return false;
}

int
broker_places(const struct broker *b, const struct routes *r, struct slice space,
	      struct slice queue, struct broker_place out[SUPPLIED_MAX], unsigned *n,
	      struct slu_err *err)
{
	struct follow_path path = { 0 };
	const int rc = places_by_map(b, r, space, queue, out, n, err);

	if (rc || !follow_path_of(b->follows, space, queue, &path))
		return rc;
	for (unsigned i = 0; i < path.n && *n < SUPPLIED_MAX; i++)
		if (!is_among(out, *n, path.lanes[i]))
			out[(*n)++] = (struct broker_place){
				.lane = path.lanes[i],
				.shard = b->shard_of[path.lanes[i]]->name,
				.rule = "moved",
			};
	return 0;
}

uint32_t
broker_lane_of(const struct broker *b, const struct routes *r, struct slice space,
	       struct slice queue)
{
	struct broker_place place;

	return broker_place(b, r, space, queue, &place, NULL) ? 0 : place.lane;
}

struct engine *
broker_engine_of(const struct broker *b, const struct routes *r, struct slice space,
		 struct slice queue)
{
	const struct follow_path path = {
		.epoch = (r ? r : broker_routes(b))->epoch,
		.n = 1,
		.lanes = { broker_lane_of(b, r, space, queue) },
	};
	uint32_t lane = path.lanes[0];

	if (follows_any(b->follows))
		lane = follow_home(b->follows, space, queue, &path);
	return b->lanes[lane]->engine;
}

struct engine *
broker_engine(const struct broker *b, uint32_t lane)
{
	return b->lanes[lane]->engine;
}

bool
broker_one_queue(const struct broker *b, uint32_t shard)
{
	return b->lanes[shard]->one_queue;
}

/* ---- Ops ---- */

/* Checks that all puts and items live on one lane. */
static int
check_parts(const struct broker *b, const struct routes *r, struct op *op, uint32_t lane)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < op_parts(op); i++) {
		const struct op_names names = op_names(op, i);
		struct broker_place place = { .lane = lane };

		if (names.queue.n == 0)
			return SLU_EINVAL;
		if (!op_names_are(names, (struct op_names){ op->space, op->queue }))
			rc = broker_place(b, r, names.space, names.queue, &place, &op->err);
		if (!rc && place.lane != lane)
			rc = SLU_EINVAL;
	}
	return rc;
}

/* BROKER-4, for the puts of an OP_FINISH: each has a shard. */
static int
check_places(const struct broker *b, const struct routes *r, struct op *op)
{
	int rc = 0;

	for (uint32_t i = 0; i < op->n_puts && !rc; i++) {
		const struct message *const m = &op->puts[i].m;
		struct broker_place place;

		op->failed = i;
		rc = broker_place(b, r, m->space.n ? m->space : op->space, m->queue.n ? m->queue : op->queue, &place, &op->err);
	}
	return rc;
}

/* Checks that the puts of an OP_SCHEDULE live on the lane of the schedule, and none of their queues moves. */
static int
check_together(const struct broker *b, const struct routes *r, struct op *op, uint32_t lane)
{
	for (uint32_t i = 0; i < op->n_puts; i++) {
		const struct message *const m = &op->puts[i].m;
		struct broker_place places[SUPPLIED_MAX];
		unsigned n;
		const int rc = broker_places(b, r, m->space.n ? m->space : op->space, m->queue, places, &n, &op->err);

		op->failed = i;
		if (rc)
			return rc;
		assert(n > 0);
		if (n > 1 || places[0].lane != lane)
			return slu_fail(&op->err, SLU_ETOGETHER, "queue %.*s is not on the shard of the schedule; nothing was done",
					(int)m->queue.n, m->queue.p);
	}
	return 0;
}

/* Returns true if neither the op nor its item names a queue. */
static bool
names_no_queue(const struct op *op)
{
	return op->queue.n == 0 && (op->n_items == 0 || (op->n_items == 1 && op->items[0].queue.n == 0));
}

/* Returns true if the maker has chosen the lane. */
static bool
names_lane(const struct op *op, uint32_t *lane)
{
	if (op->verb == OP_BACKUP)
		*lane = op->backup.lane;
	else if (op->here || (op_is(op->verb, OP_AT_CURSOR) && names_no_queue(op)))
		*lane = (uint32_t)(op->cursor >> BROKER_CURSOR_BITS);
	else
		return false;
	return true;
}

/* Routes an op by the names of its queue. */
static int
route_queue(const struct broker *b, const struct routes *r, struct op *op,
	    struct follow_path *path)
{
	const struct op_names own = { op->space, op->queue };
	const struct op_names names = op->queue.n ? own : op_names(op, 0);
	struct broker_place places[SUPPLIED_MAX];
	int rc;

	if (!r->map && r->shards[0]->lanes == 1)
		return 0;
	if (names.queue.n == 0)
		return SLU_EINVAL;
	rc = places_by_map(b, r, names.space, names.queue, places, &path->n, &op->err);
	if (rc)
		return rc;
	for (unsigned i = 0; i < path->n; i++)
		path->lanes[i] = places[i].lane;
	rc = check_parts(b, r, op, path->lanes[0]);
	if (rc)
		return rc;
	if (op->verb == OP_SCHEDULE)
		return check_together(b, r, op, path->lanes[0]);
	return op->verb == OP_FINISH ? check_places(b, r, op) : 0;
}

/* The shard that accepts messages of the queue, and the epoch since which it does. */
static int
find_home(const struct broker *b, const struct routes *r, struct op_names names, struct follow_path *out,
	  struct slu_err *err)
{
	struct broker_place place;
	int rc;

	if (names.queue.n == 0)
		return slu_fail(err, SLU_EINVAL, "a message of a batch names no queue");
	if (follow_path_of(b->follows, names.space, names.queue, out))
		return 0;
	rc = broker_place(b, r, names.space, names.queue, &place, err);
	*out = (struct follow_path){ .epoch = r->epoch, .n = 1, .lanes = { rc ? 0 : place.lane } };
	return rc;
}

int
broker_home(const struct broker *b, const struct routes *r, struct slice space, struct slice queue,
	    uint32_t *lane, struct slu_err *err)
{
	struct follow_path home = { 0 };
	const int rc = find_home(b, r ? r : broker_routes(b), (struct op_names){ space, queue }, &home, err);

	*lane = home.lanes[0];
	return rc;
}

/* All messages of an OP_INTAKE must live on the lane that it names. */
static int
route_intake(const struct broker *b, const struct routes *r, struct op *op, uint32_t lane)
{
	for (uint32_t i = 0; i < op->n_puts; i++) {
		const struct op_names names = op_names(op, i);
		struct follow_path home = { 0 };
		int rc;

		if (i > 0 && op_names_are(names, op_names(op, i - 1)))
			continue;
		rc = find_home(b, r, names, &home, &op->err);
		if (rc)
			return rc;
		op->failed = i;
		if (home.lanes[0] != lane)
			return slu_fail(&op->err, SLU_EMOVED, "queue %.*s lives on shard %s", (int)names.queue.n,
					names.queue.p, broker_mark_name(b, home.lanes[0]));
		if (home.epoch > op->home.epoch)
			op->home.epoch = home.epoch;
	}
	return 0;
}

static int
route_named(const struct broker *b, const struct routes *r, struct op *op, uint32_t lane)
{
	if (lane >= broker_lanes(b))
		return SLU_EINVAL;
	return op->verb == OP_INTAKE ? route_intake(b, r, op, lane) : 0;
}

int
broker_route(const struct broker *b, struct op *op, struct follow_path *path)
{
	const struct routes *const r = op->route.routes ? op->route.routes : broker_routes(b);

	*path = (struct follow_path){ .epoch = r->epoch, .n = 1 };
	op->home.lives = NULL;
	op->route.spans = op_is(op->verb, OP_SPANS) ||
			  (op_is(op->verb, OP_SPANS_UNNAMED) && op->queue.n == 0);
	op->home.epoch = 0;
	if (names_lane(op, &path->lanes[0]))
		return route_named(b, r, op, path->lanes[0]);
	if (!op->route.spans) {
		op->home.epoch = r->epoch;
		return route_queue(b, r, op, path);
	}
	path->lanes[0] = (uint32_t)(op->cursor >> BROKER_CURSOR_BITS);
	op->cursor &= (1ull << BROKER_CURSOR_BITS) - 1;
	return path->lanes[0] < broker_lanes(b) ? 0 : SLU_EINVAL;
}
