/*
 * broker_route.c - from an op to its lane.
 */
#include "base/mem.h"
#include "broker/broker_in.h"
#include "core/supplier.h"
#include "engine/move.h"

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

/* And all that are older. */
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

static struct broker_place
place_on(const struct broker_shard *s, struct slice space, struct slice queue, const char *rule)
{
	return (struct broker_place){
		.lane = s->first + (s->lanes == 1 ? 0 : supplier_hash(space, queue) % s->lanes),
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
	struct relay_path path = { 0 };
	const int rc = places_by_map(b, r, space, queue, out, n, err);

	if (rc || !relay_path_of(b->relays, space, queue, &path))
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
broker_shard_of(const struct broker *b, const struct routes *r, struct slice space,
		struct slice queue)
{
	struct broker_place place;

	return broker_place(b, r, space, queue, &place, NULL) ? 0 : place.lane;
}

struct engine *
broker_engine_of(const struct broker *b, const struct routes *r, struct slice space,
		 struct slice queue)
{
	const struct relay_path path = {
		.epoch = (r ? r : broker_routes(b))->epoch,
		.n = 1,
		.lanes = { broker_shard_of(b, r, space, queue) },
	};
	uint32_t lane = path.lanes[0];

	if (relays_any(b->relays))
		lane = relay_home(b->relays, space, queue, &path);
	return b->lanes[lane]->engine;
}

bool
broker_apart(const struct broker *b, uint32_t shard)
{
	const struct engine *const e = b->lanes[shard]->engine;

	return e->ops->apart && e->ops->apart(e);
}

/* ---- Ops ---- */

/* Does an item that has names of its own live there, too? */
static int
check_item(const struct broker *b, const struct routes *r, struct op *op, uint32_t lane,
	   struct slice space, struct slice queue)
{
	struct broker_place place;
	int rc;

	if (space.n == 0 && queue.n == 0)
		return op->queue.n ? 0 : SLU_EINVAL; /* the op's */
	space = space.n ? space : op->space;
	queue = queue.n ? queue : op->queue;
	if (queue.n == 0)
		return SLU_EINVAL;
	rc = broker_place(b, r, space, queue, &place, &op->err);
	return rc || place.lane == lane ? rc : SLU_EINVAL;
}

static int
check_items(const struct broker *b, const struct routes *r, struct op *op, uint32_t lane)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < op->n_puts; i++)
		rc = check_item(b, r, op, lane, op->puts[i].m.space, op->puts[i].m.queue);
	for (uint32_t i = 0; !rc && i < op->n_items; i++)
		rc = check_item(b, r, op, lane, op->items[i].space, op->items[i].queue);
	return rc;
}

/* Where an op begins that has no queue of its own. */
static struct slice
first_queue(const struct op *op, struct slice *space)
{
	*space = op->space;
	if (op->n_puts) {
		*space = op->puts[0].m.space.n ? op->puts[0].m.space : *space;
		return op->puts[0].m.queue;
	}
	if (op->n_items) {
		*space = op->items[0].space.n ? op->items[0].space : *space;
		return op->items[0].queue;
	}
	return (struct slice){ 0 };
}

static bool
is_one_delete(const struct op *op)
{
	return op->verb == OP_DELETE && op->n_items == 1 && op->items[0].queue.n == 0;
}

/* An op for one lane that the maker chose. */
static bool
names_lane(const struct op *op, uint32_t *lane)
{
	if (op->verb == OP_BACKUP)
		*lane = op->backup.shard;
	else if (op->here || (op->queue.n == 0 && (op->verb == OP_GET || is_one_delete(op))))
		*lane = (uint32_t)(op->cursor >> BROKER_CURSOR_BITS);
	else
		return false;
	return true;
}

/* By the names of its queue. */
static int
route_queue(const struct broker *b, const struct routes *r, struct op *op,
	    struct relay_path *path)
{
	struct slice space = op->space;
	const struct slice queue = op->queue.n ? op->queue : first_queue(op, &space);
	struct broker_place places[SUPPLIED_MAX];
	int rc;

	if (!r->map && r->shards[0]->lanes == 1)
		return 0;
	if (queue.n == 0)
		return SLU_EINVAL;
	rc = places_by_map(b, r, space, queue, places, &path->n, &op->err);
	if (rc)
		return rc;
	for (unsigned i = 0; i < path->n; i++)
		path->lanes[i] = places[i].lane;
	return check_items(b, r, op, path->lanes[0]);
}

int
broker_route(const struct broker *b, struct op *op, struct relay_path *path)
{
	const struct routes *const r = op->routes ? op->routes : broker_routes(b);

	*path = (struct relay_path){ .epoch = r->epoch, .n = 1 };
	op->lives = NULL;
	op->spans = op->verb == OP_TOPICS || op->verb == OP_SHARD ||
		    (op->verb == OP_LIST && op->queue.n == 0);
	op->epoch = 0;
	if (names_lane(op, &path->lanes[0]))
		return path->lanes[0] < broker_shards(b) ? 0 : SLU_EINVAL;
	if (!op->spans) {
		op->epoch = r->epoch;
		return route_queue(b, r, op, path);
	}
	path->lanes[0] = (uint32_t)(op->cursor >> BROKER_CURSOR_BITS);
	op->cursor &= (1ull << BROKER_CURSOR_BITS) - 1;
	return path->lanes[0] < broker_shards(b) ? 0 : SLU_EINVAL;
}
