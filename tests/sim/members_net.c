/*
 * members_net.c - requests and replies on their way: late, lost, twice.
 */
#include "members_world.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

void
pause_node(struct sim_node *n, slu_time duration)
{
	if (n->awake > world.now)
		return;
	n->awake = world.now + duration;
	if (world.stands_still && dice(2)) {
		n->still_clock = clock_of(n);
		n->boot = n->awake - n->still_clock;
		n->still_until = n->awake;
	} else if (duration > LEASE / 2) {
		n->failed = n->awake; /* half a lease without success */
	}
}

static slu_time
latency(void)
{
	if (!world.quiet && dice(60) == 0)
		return (slu_time)(1 + dice(600)) * SLU_MS;
	return (slu_time)(1 + dice(20)) * SLU_MS;
}

struct flight *
new_flight(void)
{
	MUST("CHAIN", world.n_flights < FLIGHTS);
	return &world.flights[world.n_flights++];
}

void
send_request(struct sim_node *n, enum caller caller, unsigned shard, const struct line_request *r)
{
	struct flight *const f = new_flight();

	*f = (struct flight){
		.node = (int)(n - world.nodes),
		.life = n->life,
		.caller = caller,
		.shard = shard,
		.line = caller == LINE ? n->shards[shard].line : NULL,
		.request = *r,
		.at = world.now + latency(),
	};
	f->request.object.p = copy_of(r->object);
	if (!world.quiet && dice(700) == 0)
		pause_node(n, (slu_time)dice(15000) * SLU_MS);
}

void
land(unsigned i)
{
	mem_free((char *)world.flights[i].request.object.p);
	mem_free((char *)world.flights[i].answer.object.p);
	world.flights[i] = world.flights[--world.n_flights];
	if (world.flights[i].answer.names) /* it was moved */
		for (unsigned k = 0; k < PAGE; k++)
			world.flights[i].name_list[k] = world.flights[i].names[k];
	world.flights[i].answer.names = world.flights[i].name_list;
}

/* The request is executed at any later time, once more or at last. */
static void
echo(const struct flight *f)
{
	struct flight *again;

	if (f->request.verb == LINE_GET || f->request.verb == LINE_LIST || world.n_flights + 20 > FLIGHTS)
		return;
	again = new_flight();
	*again = *f;
	again->request.object.p = copy_of(f->request.object);
	again->answer = (struct line_answer){ 0 };
	again->orphan = true;
	again->at = world.now + (slu_time)dice(8000) * SLU_MS;
}

static void
keep_old_beat(const struct flight *f)
{
	if (f->request.verb != LINE_REPLACE || world.old_beat[f->life])
		return;
	world.old_beat[f->life] = copy_of(f->request.object);
	world.old_beat_n[f->life] = f->request.object.n;
}

void
arrive(unsigned i)
{
	struct flight *const f = &world.flights[i];
	struct sim_node *const n = &world.nodes[f->node];
	const bool cut = world.down_until > world.now || (n->cut_from <= world.now && n->cut_until > world.now);
	const uint64_t fate = world.quiet ? 1 : dice(900);

	f->back = true;
	f->answer.result = LINE_FAILED;
	if (f->orphan ? world.down_until <= world.now : !cut && fate)
		execute(f);
	else if (dice(3) == 0)
		echo(f);
	keep_old_beat(f);
	if (fate == 2)
		echo(f);
	if (fate == 3)
		f->answer.result = LINE_FAILED;
	f->at = world.now + latency();
	if (f->answer.result == LINE_FAILED)
		f->at += (slu_time)dice(1000) * SLU_MS;
	else if (n->slow_until > world.now)
		f->at += (slu_time)dice(4500) * SLU_MS;
}

void
reply(struct sim_node *n, const struct flight *f)
{
	struct line *const l = n->shards[f->shard].line;

	switch (f->caller) {
	case SEARCH:
		settings_search_reply(&n->search, &f->answer, clock_of(n), dice(0));
		break;
	case MEMBERS:
		if (f->answer.result == LINE_FAILED && f->request.verb != LINE_REMOVE)
			n->failed = world.now;
		note_reply(f);
		members_reply(n->members, f->request.slot, &f->answer, clock_of(n));
		break;
	case LINE:
		if (l == f->line)
			line_reply(l, f->request.slot, &f->answer, clock_of(n));
	}
}

void
orphan(const struct sim_node *n, const struct line *l)
{
	for (unsigned i = 0; i < world.n_flights; i++) {
		struct flight *const f = &world.flights[i];

		if (&world.nodes[f->node] == n && (!l || f->line == l))
			f->orphan = true;
	}
}
