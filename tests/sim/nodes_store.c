/*
 * nodes_store.c - the store of test_nodes_sim.c, and CHAIN.
 */
#include "nodes_world.h"

#include "base/mem.h"

#include <stdio.h>

struct sim_folder
copy_of(struct slice s)
{
	char *const p = mem_alloc(s.n + 1);

	CHECK(p);
	if (s.n)
		memcpy(p, s.p, s.n);
	return (struct sim_folder){ p, (uint32_t)s.n };
}

/* ---- CHAIN ---- */

static void
check_chain(struct line_truth *s)
{
	struct line_group g;
	uint64_t begin, epoch;

	if (world.back || !*s->line || !objects_newest(&world.store, s->line, &g))
		return;
	MUST("CHAIN", g.number < NUMBERS && g.number >= s->last && g.epoch >= s->epoch);
	s->epoch = g.epoch;
	begin = g.begin;
	epoch = g.epoch;
	for (uint64_t n = g.number;; n--) {
		MUST("CHAIN", g.epoch <= epoch);
		epoch = g.epoch;
		if (s->answered[n].put)
			MUST("CHAIN", line_mark_eq(s->answered[n], g.mark));
		if (n == begin)
			break;
		MUST("CHAIN", objects_group(&world.store, s->line, n - 1, g.before, &g));
	}
}

void
check_chains(void)
{
	EACH(i, world.shards)
		check_chain(&world.shards[i]);
}

/* ---- Requests ---- */

static void
answer_with(struct trip *f, struct slice bytes)
{
	mem_free(f->object.p);
	f->object = copy_of(bytes);
}

static void
list_names(struct trip *f)
{
	const struct told_request *const r = &f->request;
	struct buf names;
	unsigned n = 0;

	buf_init(&names, SIZE_MAX / 2);
	for (unsigned i = objects_place(&world.store, r->name); i < world.store.n; i++) {
		const char *const name = world.store.at[i].name;

		if (strncmp(name, r->name, strlen(r->name)) != 0)
			break;
		if (strcmp(name, r->after) <= 0)
			continue;
		f->more = n == PAGE;
		if (n++ == PAGE)
			break;
		buf_put(&names, name, strlen(name) + 1);
	}
	answer_with(f, buf_slice(&names));
	buf_release(&names);
}

static void
put(struct trip *f, struct object *o)
{
	const struct slice bytes = { f->object.p, f->object.n };

	if (o && !f->request.replaces) {
		f->result = STORE_EXISTS;
		return;
	}
	if (o)
		objects_remove(&world.store, o);
	objects_put(&world.store, f->request.name, bytes);
}

static void
get(struct trip *f, const struct object *o)
{
	struct slice bytes = { 0 };

	if (o)
		bytes = object_bytes(o);
	else
		f->result = STORE_ABSENT;
	f->size = (uint32_t)bytes.n;
	slice_skip(&bytes, f->request.from < bytes.n ? f->request.from : bytes.n);
	if (f->request.max && f->request.max < bytes.n)
		bytes.n = f->request.max;
	answer_with(f, bytes);
}

/* A fresh reader of the shard looks after each change of its groups and spans. */
static void
note_change(const char *name)
{
	EACH(i, world.shards) {
		const size_t n = strlen(world.shards[i].line);

		if (n && strncmp(name, world.shards[i].line, n) == 0 && name[n] == '/' && !strstr(name, "/payload/"))
			check_chain(&world.shards[i]);
	}
}

void
execute(struct trip *f)
{
	struct object *const o = objects_find(&world.store, f->request.name);

	f->result = STORE_OK;
	switch (f->request.verb) {
	case STORE_PUT:
		put(f, o);
		if (f->result == STORE_OK)
			note_change(f->request.name);
		world.spans += f->result == STORE_OK && strstr(f->request.name, "/span/");
		break;
	case STORE_GET:
		get(f, o);
		break;
	case STORE_LIST:
		list_names(f);
		break;
	case STORE_REMOVE:
		if (!o)
			break;
		objects_remove(&world.store, o);
		note_change(f->request.name);
		break;
	default:
		f->wall = world.now + 1800000000 * SLU_SEC;
	}
}

/* ---- A store that goes back ---- */

static uint64_t
reach_of_spans(const struct line_truth *s)
{
	char prefix[LINE_NAME_MAX];
	uint64_t reach = 0;

	line_prefix(prefix, s->line, LINE_SPAN);
	for (unsigned i = objects_place(&world.store, prefix); i < world.store.n; i++) {
		struct line_span span;

		if (strncmp(world.store.at[i].name, prefix, strlen(prefix)) != 0)
			break;
		CHECK_EQ(0, line_span_decode(&span, object_bytes(&world.store.at[i]), NULL));
		reach = line_span_last(&span);
	}
	return reach;
}

unsigned
lose_groups(struct line_truth *s, unsigned n)
{
	const uint64_t reach = reach_of_spans(s);
	char name[LINE_NAME_MAX];
	struct line_group g;
	unsigned lost = 0;

	while (lost < n && objects_newest(&world.store, s->line, &g) && g.number > reach + 1) {
		line_name(name, s->line, LINE_GROUP, g.number);
		objects_remove(&world.store, objects_find(&world.store, name));
		trace("the store loses %s", name);
		lost++;
	}
	return lost;
}

/* Whether a fresh reader finds the last group that a node was told is confirmed. */
bool
has_answered_groups(struct line_truth *s)
{
	struct line_group g;

	return objects_newest(&world.store, s->line, &g) && g.number >= s->last;
}

/* ---- PAYLOAD ---- */

/* `named`: how many messages have a payload in the store. */
void
check_payloads(uint32_t named)
{
	uint32_t found = 0;

	for (unsigned i = 0; i < world.store.n; i++)
		found += strstr(world.store.at[i].name, "/payload/") != NULL;
	world.payloads += found;
	MUST("PAYLOAD", found == named);
}
