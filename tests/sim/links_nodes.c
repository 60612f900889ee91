#include "links_world.h"

#include <stdio.h>
#include <stdlib.h>

static bool
on_taken(void *arg, uint32_t lane, uint64_t epoch)
{
	(void)arg;
	(void)lane;
	(void)epoch;
	return true;
}

static void
on_closed(void *arg, uint32_t lane, uint64_t epoch)
{
	(void)arg;
	(void)lane;
	(void)epoch;
}

unsigned
links_node_of(const struct peernet *p)
{
	return (unsigned)(CONTAINER(p, struct links_node, net) - world.nodes);
}

unsigned
links_node_alive(const uint8_t life[static HELLO_LIFE])
{
	for (unsigned i = 0; i < NODES; i++)
		if (world.nodes[i].alive && !world.nodes[i].stopping && memcmp(world.nodes[i].net.life, life, HELLO_LIFE) == 0)
			return i;
	return UINT_MAX;
}

void
links_accept(unsigned node, int fd)
{
	peernet_add_guest(&world.nodes[node].net, fd);
}

/* ONE HOP. Serials are in the bytes of questions. */
void
links_saw(unsigned node, struct slice bytes)
{
	const char *at = bytes.p;

	while (bytes.n && (at = memmem(at, (size_t)(bytes.p + bytes.n - at), "#", 1)) && bytes.p + bytes.n - at >= 10) {
		char digits[9] = "";
		const char *const tail = at + 9;

		memcpy(digits, at + 1, 8);
		at++;
		if (*tail == '?' && strspn(digits, "0123456789") == 8) {
			struct links_truth *const t = &world.ops[strtoul(digits, NULL, 10) % SERIALS];

			MUST("ONE HOP", t->node == node);
			t->left = true;
			world.sent++;
		}
	}
}

static void
stop_net(void *arg)
{
	struct peernet *const p = arg;

	p->stopping = true;
	peernet_calls_end(p);
}

static void
init_net(struct links_node *n)
{
	static const uint8_t secret[HELLO_SECRET] = "the secret of the store";
	struct peernet *const p = &n->net;

	*p = (struct peernet){ .log = world.log, .secret = secret, .targets = n->targets, .lanes = SHARDS, .listener = -1, .wake = -1 };
	memset(n->targets, 0, sizeof n->targets);
	memcpy(p->life, &n->birth, sizeof n->birth);
	pthread_mutex_init(&p->mtx, NULL);
	list_init(&p->asks);
	list_init(&p->cancels);
	list_init(&p->done);
	list_init(&p->found);
	list_init(&p->callees);
	list_init(&p->guests);
	helper_init(&p->reader, "test", 0);
	helper_init(&p->resolver, "test", 0);
	peernet_call_init(p);
	p->remote.stop = stop_net;
}

void
start_node(unsigned i)
{
	struct links_node *const n = &world.nodes[i];
	static struct engine_tenure tenures[NODES];
	struct broker_shard_conf shard = {
		.engine = &view_ops,
		.storage = { .tenure = &tenures[i], .options = &view_ops, .log = world.log },
		.lanes = SHARDS,
	};
	const struct broker_conf conf = {
		.shards = &shard,
		.n_shards = 1,
		.clock = &world.clock.clock,
		.node = i,
		.remote = &n->net.remote,
		.by_hand = true,
	};
	struct slu_err err = { 0 };

	tenures[i] = (struct engine_tenure){ .arg = n, .taken = on_taken, .closed = on_closed };
	n->birth = ++world.births;
	init_net(n);
	CHECK_EQ(0, broker_open(&n->broker, &conf, &err), err.text);
	n->net.broker = n->broker;
	n->alive = true;
	n->stopping = false;
}

static void
run_broker(const struct links_node *n)
{
	for (int i = 0; i < 50 && broker_round(n->broker) <= clock_boot(&world.clock.clock); i++)
		continue;
}

/* PEER-2: nobody gives these grants back; their leases end. */
static void
count_orphans(unsigned i)
{
	for (unsigned c = 0; c < CLIENTS; c++) {
		const struct client *const client = &world.clients[c];

		if (client->node == i && is_on_its_way(client) && client->op.verb == OP_CLAIM && world.ops[client->serial].ran)
			world.orphaned++;
	}
}

void
kill_node(unsigned i)
{
	struct links_node *const n = &world.nodes[i];

	count_orphans(i);
	n->alive = false;
	for (uint32_t s = 0; s < SHARDS; s++)
		if (world.owner[s] == i) {
			world.owner[s] = UINT_MAX;
			world.views[s] = NULL;
		}
	wires_cut(i);
	broker_stop(n->broker);
	peernet_guests_tidy(&n->net, true);
	peernet_answer(&n->net);
	MUST("NO LEAK", n->net.serving == 0 && list_is_empty(&n->net.callees) && list_is_empty(&n->net.guests));
	(void)broker_close(n->broker);
	helper_stop(&n->net.reader);
	helper_stop(&n->net.resolver);
	pthread_mutex_destroy(&n->net.mtx);
}

static void
turn_sock(struct peersock *s)
{
	(void)link_tick(&s->link, links_now());
	peersock_read(s);
	peersock_write(s);
}

void
turn_node(unsigned i)
{
	struct links_node *const n = &world.nodes[i];

	if (!n->alive)
		return;
	LIST_EACH(each, &n->net.callees)
		turn_sock(&CONTAINER(each, struct peer_callee, node)->sock);
	LIST_EACH(each, &n->net.guests)
		turn_sock(&CONTAINER(each, struct peer_guest, node)->sock);
	if (dice(2))
		run_broker(n);
	peernet_step(&n->net);
	run_broker(n);
	if (dice(2))
		peernet_step(&n->net);
}

void
stop_node(unsigned i)
{
	struct links_node *const n = &world.nodes[i];

	n->stopping = true;
	LIST_EACH(each, &n->net.guests)
		link_stop(&CONTAINER(each, struct peer_guest, node)->sock.link);
	for (uint32_t s = 0; s < SHARDS; s++)
		broker_order(n->broker, s, BROKER_GIVE);
}

void
tell_owner(unsigned i, uint32_t shard)
{
	struct links_node *const n = &world.nodes[i];
	const unsigned owner = world.owner[shard];
	struct peer_target t = { .epoch = world.epochs[shard] };

	if (owner != UINT_MAX && owner != i) {
		memcpy(t.life, world.nodes[owner].net.life, HELLO_LIFE);
		t.port = 1;
		(void)snprintf(t.host, sizeof t.host, "node%u", owner);
	}
	target_set(&n->targets[shard], &t);
	broker_set_owner(n->broker, shard, t.port ? "elsewhere" : NULL, t.port ? t.epoch : 0);
	if (owner == i)
		broker_order(n->broker, shard, BROKER_TAKE);
	else if (world.all[i][shard]->owns)
		broker_order(n->broker, shard, BROKER_GIVE);
}

static void
count_deposed(uint32_t shard)
{
	const unsigned former = world.owner[shard];

	for (unsigned c = 0; c < CLIENTS && former != UINT_MAX; c++) {
		const struct client *const client = &world.clients[c];

		if (client->node != former && is_on_its_way(client) && client->op.route.lane == shard)
			world.deposed++;
	}
}

void
change_owner(uint32_t shard)
{
	const unsigned i = (unsigned)dice(NODES);

	if (!world.nodes[i].alive || world.nodes[i].stopping || world.owner[shard] == i)
		return;
	count_deposed(shard);
	world.owner[shard] = i;
	world.epochs[shard]++;
	world.views[shard] = NULL;
	tell_owner(i, shard);
}
