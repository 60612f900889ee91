/*
 * move.c - moves a queue from one shard to another: broker/move/copy.h. A request moves for
 * MOVE_TIME at most and answers with what is left; the client repeats it until it is done.
 */
#include "api/admin/admin.h"

#include "api/handler.h"
#include "broker/move/copy.h"
#include "core/reserved.h"

#include <stdio.h>

enum {
	MOVE_QUEUES = 200 /* queues that an answer lists */
};

#define MOVE_TIME SLU_SEC

struct move_row {
	char space[MESSAGE_NAME_MAX + 1];
	struct move_report told;
};

/* A namespace whose override in the shard map names a third shard. */
struct skip {
	char space[MESSAGE_NAME_MAX + 1];
	const char *shard; /* lives as long as the broker */
};

struct state {
	struct slice command;
	struct slice tenant;
	struct slice from, to;
	uint32_t batch;
	bool dry_run;
	bool force_expire;

	/* For the job. */
	char names[2][SHARDMAP_NAME];
	slu_time until;
	struct move_row *rows;
	uint32_t n;
	struct skip *skipped;
	uint32_t n_skipped;
	struct move_report sum;
	struct slu_err err;
};

/* A queue, or the lock keys, schedules, tasks or batches, which live in queues with reserved names. */
static int
param_read_command(const struct param *p, struct param_text text, void *place,
		   struct slu_err *err)
{
	const struct slice name = { text.p, text.n };

	if (!reserved_moves(name))
		return param_read_name(p, text, place, err);
	*(struct slice *)place = name;
	return 0;
}

static const struct param move_params[] = {
	PARAM(command, struct state, command, .required = true),
	PARAM(name, struct state, tenant),
	PARAM(name, struct state, from, .required = true),
	PARAM(name, struct state, to, .required = true),
	PARAM(count, struct state, batch, .min = 1, .max = MOVECOPY_BATCH_MAX),
	PARAM(flag, struct state, dry_run),
	PARAM(flag, struct state, force_expire),
};

/* --- the job, on a file thread -------------------------------------------------- */

static void
add_up(struct move_report *sum, const struct move_report *one)
{
	sum->taken += one->taken;
	sum->messages += one->messages;
	sum->moved += one->moved;
	sum->batches += one->batches;
	sum->left += one->left;
	sum->dead += one->dead;
	sum->leased += one->leased;
	sum->damaged += one->damaged;
	sum->remembered += one->remembered;
	sum->results += one->results;
	sum->there += one->there;
	sum->by_hand |= one->by_hand;
	sum->resumed |= one->resumed;
	sum->done &= one->done;
}

static int
move_one(void *arg, struct slice space)
{
	struct apicall *const a = arg;
	struct state *const s = a->state;
	const slu_time now = clock_mono(a->api->clock);
	const struct move_request apicall = {
		.from = s->names[0],
		.to = s->names[1],
		.space = space,
		.queue = s->command,
		.batch = s->batch,
		.force = s->force_expire,
		.dry = s->dry_run || now >= s->until,
		.budget = s->until - now,
	};
	struct move_report told;
	const int rc = movecopy_move(a->api->broker, &apicall, &told, &s->err);

	add_up(&s->sum, &told);
	if (s->n < MOVE_QUEUES) {
		struct move_row *const r = &s->rows[s->n++];

		(void)snprintf(r->space, sizeof r->space, "%.*s", (int)space.n, space.p);
		r->told = told;
	}
	return rc;
}

/* The shard that the override of a namespace names, if it is neither of the two; or NULL. */
static const char *
third_shard(const struct apicall *a, struct slice space)
{
	const struct state *const s = a->state;
	struct broker_place place;
	struct slu_err err;

	if (broker_place(a->api->broker, NULL, space, s->command, &place, &err) ||
	    strcmp(place.rule, "tenant") != 0 || strcmp(place.shard, s->names[0]) == 0 ||
	    strcmp(place.shard, s->names[1]) == 0)
		return NULL;
	return place.shard;
}

/* Unless the caller names it, a namespace with a home of its own has nothing to do with a move
 * between two other shards. */
static int
move_unless_third(void *arg, struct slice space)
{
	struct apicall *const a = arg;
	struct state *const s = a->state;
	const char *const shard = third_shard(a, space);

	if (!shard)
		return move_one(a, space);
	if (s->n_skipped < MOVE_QUEUES) {
		struct skip *const skip = &s->skipped[s->n_skipped++];

		(void)snprintf(skip->space, sizeof skip->space, "%.*s", (int)space.n, space.p);
		skip->shard = shard;
	}
	return 0;
}

static int
move(struct apicall *a)
{
	struct state *const s = a->state;

	s->until = clock_mono(a->api->clock) + MOVE_TIME;
	s->sum.done = true;
	if (s->tenant.n)
		return move_one(a, s->tenant);
	return movecopy_spaces(a->api->broker, s->names[0], s->command, move_unless_third, a, &s->err);
}

/* --- answer ------------------------------------------------------------------- */

static void
write_told(struct json_out *w, const struct move_report *t)
{
	json_out_u64(w, "moved", t->moved);
	json_out_u64(w, "taken", t->messages);
	json_out_u64(w, "batches", t->batches);
	json_out_u64(w, "left", t->left);
	json_out_u64(w, "leased", t->leased);
	json_out_u64(w, "dead", t->dead);
	json_out_u64(w, "damaged", t->damaged);
	json_out_u64(w, "idempotency_keys", t->remembered);
	json_out_u64(w, "results", t->results);
	json_out_u64(w, "there", t->there);
	json_out_bool(w, "by_hand", t->by_hand);
	json_out_bool(w, "resumed", t->resumed);
	json_out_bool(w, "done", t->done);
}

static void
write_skipped(struct json_out *w, const struct state *s)
{
	json_out_array(w, "skipped");
	for (uint32_t i = 0; i < s->n_skipped; i++) {
		json_out_object(w, NULL);
		json_out_str(w, "namespace", slice_of(s->skipped[i].space));
		json_out_str(w, "shard", slice_of(s->skipped[i].shard));
		json_out_close(w);
	}
	json_out_close(w);
}

static void
answer_move(struct apicall *a, int rc)
{
	const struct state *const s = a->state;
	struct json_out w;

	if (rc && s->err.code) {
		apicall_refuse_err(a, &s->err, -1);
		return;
	}
	if (apicall_refused(a, rc, NULL))
		return;
	apicall_object(a, &w);
	write_told(&w, &s->sum);
	json_out_array(&w, "queues");
	for (uint32_t i = 0; i < s->n; i++) {
		json_out_object(&w, NULL);
		json_out_str(&w, "namespace", slice_of(s->rows[i].space));
		write_told(&w, &s->rows[i].told);
		json_out_close(&w);
	}
	json_out_close(&w);
	write_skipped(&w, s);
	apicall_reply_object(a, &w, 200);
}

/* False: unknown shard, or both are the same; the call was refused. */
static bool
take_shards(struct apicall *a)
{
	struct state *const s = a->state;
	const struct slice given[] = { s->from, s->to };
	char text[200];

	for (int i = 0; i < 2; i++) {
		(void)snprintf(s->names[i], sizeof s->names[i], "%.*s", (int)given[i].n, given[i].p);
		if (given[i].n < sizeof s->names[i] &&
		    broker_lane_on(a->api->broker, s->names[i], SLICE("a"), s->command) != UINT32_MAX)
			continue;
		(void)snprintf(text, sizeof text, "unknown shard: %.*s", (int)given[i].n, given[i].p);
		apicall_refuse(a, SLU_ENOTFOUND, text);
		return false;
	}
	if (!slice_eq(s->from, s->to))
		return true;
	(void)snprintf(text, sizeof text, "invalid move from %s to %s; expected two shards", s->names[0], s->names[1]);
	apicall_refuse(a, SLU_EINVAL, text);
	return false;
}

static void
start(struct apicall *a)
{
	struct state *const s = a->state;

	if (!take_shards(a))
		return;
	s->rows = arena_array(&a->memory, MOVE_QUEUES, sizeof *s->rows);
	s->skipped = arena_array(&a->memory, MOVE_QUEUES, sizeof *s->skipped);
	if (s->rows && s->skipped)
		apicall_job(a, move, answer_move);
	else
		apicall_refuse(a, SLU_ENOMEM, NULL);
}

const struct handler admin_move = { start, sizeof(struct state), BODY_ROWS(move_params) };
