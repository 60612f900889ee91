/*
 * The line in a world that follows from one number: LINE-1 to LINE-7, LINE-15.
 *
 *      nodes ── lines ── requests ──> the network ──> the store
 *                                       │ late, twice, never, after the sender is gone
 *                                       └ the answer is lost
 *
 * Nodes take the shard from each other at any moment, append, clean, sleep between any two
 * steps, die, and are cloned with life and memory. After every change of the store a fresh
 * reader follows the chain back from the newest group. It must find every group that a node
 * was told is confirmed, down to where the log begins, and epochs never rise on the way back.
 *
 * In a second test the store goes back to an earlier state, and all connections break. An owner
 * that is left alone puts all groups again that the store has lost. If other nodes go on from the
 * earlier state at the same time, either no answered group is missing in the end, or a node
 * has reported that the line is damaged.
 */
#include "line/line_private.h"
#include "objects.h"
#include "seeds.h"
#include "test.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	NODES = 3,
	FLIGHTS = 400,
	NUMBERS = 4000,
	PAGE = 5 /* names of a page of a listing */
};

struct node {
	struct line *line; /* NULL = down */
	uint64_t life;     /* changes with every start */
	bool opened;
	bool over;
	slu_time awake; /* it does and hears nothing before */
	bool cut;       /* its connections are gone, and it has not noticed */
	uint64_t next_read;
	struct line_mark reads[NUMBERS]; /* by number */
	struct buf folder[NUMBERS];      /* the objects that the node has, by number */
};

/* A request on its way. */
struct flight {
	int node;      /* -1 = free */
	uint64_t life; /* of the sender: is it still there? */
	unsigned slot;
	struct line_request request; /* object is a copy */
	bool orphan;                 /* it is executed, perhaps, but not answered */
};

static struct {
	uint64_t seed, dice;
	struct objects store;
	struct node nodes[NODES];
	struct flight flights[FLIGHTS];
	struct line_mark answered[NUMBERS];
	uint64_t last_life, bodies;
	unsigned long confirms, opens, losses, spans, removals, clones;
	unsigned long along;             /* removals of a request with several names */
	unsigned long restored, damages; /* groups; reports */
	slu_time now;

	/* The store goes back to this. */
	struct objects saved;
	bool went_back;
	bool conflict; /* two groups of one number are confirmed */
	bool lacked;   /* a node does not have a group from before the beginning */
} world;

/* CHECK, with the seed that shows it again. */
#define MUST(cond)                                                                                     \
	do {                                                                                           \
		if (!(cond))                                                                           \
			test_fail(__FILE__, __LINE__, "LINE_FROM=%" PRIu64 ": %s", world.seed, #cond); \
	} while (0)

static uint64_t
dice(uint64_t n)
{
	world.dice ^= world.dice << 13;
	world.dice ^= world.dice >> 7;
	world.dice ^= world.dice << 17;
	return n ? world.dice % n : world.dice;
}

/* ---- The fresh reader ---- */

/* Every answered group is in the chain behind the newest group. */
static void
check_store(void)
{
	struct line_group g;
	uint64_t begin, epoch;

	if (!objects_newest(&world.store, "s", &g))
		return;
	for (uint64_t n = g.number + 1; n < NUMBERS; n++)
		MUST(!world.answered[n].put); /* behind the newest one */
	begin = g.begin;
	epoch = g.epoch;
	for (uint64_t n = g.number;; n--) {
		MUST(g.epoch <= epoch);
		epoch = g.epoch;
		if (world.answered[n].put)
			MUST(line_mark_eq(world.answered[n], g.mark));
		if (n == begin)
			break;
		if (!objects_group(&world.store, "s", n - 1, g.before, &g))
			test_fail(__FILE__, __LINE__, "LINE_FROM=%" PRIu64 ": group %" PRIu64 " is gone",
				  world.seed, n - 1);
	}
}

/* ---- Nodes ---- */

static uint64_t
draw(void *arg)
{
	(void)arg;
	return dice(0) | 1;
}

static void
keep(struct node *n, uint64_t number, struct slice object)
{
	struct buf *const b = &n->folder[number];

	MUST(number < NUMBERS);
	buf_release(b);
	buf_init(b, SIZE_MAX / 2);
	buf_put(b, object.p, object.n);
}

static void
on_again(void *arg, uint64_t number, struct buf *out)
{
	const struct node *const n = arg;

	buf_put(out, n->folder[number].p, n->folder[number].n);
	world.lacked = world.lacked || out->n == 0;
}

static void
on_restored(void *arg, uint64_t first, uint64_t n)
{
	(void)arg;
	MUST(world.went_back && first > 0 && n > 0);
	world.restored += n;
}

static void
on_read(void *arg, const struct line_group *g, struct slice object)
{
	struct node *const n = arg;

	keep(n, g->number, object);
	MUST(n->next_read == 0 || g->number == n->next_read);
	MUST(g->number < NUMBERS);
	n->reads[g->number] = g->mark;
	n->next_read = g->number + 1;
}

static void
on_opened(void *arg)
{
	struct node *const n = arg;
	const struct line_facts f = line_facts(n->line);

	n->opened = true;
	world.opens++;
	for (uint64_t i = f.begin; i < f.last && !world.went_back; i++) {
		MUST(n->reads[i].put != 0);
		if (world.answered[i].put)
			MUST(line_mark_eq(n->reads[i], world.answered[i]));
	}
}

static void
on_confirmed(void *arg, const struct line_known *group)
{
	struct line_mark *const a = &world.answered[group->number];

	(void)arg;
	if (a->put && !line_mark_eq(*a, group->mark)) {
		MUST(world.went_back); /* two contents of one number */
		world.conflict = true;
	}
	*a = group->mark;
	world.confirms++;
}

static void
on_lost(void *arg, const struct slu_err *why)
{
	struct node *const n = arg;

	if (why->code != SLU_EBUSY && !world.went_back)
		test_fail(__FILE__, __LINE__, "LINE_FROM=%" PRIu64 ": lost: %s", world.seed, why->text);
	world.damages += why->code == SLU_ECORRUPT || strstr(why->text, "cannot compare");
	n->over = true;
	world.losses++;
}

static void
stop(struct node *n)
{
	if (!n->line)
		return;
	for (unsigned i = 0; i < FLIGHTS; i++)
		if (world.flights[i].node >= 0 && &world.nodes[world.flights[i].node] == n)
			world.flights[i].orphan = true;
	for (unsigned i = 0; i < NUMBERS; i++)
		buf_release(&n->folder[i]);
	line_free(n->line);
	n->line = NULL;
}

static void
start(struct node *n)
{
	struct line_conf conf = {
		.shard = "s",
		.span_groups = 2 + (uint32_t)dice(6),
		.loose_groups = 8 + (uint32_t)dice(4),
		.removes = (uint32_t)dice(6),
		.span_bytes = 1 << 20,
		.retry = { .base = 1, .max = 4 },
		.random = draw,
		.read = on_read,
		.opened = on_opened,
		.confirmed = on_confirmed,
		.again = on_again,
		.restored = on_restored,
		.lost = on_lost,
		.arg = n,
	};

	memset(n, 0, sizeof *n);
	n->life = ++world.last_life;
	memcpy(conf.life, &n->life, sizeof n->life);
	MUST(0 == line_new(&n->line, &conf));
	line_take(n->line);
}

static void
copy_buf(struct buf *b)
{
	const struct buf old = *b;

	buf_init(b, old.max);
	buf_put(b, old.p, old.n);
}

static void
copy_array(uint64_t **p, uint32_t n, uint32_t size)
{
	uint64_t *const copy = mem_array(size + 1, sizeof *copy);

	if (n)
		memcpy(copy, *p, n * sizeof *copy);
	*p = copy;
}

/* A virtual machine is copied while it runs: what was sent is answered to the original; the
 * copy has lost its connections, so it reopens the line: at once, or when its next request fails. */
static void
clone_node(struct node *to, const struct node *from)
{
	struct line *const l = mem_alloc(sizeof *l);

	stop(to);
	*to = *from;
	for (unsigned i = 0; i < NUMBERS; i++)
		if (from->folder[i].n)
			copy_buf(&to->folder[i]);
	*l = *from->line;
	to->line = l;
	l->conf.arg = to;
	copy_buf(&l->out);
	copy_buf(&l->pending);
	copy_buf(&l->span);
	copy_buf(&l->also);
	copy_buf(&l->loose.bytes);
	copy_array(&l->loose.lengths, l->loose.n, l->loose.size);
	copy_array(&l->spans.p, l->spans.n, l->spans.size);
	copy_array(&l->openings.p, l->openings.n, l->openings.size);
	copy_array(&l->found.p, l->found.n, l->found.size);
	for (unsigned i = 0; i < LINE_SLOTS; i++) {
		copy_buf(&l->slots[i].object);
		l->slots[i].sent = false;
	}
	if (l->has_pending)
		MUST(0 == line_group_decode(&l->pending_group, buf_slice(&l->pending), NULL));
	l->slots[LINE_MAIN].request.object = buf_slice(&l->out);
	l->slots[LINE_BACK].request.object = buf_slice(l->slots[LINE_BACK].request.verb == LINE_REMOVE ? &l->also : &l->span);
	to->cut = dice(2);
	if (!to->cut)
		line_reopen(l);
	world.clones++;
}

/* ---- The network ---- */

static struct flight *
free_flight(void)
{
	for (unsigned i = 0; i < FLIGHTS; i++)
		if (world.flights[i].node < 0)
			return &world.flights[i];
	return NULL;
}

static void
copy_object(struct line_request *r)
{
	char *const p = mem_alloc(r->object.n + 1);

	if (r->object.n)
		memcpy(p, r->object.p, r->object.n);
	r->object.p = p;
}

/* The first request of a copy fails before it is sent. */
static void
notice(struct node *n, unsigned slot)
{
	n->cut = false;
	line_reply(n->line, slot, &(struct line_answer){ .result = LINE_FAILED }, world.now);
	line_reopen(n->line);
}

static void
send_requests(int i)
{
	struct node *const n = &world.nodes[i];
	struct line_request r;

	while (n->line && line_next(n->line, world.now, &r)) {
		struct flight *const f = free_flight();

		if (n->cut) {
			notice(n, r.slot);
			continue;
		}
		MUST(f);
		*f = (struct flight){ .node = i, .life = n->life, .slot = r.slot, .request = r };
		copy_object(&f->request);
		if (r.verb == LINE_PUT && strstr(r.name, "/group/"))
			keep(n, line_number(r.name, "s", LINE_GROUP), r.object);
	}
}

static void
land(struct flight *f)
{
	mem_free((char *)f->request.object.p);
	f->node = -1;
}

/* The request is executed once more, at any later time: nobody hears of it. */
static void
echo(const struct flight *f)
{
	struct flight *const again = free_flight();

	if (!again || (f->request.verb != LINE_PUT && f->request.verb != LINE_REMOVE))
		return;
	*again = *f;
	again->orphan = true;
	copy_object(&again->request);
}

static void
list_names(const struct line_request *r, struct line_answer *a, const char *names[PAGE])
{
	const size_t n = strlen(r->name);

	a->names = names;
	for (unsigned i = 0; i < world.store.n; i++) {
		const char *const name = world.store.at[i].name;

		if (strncmp(name, r->name, n) != 0 || strcmp(name, r->after) <= 0)
			continue;
		if (a->n_names == PAGE) {
			a->more = true;
			return;
		}
		names[a->n_names++] = name;
	}
}

static void
add(const struct line_request *r)
{
	objects_put(&world.store, r->name, r->object);
	world.spans += strstr(r->name, "/span/") != NULL;
}

static void
remove_named(const char *name)
{
	struct object *const o = objects_find(&world.store, name);

	if (!o)
		return;
	objects_remove(&world.store, o);
	world.removals++;
}

static void
execute(const struct line_request *r, struct line_answer *a, const char *names[PAGE])
{
	struct object *const o = objects_find(&world.store, r->name);

	*a = (struct line_answer){ .result = LINE_OK };
	switch (r->verb) {
	case LINE_PUT:
		if (o)
			a->result = LINE_EXISTS;
		else
			add(r);
		break;
	case LINE_GET:
		if (o)
			a->object = object_bytes(o);
		else
			a->result = LINE_ABSENT;
		break;
	case LINE_LIST:
		list_names(r, a, names);
		break;
	case LINE_REMOVE:
		a->result = o ? LINE_OK : LINE_ABSENT;
		remove_named(r->name);
		for (struct slice more = r->object; more.n > 0; slice_skip(&more, strlen(more.p) + 1), world.along++)
			remove_named(more.p);
		break;
	case LINE_REPLACE: /* nodes alone */
		MUST(false);
	}
}

static void
deliver(struct flight *f)
{
	struct node *const n = &world.nodes[f->node];
	const bool is_heard = !f->orphan && n->line && n->life == f->life &&
			      n->line->slots[f->slot].sent;
	const char *names[PAGE];
	struct line_answer a = { .result = LINE_FAILED };
	const uint64_t fate = dice(20);

	if (fate == 0)
		echo(f);
	if (fate != 1 || f->orphan)
		execute(&f->request, &a, names);
	else
		echo(f); /* it is on its way for long */
	if (fate == 2)
		a.result = LINE_FAILED;
	if (is_heard)
		line_reply(n->line, f->slot, &a, world.now);
	land(f);
	if (!world.went_back)
		check_store();
}

/* ---- A schedule ---- */

static void
append(struct node *n)
{
	char body[32];

	if (!n->line || !line_is_ready(n->line) || line_facts(n->line).last + 2 >= NUMBERS)
		return;
	if (dice(20) == 0)
		line_span(n->line);
	if (dice(6) == 0) {
		const struct line_facts f = line_facts(n->line);

		line_begin(n->line, dice(2) ? f.last : f.begin + dice(f.last - f.begin + 1));
	}
	snprintf(body, sizeof body, "body %" PRIu64, ++world.bodies);
	MUST(line_append(n->line, slice_of(body), (int64_t)world.now) > 0);
}

static bool
is_awake(const struct flight *f)
{
	return f->node >= 0 && (f->orphan || world.nodes[f->node].awake <= world.now);
}

static void
deliver_any(void)
{
	unsigned from = (unsigned)dice(FLIGHTS);

	for (unsigned k = 0; k < FLIGHTS; k++, from = (from + 1) % FLIGHTS)
		if (is_awake(&world.flights[from])) {
			deliver(&world.flights[from]);
			return;
		}
}

static void
step(void)
{
	const int i = (int)dice(NODES);
	struct node *const n = &world.nodes[i];
	const uint64_t what = dice(100);

	world.now++;
	if (n->awake > world.now && what < 55)
		return;
	if (what < 1) {
		n->awake = world.now + (slu_time)(dice(10) ? dice(60) : dice(1000));
	} else if (what < 2) {
		stop(n);
	} else if (what < 5) {
		if (!n->line || n->over) {
			stop(n);
			start(n);
		}
	} else if (what < 6) {
		if (n->line && !n->over && dice(4) == 0)
			clone_node(&world.nodes[(i + 1) % NODES], n);
	} else if (what < 30) {
		append(n);
	} else if (what < 55) {
		send_requests(i);
	} else {
		deliver_any();
	}
}

/* ---- A store that goes back ---- */

/* All connections break; every node that is up learns it. */
static void
go_back(void)
{
	const struct line_answer failed = { .result = LINE_FAILED };

	world.went_back = true;
	objects_clear(&world.store);
	objects_copy(&world.store, &world.saved);
	for (unsigned i = 0; i < FLIGHTS; i++) {
		struct flight *const f = &world.flights[i];

		if (f->node >= 0 && !f->orphan)
			line_reply(world.nodes[f->node].line, f->slot, &failed, world.now);
		if (f->node >= 0)
			land(f);
	}
	for (unsigned i = 0; i < NODES; i++)
		if (world.nodes[i].line && !world.nodes[i].over)
			line_reopen(world.nodes[i].line);
}

/* Nodes finish what they do; no node begins anything. */
static void
settle(void)
{
	for (unsigned i = 0; i < NODES; i++)
		world.nodes[i].awake = 0;
	for (unsigned idle = 0; idle < 10; idle++) { /* the longest back-off is shorter */
		world.now++;
		for (int i = 0; i < NODES; i++)
			send_requests(i);
		for (unsigned i = 0; i < FLIGHTS; i++)
			if (world.flights[i].node >= 0) {
				deliver(&world.flights[i]);
				idle = 0;
			}
	}
}

/* The node that put the newest group and knows it; NULL if there is no such node. */
static struct node *
owner(void)
{
	struct line_group newest;

	if (!objects_newest(&world.store, "s", &newest))
		return NULL;
	for (unsigned i = 0; i < NODES; i++) {
		const struct line *const l = world.nodes[i].line;

		if (l && line_is_ready(l) && line_mark_eq(line_facts(l).mark, newest.mark))
			return &world.nodes[i];
	}
	return NULL;
}

static void
begin(uint64_t seed)
{
	world.seed = seed;
	world.dice = seed * 0x9E3779B97F4A7C15u | 1;
	world.now = 0;
	world.bodies = 0;
	world.went_back = world.conflict = world.lacked = false;
	memset(world.answered, 0, sizeof world.answered);
	for (unsigned i = 0; i < FLIGHTS; i++)
		world.flights[i].node = -1;
	for (unsigned i = 0; i < NODES; i++)
		world.nodes[i].awake = 0;
}

static void
end(void)
{
	for (unsigned i = 0; i < NODES; i++)
		stop(&world.nodes[i]);
	for (unsigned i = 0; i < FLIGHTS; i++)
		if (world.flights[i].node >= 0)
			land(&world.flights[i]);
	objects_clear(&world.store);
	objects_clear(&world.saved);
}

static void
run(uint64_t seed)
{
	const unsigned steps = 300 + (unsigned)(seed % 7) * 300;

	begin(seed);
	for (unsigned i = 0; i < steps; i++)
		step();
	end();
}

/* The owner is alone: it puts all that the store has lost again, or reports that it lacks groups
 * from before the beginning of the log. */
static void
run_back_alone(struct node *n)
{
	for (unsigned i = 0; i < NODES; i++)
		if (&world.nodes[i] != n)
			stop(&world.nodes[i]);
	go_back();
	settle();
	if (world.lacked) {
		MUST(n->over);
		return;
	}
	MUST(!n->over && line_is_ready(n->line));
	check_store();
	append(n);
	settle();
	check_store();
}

/* Other nodes go on from the earlier state. No node dies, so no group is lost unseen. */
static void
run_back_among_others(void)
{
	const unsigned long damages = world.damages;

	go_back();
	for (unsigned i = 0; i < 200; i++) {
		const int k = (int)dice(NODES);
		struct node *const n = &world.nodes[k];

		if (dice(20) == 0 && (!n->line || n->over)) {
			stop(n);
			start(n);
		}
		send_requests(k);
		append(n);
		deliver_any();
	}
	settle();
	MUST(!world.conflict || world.damages > damages);
	if (world.damages == damages)
		check_store();
}

static void
run_back(uint64_t seed)
{
	unsigned steps;

	begin(seed);
	steps = (unsigned)dice(500);
	for (unsigned i = 0; i < steps; i++)
		step();
	objects_copy(&world.saved, &world.store);
	steps = (unsigned)dice(200);
	for (unsigned i = 0; i < steps || !owner(); i++)
		step();
	if (dice(2))
		run_back_alone(owner());
	else
		run_back_among_others();
	end();
}

TEST_LIMIT(LINE_15_no_answered_group_is_missing_unseen_after_a_store_went_back, 600)
{
	const struct seeds seeds = seeds_of("LINE", 1000);

	EACH_SEED(seed, seeds)
	run_back(seed);
	printf("# %lu confirmed, %lu restored, %lu reports of damage\n", world.confirms, world.restored,
	       world.damages);
	CHECK(seeds.n < 100 || (world.restored > seeds.n && world.damages > 0));
}

/* Schedules in which a planted break shows that few others notice. */
static const uint64_t hard[] = { 6058, 7909, 11715, 21963, 60118 };

TEST_LIMIT(no_schedule_loses_an_answered_group, 600)
{
	const struct seeds seeds = seeds_of("LINE", 3000);

	EACH(i, hard)
		run(hard[i]);
	EACH_SEED(seed, seeds)
	run(seed);
	printf("# %lu confirmed, %lu opened, %lu lost, %lu spans, %lu removed, %lu cloned\n", world.confirms,
	       world.opens, world.losses, world.spans, world.removals, world.clones);
	CHECK(world.confirms > seeds.n && world.opens > seeds.n && world.spans > 0 && world.clones > 0 && world.along > 0);
}
