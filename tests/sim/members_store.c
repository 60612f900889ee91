/*
 * members_store.c - the store of the simulated world, and what is true in it.
 */
#include "members_world.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- The store ---- */

char *
copy_of(struct slice s)
{
	char *const p = mem_alloc(s.n + 1);

	if (s.n)
		memcpy(p, s.p, s.n);
	return p;
}

uint64_t
life_number(const uint8_t life[LINE_LIFE])
{
	uint64_t n;

	memcpy(&n, life, sizeof n);
	MUST("CHAIN", n > 0 && n < LIVES);
	return n;
}

/* A group is in the store. An opening behind all others: its node owns the shard. An opening under
 * a removed name does not count (LINE-3). */
static void
note_group(uint32_t shard, const struct line_group *g)
{
	struct truth *const t = &world.truths[shard];
	const uint64_t taker = life_number(g->life);

	if (g->number <= t->last)
		return;
	t->last = g->number;
	if (!g->opening)
		return;
	MUST("CHAIN", g->epoch > t->epoch);
	if (t->life && t->life != taker && !t->deposed_at[t->life]) {
		t->deposed_at[t->life] = world.now;
		t->deposed_decided[t->life] = t->decided[taker];
	}
	t->deposed_at[taker] = 0;
	t->life = taker;
	t->epoch = g->epoch;
}

static void
note_put(const struct line_request *r)
{
	struct line_group g;
	struct beat b;

	if (strncmp(r->name, BEAT_PREFIX, strlen(BEAT_PREFIX)) == 0) {
		MUST("LIVING", 0 == beat_decode(&b, r->object, NULL));
		struct life *const l = &world.lives[life_number(b.life)];

		if (b.number <= l->beat)
			return;
		l->beat = b.number;
		l->last_rise = world.now;
		if (!l->first_beat)
			l->first_beat = world.now;
	} else if (strstr(r->name, "/group/")) {
		MUST("CHAIN", 0 == line_group_decode(&g, r->object, NULL));
		note_group((uint32_t)strtoul(r->name, NULL, 10), &g);
	}
}

static void
note_read(struct flight *f)
{
	uint8_t life[LINE_LIFE];

	if (!beat_life(life, f->request.name))
		return;
	f->read = world.now;
	f->silence = world.now - world.lives[life_number(life)].last_rise;
}

static bool
is_listed(const struct flight *f, const char *name)
{
	for (unsigned i = 0; i < f->answer.n_names; i++)
		if (strcmp(f->names[i], name) == 0)
			return true;
	return false;
}

/* A page without the object of a life shows that it has sent no beat since its object was removed. */
static void
note_page(const struct flight *f)
{
	const char *const end = f->answer.more ? f->names[f->answer.n_names - 1] : NULL;

	for (uint64_t n = 1; n <= world.n_lives; n++) {
		const struct life *const l = &world.lives[n];
		char name[LINE_NAME_MAX];

		beat_name(name, (const uint8_t *)(uint64_t[2]){ n, 0 });
		if (strcmp(name, f->request.after) <= 0 || (end && strcmp(name, end) > 0) || is_listed(f, name) ||
		    l->last_rise > f->read)
			continue;
		world.lives[f->life].read[n] = f->read;
		world.lives[f->life].silence[n] = f->read - l->last_rise;
	}
}

/* The reader knows now. */
void
note_reply(const struct flight *f)
{
	uint8_t life[LINE_LIFE];

	if (f->request.verb == LINE_LIST && f->answer.result == LINE_OK)
		note_page(f);
	if (f->request.verb != LINE_GET || f->answer.result == LINE_FAILED || !beat_life(life, f->request.name))
		return;
	world.lives[f->life].read[life_number(life)] = f->read;
	world.lives[f->life].silence[life_number(life)] = f->silence;
}

static void
list_names(struct flight *f)
{
	const size_t n = strlen(f->request.name);

	f->answer.names = f->name_list;
	for (unsigned i = 0; i < world.store.n; i++) {
		const char *const name = world.store.at[i].name;

		if (strncmp(name, f->request.name, n) != 0 || strcmp(name, f->request.after) <= 0)
			continue;
		if (f->answer.n_names == PAGE) {
			f->answer.more = true;
			return;
		}
		memcpy(f->names[f->answer.n_names], name, LINE_NAME_MAX);
		f->name_list[f->answer.n_names] = f->names[f->answer.n_names];
		f->answer.n_names++;
	}
}

void
execute(struct flight *f)
{
	const struct line_request *const r = &f->request;
	struct object *const o = objects_find(&world.store, r->name);

	f->answer = (struct line_answer){ .result = LINE_OK };
	switch (r->verb) {
	case LINE_PUT:
	case LINE_REPLACE:
		if (o && r->verb == LINE_PUT) {
			f->answer.result = LINE_EXISTS;
			break;
		}
		if (o)
			objects_remove(&world.store, o);
		objects_put(&world.store, r->name, r->object);
		note_put(r);
		break;
	case LINE_GET:
		note_read(f);
		if (o)
			f->answer.object = (struct slice){ copy_of(object_bytes(o)), o->n };
		else
			f->answer.result = LINE_ABSENT;
		break;
	case LINE_LIST:
		f->read = world.now;
		list_names(f);
		break;
	case LINE_REMOVE:
		if (o)
			objects_remove(&world.store, o);
	}
}

/* ---- CHAIN: a fresh reader ---- */

void
check_chain(uint32_t shard)
{
	const struct truth *const t = &world.truths[shard];
	char name[8];
	struct line_group g;
	uint64_t begin, epoch;

	snprintf(name, sizeof name, "%" PRIu32, shard);
	if (!objects_newest(&world.store, name, &g))
		return;
	for (uint64_t n = g.number + 1; n < NUMBERS; n++)
		MUST("CHAIN", !t->answered[n].put);
	begin = g.begin;
	epoch = g.epoch;
	for (uint64_t n = g.number;; n--) {
		MUST("CHAIN", g.epoch <= epoch);
		epoch = g.epoch;
		if (t->answered[n].put)
			MUST("CHAIN", line_mark_eq(t->answered[n], g.mark));
		if (n == begin)
			break;
		MUST("CHAIN", objects_group(&world.store, name, n - 1, g.before, &g));
	}
}
