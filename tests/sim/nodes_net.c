/*
 * nodes_net.c - nodes as processes; requests and answers on their way: late, lost, twice.
 */
#include "nodes_world.h"

#include "base/mem.h"
#include "members/beat.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- Clocks ---- */

static slu_time
clock_of(const struct world_node *n)
{
	return world.now < n->still_until ? n->still_clock : world.now - n->boot;
}

void
pause_node(struct world_node *n, slu_time duration)
{
	if (n->awake > world.now)
		return;
	n->awake = world.now + duration;
	if (dice(2)) {
		n->still_clock = clock_of(n);
		n->boot = n->awake - n->still_clock;
		n->still_until = n->awake;
	}
}

/* Whether nothing fails by chance. */
static bool
is_calm(void)
{
	return world.quiet || world.calm;
}

static slu_time
latency(void)
{
	if (!is_calm() && dice(60) == 0)
		return SLU_MS + dice_ms(600);
	return SLU_MS + dice_ms(20);
}

/* ---- Asking a node ---- */

static struct channel *
channel_of(const struct world_node *n)
{
	return &world.channels[1 + (n - world.nodes)];
}

static void
wait_for_answer(struct world_node *n, struct channel *c)
{
	for (;;) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 1;
		if (sem_timedwait(&c->answered, &until) == 0)
			return;
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (errno == ETIMEDOUT && kill(c->pid, 0))
			test_fail(__FILE__, __LINE__, "NODES_FROM=%" PRIu64 ": node %d ended by itself",
				  world.seed, (int)(n - world.nodes));
	}
}

static struct trip *
new_flight(void)
{
	MUST("NETWORK", world.n_flights < FLIGHTS);
	return &world.flights[world.n_flights++];
}

void
land(unsigned i)
{
	mem_free(world.flights[i].object.p);
	world.flights[i] = world.flights[--world.n_flights];
}

/* Beats and their reads are not traced. */
static bool
is_beat(const struct told_request *r)
{
	return strncmp(r->name, BEAT_PREFIX, strlen(BEAT_PREFIX)) == 0;
}

static void
take_requests(const struct world_node *n, const struct node_told *t)
{
	for (uint32_t i = 0; i < t->n_requests; i++) {
		const struct told_request *const r = &t->requests[i];

		if (!is_beat(r))
			trace("node %d: %d %s%s", (int)(n - world.nodes), r->verb, r->name, r->broken ? " broken" : "");
		*new_flight() = (struct trip){
			.node = (unsigned)(n - world.nodes),
			.birth = n->birth,
			.request = *r,
			.object = copy_of((struct slice){ t->bytes + r->at, r->n }),
			.at = world.now + latency(),
			.back = r->broken,
			.result = STORE_FAILED,
		};
	}
}

/* What a node was told is confirmed. */
static void
take_facts(const struct node_told *t)
{
	for (unsigned i = 0; i < NODES_SHARDS && t->joined; i++) {
		const struct told_shard *const f = &t->shards[i];
		struct line_truth *const s = &world.shards[i];
		struct line_mark *const a = &s->answered[f->last];

		if (*f->line)
			snprintf(s->line, sizeof s->line, "%s", f->line);
		if (!f->last)
			continue;
		MUST("CHAIN", f->last < NUMBERS);
		if (!a->put)
			trace("shard %u: group %" PRIu64 " of epoch %" PRIu64 " is confirmed", i, f->last, f->epoch);
		MUST("CHAIN", !a->put || line_mark_eq(*a, f->mark));
		world.groups += !a->put;
		*a = f->mark;
		s->last = f->last > s->last ? f->last : s->last;
	}
}

/* Waits for the end of an ask. */
static void
hear_node(struct world_node *n, enum ask_kind kind)
{
	const struct channel *const c = channel_of(n);

	wait_for_answer(n, channel_of(n));
	if (kind == ASK_DIE)
		return;
	take_requests(n, &c->told);
	take_facts(&c->told);
	world.followed += c->told.followed;
	world.emptied += c->told.emptied;
	n->due = c->told.due == SLU_NEVER ? SLU_NEVER : c->told.due + n->boot;
	if (n->due <= world.now)
		n->due = world.now + (kind == ASK_RUN ? 100 * SLU_US : dice_ms(2));
	n->refused = *c->told.refused;
	if (n->refused && !n->foreign)
		test_fail(__FILE__, __LINE__, "NODES_FROM=%" PRIu64 ": %s", world.seed, c->told.refused);
	for (uint32_t i = 0; i < c->told.n_replies; i++)
		on_reply(n, &c->told, &c->told.replies[i]);
	if (!is_calm() && dice(300) == 0)
		pause_node(n, dice(3) ? dice_ms(3000) : dice_ms(15000));
}

void
ask_node(struct world_node *n, const struct ask *a)
{
	struct channel *const c = channel_of(n);

	c->ask = *a;
	c->ask.boot = clock_of(n);
	c->ask.wall = world.now + n->day;
	sem_post(&c->asked);
	hear_node(n, a->kind);
}

/* ---- Life and death ---- */

static void
orphan(const struct world_node *n)
{
	for (unsigned i = 0; i < world.n_flights; i++)
		if (&world.nodes[world.flights[i].node] == n && world.flights[i].birth == n->birth)
			world.flights[i].orphan = true;
}

void
start_node(struct world_node *n)
{
	struct channel *const c = channel_of(n);
	const unsigned slot = (unsigned)(n - world.nodes);
	struct node_start s = {
		.slot = slot,
		.random = dice(0),
		.segment_size = 16 << 10,
		.span_groups = world.plain ? 0 : 2 + (uint32_t)(world.seed % 9),
		.lease = LEASE,
		.hand_over = HAND_OVER,
		.patience = SLU_SEC,
		.n_bytes = n->folder.n,
		.trace = world.trace,
	};
	int pid;

	n->former = n->life;
	n->life = ++world.n_lives;
	n->birth = ++world.births;
	n->up = true;
	n->leaving = n->refused = false;
	n->awake = n->still_until = 0;
	n->boot = -(slu_time)dice(1000) * SLU_SEC;
	n->day = ((slu_time)dice(5) - 2) * 24 * SLU_HOUR;
	n->due = world.now;
	memcpy(s.life, &n->life, sizeof n->life);
	memcpy(s.former, &n->former, sizeof n->former);
	snprintf(s.name, sizeof s.name, "n%u", slot);
	snprintf(s.address, sizeof s.address, "a%u", slot);
	snprintf(s.boot, sizeof s.boot, "%u", n->boots);
	memset(&c->told, 0, offsetof(struct node_told, requests));
	sem_init(&c->asked, 1, 0);
	sem_init(&c->answered, 1, 0);
	if (n->folder.n)
		memcpy(c->bytes, n->folder.p, n->folder.n);
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		node_main(world.channels, &s);
	c->pid = pid;
}

void
kill_node(struct world_node *n)
{
	struct channel *const c = channel_of(n);

	lose_calls(n);
	orphan(n);
	ask_node(n, &(struct ask){ .kind = ASK_DIE });
	mem_free(n->folder.p);
	n->folder = copy_of((struct slice){ c->told.bytes, c->told.n_bytes });
	n->up = false;
	n->due = SLU_NEVER;
	(void)waitpid(c->pid, NULL, 0); /* a copy is not our child */
}

void
leave_node(struct world_node *n)
{
	n->leaving = true;
	ask_node(n, &(struct ask){ .kind = ASK_LEAVE });
}

/* The requests of the copy fail: its connections are gone. */
static void
fail_requests(const struct world_node *to, const struct world_node *from)
{
	const unsigned n = world.n_flights;

	for (unsigned i = 0; i < n; i++) {
		const struct trip *const f = &world.flights[i];

		if (f->orphan || &world.nodes[f->node] != from || f->birth != from->birth)
			continue;
		*new_flight() = (struct trip){
			.node = (unsigned)(to - world.nodes),
			.birth = to->birth,
			.request = f->request,
			.object = copy_of((struct slice){ 0 }),
			.back = true,
			.result = STORE_FAILED,
			.at = world.now + latency(),
		};
	}
}

/* A virtual machine is copied while it runs, with life, memory and disk. */
void
clone_node(struct world_node *to, const struct world_node *from)
{
	struct channel *const c = channel_of(to);
	struct world_node *const origin = &world.nodes[from - world.nodes];

	if (to->up)
		kill_node(to);
	sem_init(&c->asked, 1, 0);
	sem_init(&c->answered, 1, 0);
	ask_node(origin, &(struct ask){ .kind = ASK_CLONE, .clone = 1 + (unsigned)(to - world.nodes) });
	to->up = true;
	to->birth = ++world.births;
	to->life = from->life;
	to->former = from->former;
	to->boot = from->boot;
	to->awake = from->awake;
	to->still_until = from->still_until;
	to->still_clock = from->still_clock;
	to->day = from->day;
	to->leaving = from->leaving;
	to->boots = from->boots;
	to->foreign = from->foreign;
	fail_requests(to, origin);
	copy_calls(origin);
	hear_node(to, ASK_CLONE);
	world.clones++;
}

/* ---- The network ---- */

/* The request is executed at any later time, once more or at last. */
static void
echo(const struct trip *f)
{
	struct trip *again;

	if ((f->request.verb != STORE_PUT && f->request.verb != STORE_REMOVE) || world.n_flights + 40 > FLIGHTS)
		return;
	again = new_flight();
	*again = *f;
	again->object = copy_of((struct slice){ f->object.p, f->object.n });
	again->orphan = true;
	again->back = false;
	again->at = world.now + dice_ms(8000);
}

static void
arrive(unsigned i)
{
	struct trip *f = &world.flights[i];
	const struct world_node *const n = &world.nodes[f->node];
	const bool down = world.down_until > world.now;
	const uint64_t fate = is_calm() ? 1 : dice(200);

	if (fate == 2)
		echo(f);
	f = &world.flights[i];
	f->back = true;
	f->result = STORE_FAILED;
	if (f->orphan ? !down : !down && n->cut_until <= world.now && fate)
		execute(f);
	else if (dice(3) == 0)
		echo(f);
	f = &world.flights[i];
	if (!is_beat(&f->request))
		trace("from node %u: %d %s: %s%s", f->node, f->request.verb, f->request.name, store_result_name(f->result),
		      f->orphan ? ", orphan" : "");
	if (fate == 3)
		f->result = STORE_FAILED;
	f->at = world.now + latency();
	if (f->result == STORE_FAILED)
		f->at += dice_ms(1000);
}

static void
answer(unsigned i)
{
	const struct trip *const f = &world.flights[i];
	struct world_node *const n = &world.nodes[f->node];
	struct ask a = {
		.kind = ASK_ANSWER,
		.request = f->request.number,
		.result = f->result,
		.store_wall = f->wall,
		.more = f->more,
		.size = f->size,
		.n = f->result == STORE_OK && f->request.verb != STORE_PUT ? f->object.n : 0,
	};
	const bool is_heard = !f->orphan && n->up && f->birth == n->birth;

	if (is_heard && a.n)
		memcpy(channel_of(n)->bytes, f->object.p, a.n);
	land(i);
	if (is_heard)
		ask_node(n, &a);
}

static void
run_node(struct world_node *n)
{
	ask_node(n, &(struct ask){ .kind = ASK_RUN });
	if (n->leaving && channel_of(n)->told.left) {
		kill_node(n);
		world.leaves++;
	}
}

/* The store has another copy: requests and answers on their way are lost, and so are the connections. */
void
break_connections(void)
{
	for (unsigned i = 0; i < world.n_flights; i++) {
		struct trip *const f = &world.flights[i];

		if (f->orphan || is_beat(&f->request))
			continue;
		f->back = true;
		f->result = STORE_FAILED;
	}
	EACH(i, world.nodes)
		if (world.nodes[i].up)
			ask_node(&world.nodes[i], &(struct ask){ .kind = ASK_BREAK });
}

bool
node_serves(const struct world_node *n, unsigned shard)
{
	return n->up && channel_of(n)->told.shards[shard].serves;
}

bool
node_takes(const struct world_node *n, unsigned shard)
{
	return n->up && channel_of(n)->told.shards[shard].takes;
}

/* ---- Time ---- */

enum {
	OF_FLIGHT,
	OF_NODE,
	OF_CLIENT,
	OF_NOTHING
};

static void
earlier(slu_time *at, int *what, unsigned *which, slu_time t, int kind, unsigned i)
{
	if (t >= *at)
		return;
	*at = t;
	*what = kind;
	*which = i;
}

static void
advance_flight(unsigned i)
{
	struct trip *const f = &world.flights[i];
	const struct world_node *const n = &world.nodes[f->node];

	if (!f->back)
		arrive(i);
	else if (!f->orphan && n->up && n->birth == f->birth && n->awake > world.now)
		f->at = n->awake;
	else
		answer(i);
}

void
go_to(slu_time t)
{
	for (;;) {
		slu_time at = t;
		int what = OF_NOTHING;
		unsigned which = 0;

		for (unsigned i = 0; i < world.n_flights; i++)
			earlier(&at, &what, &which, world.flights[i].at, OF_FLIGHT, i);
		for (unsigned i = 0; i < NODES; i++) {
			const struct world_node *const n = &world.nodes[i];

			if (n->up)
				earlier(&at, &what, &which, n->due > n->awake ? n->due : n->awake, OF_NODE, i);
		}
		for (unsigned i = 0; i < CLIENTS; i++)
			earlier(&at, &what, &which, world.clients[i].at, OF_CLIENT, i);
		world.now = at > world.now ? at : world.now;
		if (what == OF_NOTHING)
			return;
		if (what == OF_FLIGHT)
			advance_flight(which);
		else if (what == OF_NODE)
			run_node(&world.nodes[which]);
		else
			run_client(&world.clients[which]);
	}
}
