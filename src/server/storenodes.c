#include "server/storenodes.h"

#include "base/mem.h"
#include "broker/broker.h"
#include "members/membership.h"
#include "store/store.h"

#include <stdio.h>

_Static_assert((int)NODES_NAME > (int)BEAT_NAME_MAX && (int)NODES_ADDRESS > (int)BEAT_ADDRESS_MAX &&
		       (int)NODES_VERSION > (int)BEAT_VERSION_MAX && (int)NODES_LIFE > 2 * (int)LINE_LIFE,
	       "texts of beats fit");
_Static_assert((int)NODES_VERBS == (int)STORE_VERBS, "every verb is counted");

/* ---- The view of one store: under the lock of its membership ---- */

static void
write_life(const uint8_t life[static LINE_LIFE], char out[static NODES_LIFE])
{
	for (unsigned i = 0; i < LINE_LIFE; i++)
		(void)snprintf(out + 2 * i, 3, "%02x", life[i]);
}

static void
describe(const struct members_node *n, slu_time now, struct nodes_row *out)
{
	*out = (struct nodes_row){
		.age = n->since ? now - n->since : -1,
		.shards = n->shards,
		.self = n->self,
		.living = n->living,
		.draining = n->draining,
	};
	(void)snprintf(out->name, sizeof out->name, "%s", n->name);
	(void)snprintf(out->address, sizeof out->address, "%s", n->address);
	(void)snprintf(out->version, sizeof out->version, "%s", n->version);
	write_life(n->life, out->life);
}

static uint32_t
index_of(const struct nodes_view *v, const struct members_node *wanted)
{
	char life[NODES_LIFE];

	write_life(wanted->life, life);
	for (uint32_t i = 0; i < v->n; i++)
		if (strcmp(v->rows[i].life, life) == 0)
			return i;
	return NODES_NONE;
}

/* The node is in several stores: it drains in all of them, and its oldest beat counts. */
static void
merge(struct nodes_row *row, const struct nodes_row *more)
{
	row->age = row->age < 0 || more->age < 0 ? -1 : row->age > more->age ? row->age
									     : more->age;
	row->shards += more->shards;
	row->living = row->living && more->living;
	row->draining = row->draining || more->draining;
}

static int
add_node(struct nodes_view *out, const struct members_node *n, slu_time now)
{
	const uint32_t at = index_of(out, n);
	struct nodes_row row;

	describe(n, now, &row);
	if (at != NODES_NONE) {
		merge(&out->rows[at], &row);
		return 0;
	}
	if (!mem_resize(&out->rows, out->n + 1, sizeof *out->rows))
		return SLU_ENOMEM;
	out->rows[out->n++] = row;
	return 0;
}

static int
add_nodes(struct nodes_view *out, const struct members *m, slu_time now)
{
	struct members_node n;
	int rc = 0;

	for (uint32_t i = 0; !rc && members_node(m, i, &n); i++)
		rc = add_node(out, &n, now);
	return rc;
}

/* shards: how many the store has. */
static void
fill_shards(const struct nodes_view *v, const struct members *m, struct nodes_shard *shards, uint32_t n_shards)
{
	struct members_node n;

	for (uint32_t i = 0; i < n_shards; i++) {
		struct nodes_shard *const s = &shards[i];

		s->stored = true;
		s->epoch = members_owner(m, i, &n);
		s->owner = s->epoch ? index_of(v, &n) : NODES_NONE;
		s->next = members_next_owner(m, i, &n) ? index_of(v, &n) : NODES_NONE;
	}
}

static int
add_store(struct nodes_view *out, const struct ownership *o)
{
	struct membership *const ms = ownership_membership(o);
	const struct members *m;
	int rc;

	if (!ms || ownership_first_lane(o) + ownership_shards(o) > out->n_shards)
		return 0; /* it was added a moment ago */
	m = membership_lock(ms);
	rc = add_nodes(out, m, membership_now());
	if (!rc)
		fill_shards(out, m, out->shards + ownership_first_lane(o), ownership_shards(o));
	membership_unlock(ms);
	ownership_count(o, out->requests, &out->rest);
	return rc;
}

/* ---- All stores ---- */

static int
view(void *arg, struct nodes_view *out)
{
	const struct node *const n = arg;
	int rc = 0;

	if (!n->ownership)
		return SLU_ENOTFOUND;
	*out = (struct nodes_view){ .n_shards = broker_lanes(n->broker), .lease = ownership_lease(n->ownership) };
	out->shards = mem_array(out->n_shards, sizeof *out->shards);
	if (!out->shards)
		return SLU_ENOMEM;
	for (uint32_t i = 0; i < out->n_shards; i++)
		out->shards[i] = (struct nodes_shard){ .owner = NODES_NONE, .next = NODES_NONE };
	for (const struct ownership *o = n->ownership; !rc && o; o = ownership_next(o))
		rc = add_store(out, o);
	if (!rc && out->n == 0)
		rc = SLU_ESTARTING;
	if (rc)
		nodes_view_release(out);
	return rc;
}

static int
drain(void *arg, bool drain, struct slu_err *err)
{
	return ownership_drain(arg, drain, err);
}

struct nodes_ops
storenodes_ops(struct node *n)
{
	return (struct nodes_ops){ view, drain, n };
}
