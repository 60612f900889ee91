/*
 * members_node.c - the nodes of the simulated world: settings, members, a line for each shard.
 */
#include "members_world.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Nodes ---- */

slu_time
clock_of(const struct sim_node *n)
{
	return world.now < n->still_until ? n->still_clock : world.now - n->boot;
}

static uint64_t
draw(void *arg)
{
	(void)arg;
	return dice(0) | 1;
}

static void
on_read(void *arg, const struct line_group *g, struct slice object)
{
	(void)arg;
	(void)g;
	(void)object;
}

static void
on_opened(void *arg)
{
	struct sim_shard *const s = arg;

	const uint64_t epoch = line_facts(s->line).epoch;

	check_chain(s->number);
	world.opens++;
	s->open = members_opened(s->node->members, s->number, epoch);
	s->over = !s->open;
	MUST("HAND", s->over || epoch > world.lives[s->node->life].closed[s->number]);
}

static void
on_confirmed(void *arg, const struct line_known *group)
{
	struct sim_shard *const s = arg;
	struct line_mark *const a = &world.truths[s->number].answered[group->number];

	MUST("CHAIN", !a->put || line_mark_eq(*a, group->mark));
	*a = group->mark;
	world.confirms++;
}

static void
on_lost(void *arg, const struct slu_err *why)
{
	struct sim_shard *const s = arg;

	if (why->code != SLU_EBUSY)
		test_fail(__FILE__, __LINE__, "MEMBERS_FROM=%" PRIu64 ": lost: %s", world.seed, why->text);
	s->over = true;
	world.losses++;
}

/* LAPSED. read: when the taker read the object of this life last. */
static void
check_lapsed(uint64_t life, slu_time read)
{
	for (int i = 0; i < NODES; i++) {
		const struct sim_node *const n = &world.nodes[i];
		const bool runs = n->up && n->life == life && n->members && n->still_until == 0;
		const slu_time lapses = runs ? members_lapses(n->members) : SLU_NEVER;

		if (lapses == SLU_NEVER)
			continue;
		world.lapses++;
		MUST("LAPSED", lapses <= clock_of(n) || n->members->lease_since + n->boot >= read);
	}
}

/* LIVING */
static void
check_living(const struct sim_shard *s, const struct line_group *newest)
{
	const struct sim_node *const n = s->node;
	const uint64_t from = life_number(newest->life);
	const struct life *const owner = &world.lives[from];
	struct truth *const t = &world.truths[s->number];
	const slu_time read = world.lives[n->life].read[from];

	t->decided[n->life] = read;
	if (from == n->life || owner->closed[s->number] >= newest->epoch)
		return;
	world.takes++;
	MUST("LIVING", world.lives[n->life].silence[from] >= LEASE);
	MUST("LIVING", read - n->failed >= LEASE);
	check_lapsed(from, read);
}

static bool
on_may_take(void *arg, const struct line_group *newest)
{
	struct sim_shard *const s = arg;

	if (!members_may_take(s->node->members, s->number, newest, clock_of(s->node)))
		return false;
	check_living(s, newest);
	return true;
}

static const char *const shard_names[SHARDS] = { "0", "1", "2" };

static void
open_line(struct sim_shard *s)
{
	struct line_conf conf = {
		.shard = shard_names[s->number],
		.span_groups = 3 + (uint32_t)dice(6),
		.span_bytes = 1 << 20,
		.retry = { .base = 20 * SLU_MS, .max = 500 * SLU_MS },
		.random = draw,
		.may_take = on_may_take,
		.read = on_read,
		.opened = on_opened,
		.confirmed = on_confirmed,
		.lost = on_lost,
		.arg = s,
	};

	memcpy(conf.life, &s->node->life, sizeof s->node->life);
	s->open = s->over = s->closing = false;
	MUST("CHAIN", 0 == line_new(&s->line, &conf));
	line_take(s->line);
}

static void
close_line(struct sim_shard *s)
{
	orphan(s->node, s->line);
	line_free(s->line);
	s->line = NULL;
	s->open = false;
}

static void
close_shard(struct sim_shard *s)
{
	const uint64_t epoch = line_facts(s->line).put_epoch;
	uint64_t *const closed = &world.lives[s->node->life].closed[s->number];

	close_line(s);
	*closed = epoch > *closed ? epoch : *closed;
	members_closed(s->node->members, s->number, epoch, clock_of(s->node));
}

void
halt(struct sim_node *n)
{
	orphan(n, NULL);
	for (uint32_t i = 0; i < SHARDS; i++)
		if (n->shards[i].line)
			close_line(&n->shards[i]);
	members_free(n->members);
	n->members = NULL;
	n->up = false;
}

void
start(struct sim_node *n)
{
	struct settings proposal = { .format = 1, .shards = SHARDS };
	const struct slu_backoff retry = { .base = 50 * SLU_MS, .max = SLU_SEC };
	const int i = (int)(n - world.nodes);

	if (world.n_lives + 1 == LIVES)
		return;
	memset(n, 0, sizeof *n);
	n->up = true;
	n->life = ++world.n_lives;
	n->boot = -(slu_time)dice(1000) * SLU_SEC;
	snprintf(n->name, sizeof n->name, "n%d", i);
	snprintf(n->address, sizeof n->address, "a%d", i);
	for (uint32_t k = 0; k < SHARDS; k++)
		n->shards[k] = (struct sim_shard){ .node = n, .number = k };
	for (unsigned k = 0; k < sizeof proposal.uuid; k++)
		proposal.uuid[k] = (uint8_t)dice(256);
	settings_search_init(&n->search, &proposal, &retry);
}

static void
join(struct sim_node *n)
{
	struct members_conf conf = {
		.name = n->name,
		.address = n->address,
		.version = "1",
		.shards = n->search.settings.shards,
		.format = n->search.settings.format,
		.writes = 2,
		.reads = 2,
		.lease = LEASE,
		.hand_over = HAND_OVER,
		.forget = 20 * SLU_SEC,
	};

	if (!world.settings.version)
		world.settings = n->search.settings;
	MUST("SETTLED", memcmp(&world.settings, &n->search.settings, sizeof world.settings) == 0);
	memcpy(conf.life, &n->life, sizeof n->life);
	MUST("SETTLED", 0 == members_new(&n->members, &conf));
	n->next_append = world.now;
}
/* ---- What a node does when it runs ---- */

/* FRESH: the node answers a read without a put. */
static void
answer_read(const struct sim_shard *s)
{
	const struct sim_node *const n = s->node;
	const struct truth *const t = &world.truths[s->number];
	const slu_time chain = n->members->lease_since + n->boot;

	if (!members_is_fresh(n->members, line_facts(s->line).proved, clock_of(n))) {
		world.stale++;
		return;
	}
	world.fresh++;
	if (n->still_until >= chain || !t->deposed_at[n->life])
		return;
	MUST("FRESH", t->deposed_at[n->life] >= chain);
	MUST("FRESH", t->deposed_decided[n->life] <= chain);
}

static void
append(struct sim_shard *s)
{
	const struct line_facts f = line_facts(s->line);
	const slu_time wall = world.now + (s->node - world.nodes) * 24 * SLU_HOUR;
	char body[32];

	if (!line_is_ready(s->line) || f.last + 2 >= NUMBERS)
		return;
	if (dice(6) == 0)
		line_begin(s->line, f.begin + dice(f.last - f.begin + 1));
	snprintf(body, sizeof body, "body %" PRIu64, ++world.bodies);
	MUST("CHAIN", line_append(s->line, slice_of(body), wall) > 0);
}

/* HAND */
static void
hand_over(struct sim_shard *s, const struct members_event *e)
{
	const struct members *const m = s->node->members;

	world.hand_overs++;
	if (!m->draining)
		MUST("HAND", world.now - world.lives[life_number(e->life)].first_beat >= HAND_OVER);
	s->closing = true;
}

static void
note_owner(struct sim_shard *s)
{
	struct members_node owner;

	(void)members_owner(s->node->members, s->number, &owner);
	snprintf(s->told, sizeof s->told, "%s", owner.address);
}

static void
do_event(struct sim_node *n, const struct members_event *e)
{
	struct sim_shard *const s = &n->shards[e->shard];

	switch (e->kind) {
	case MEMBERS_TAKE:
		open_line(s);
		break;
	case MEMBERS_HAND_OVER:
		hand_over(s, e);
		break;
	case MEMBERS_LOST:
		close_shard(s);
		break;
	case MEMBERS_OWNER:
		world.owners++;
		note_owner(s);
		break;
	case MEMBERS_LEASE:
		break; /* these shards have no ops that wait */
	}
}

static void
run_shard(struct sim_shard *s, bool works)
{
	struct line_request r;

	if (s->line && !s->over && s->open) {
		answer_read(s);
		if (works && !s->closing && dice(3))
			append(s);
	}
	while (s->line && s->node->awake <= world.now && line_next(s->line, clock_of(s->node), &r))
		send_request(s->node, LINE, s->number, &r);
	if (s->line && (s->over || (s->closing && line_is_ready(s->line))))
		close_shard(s);
}

static void
run_members(struct sim_node *n)
{
	struct members_event e;
	struct line_request r;

	while (n->awake <= world.now && members_event(n->members, clock_of(n), &e))
		do_event(n, &e);
	for (uint32_t i = 0; i < SHARDS; i++)
		run_shard(&n->shards[i], n->next_append <= world.now);
	if (n->next_append <= world.now)
		n->next_append = world.now + (slu_time)(200 + dice(1200)) * SLU_MS;
	while (n->awake <= world.now && members_next(n->members, clock_of(n), &r))
		send_request(n, MEMBERS, 0, &r);
	if (n->stopping && members_is_drained(n->members))
		halt(n);
}

void
run_node(struct sim_node *n)
{
	struct line_request r;

	if (!n->up || n->awake > world.now)
		return;
	while (!n->members && settings_search_next(&n->search, clock_of(n), &r))
		send_request(n, SEARCH, 0, &r);
	if (!n->members && n->search.found)
		join(n);
	if (n->members)
		run_members(n);
}

/* When the node has something to do, if no reply comes; by its boot clock. */
static slu_time
wants_to_run(const struct sim_node *n)
{
	slu_time at;

	if (!n->members)
		return n->search.sent ? SLU_NEVER : n->search.not_before;
	at = members_due(n->members);
	for (uint32_t i = 0; i < SHARDS; i++) {
		const slu_time line = n->shards[i].line ? line_due(n->shards[i].line) : SLU_NEVER;

		at = line < at ? line : at;
	}
	return n->next_append - n->boot < at ? n->next_append - n->boot : at;
}

slu_time
due(const struct sim_node *n)
{
	const slu_time at = n->up ? wants_to_run(n) : SLU_NEVER;

	if (at == SLU_NEVER)
		return at;
	return at + n->boot > n->awake ? at + n->boot : n->awake;
}
