/*
 * nodes_node.c - a node of test_nodes_sim.c: members, a broker by hand, the log engine on a mirror.
 *
 * The node has one stack. Code that waits, for example the open of a shard, calls the clock's
 * `wait`, and that handles what the world asks next. Meanwhile members and requests go on, as on
 * threads of their own; lanes stand still.
 */
#include "nodes_node.h"

#include "base/log.h"
#include "engine/log/logengine_private.h"
#include "engine/tenure.h"
#include "members/on_store.h"
#include "members/settings.h"
#include "mirror/mirror_private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

struct node_process node;

/* In place of the kernel's: the world decides. */
ssize_t
getrandom(void *out, size_t n, unsigned flags)
{
	char *p = out;

	(void)flags;
	for (size_t i = 0; i < n; i++)
		p[i] = (char)(test_random(&node.random) >> 24);
	return (ssize_t)n;
}

/* ---- The clock ---- */

static slu_time
clock_now(struct clock *c)
{
	(void)c;
	return node.boot;
}

static slu_time
wall_now(struct clock *c)
{
	(void)c;
	return node.wall;
}

static void
wait_for_world(struct clock *c, pthread_cond_t *cond, pthread_mutex_t *mtx, slu_time until)
{
	const slu_time outer = node.wait_until;

	(void)c;
	(void)cond;
	pthread_mutex_unlock(mtx);
	node.wait_until = until;
	node_turn();
	node.wait_until = outer;
	pthread_mutex_lock(mtx);
}

/* In place of the kernel's: what waits before it asks the store again. */
int
nanosleep(const struct timespec *duration, struct timespec *rest)
{
	const slu_time outer = node.wait_until;
	const slu_time until = node.boot + duration->tv_sec * SLU_SEC + duration->tv_nsec;

	(void)rest;
	while (node.boot < until) {
		node.wait_until = until;
		node_turn();
	}
	node.wait_until = outer;
	return 0;
}

static const struct clock_ops clock_ops = { clock_now, wall_now, NULL, wait_for_world };
static struct clock node_clock = { &clock_ops };

/* ---- Members ---- */

static void
do_event(const struct members_event *e)
{
	struct members_node owner;

	if (e->kind == MEMBERS_LEASE) {
		for (unsigned i = 0; i < NODES_SHARDS; i++)
			broker_set_lapsed(node.broker, i, members_has_lapsed(node.members));
		return;
	}
	if (e->kind != MEMBERS_OWNER) {
		broker_order(node.broker, e->shard, e->kind == MEMBERS_TAKE ? BROKER_TAKE : BROKER_GIVE);
		return;
	}
	if (!members_owner(node.members, e->shard, &owner) || owner.self) {
		broker_set_owner(node.broker, e->shard, NULL, 0);
		return;
	}
	snprintf(node.owners[e->shard], sizeof node.owners[0], "%s", owner.address);
	broker_set_owner(node.broker, e->shard, node.owners[e->shard], 0);
}

static void
on_shot(struct store_request *r)
{
	const struct line_answer a = on_store_answer(r);

	members_reply(node.members, CONTAINER(r, struct node_shot, request)->slot, &a, node.boot);
}

static void
run_members(void)
{
	struct members_event e;
	struct line_request r;

	if (!node.broker)
		return;
	while (members_next(node.members, node.boot, &r)) {
		struct node_shot *const shot = &node.shots[r.slot];

		on_store_ask(&shot->request, &r);
		shot->slot = r.slot;
		shot->request.done = on_shot;
		node_send(&shot->request);
	}
	while (members_event(node.members, node.boot, &e))
		do_event(&e);
	if (node.leaving && members_is_drained(node.members))
		node.channel->told.left = true;
}

static bool
may_take(void *arg, uint32_t lane, const struct line_group *newest)
{
	(void)arg;
	return members_may_take(node.members, lane, newest, node.boot);
}

static bool
is_fresh(void *arg, slu_time proved)
{
	(void)arg;
	return members_is_fresh(node.members, proved, node.boot);
}

static bool
taken(void *arg, uint32_t lane, uint64_t epoch)
{
	(void)arg;
	return members_opened(node.members, lane, epoch);
}

static void
closed(void *arg, uint32_t lane, uint64_t epoch)
{
	(void)arg;
	members_closed(node.members, lane, epoch, node.boot);
}

static struct engine_tenure tenure = {
	.life = node.start.life,
	.waits = node_standby_waits,
	.takes = node_standby_takes,
	.may_take = may_take,
	.is_fresh = is_fresh,
	.taken = taken,
	.closed = closed,
};

/* ---- Asked by the world ---- */

static void
tell_shards(void)
{
	struct node_told *const t = &node.channel->told;
	struct slu_err err;

	t->joined = node.broker != NULL;
	for (unsigned i = 0; i < NODES_SHARDS && node.broker; i++) {
		const struct logengine *const l = (struct logengine *)node.engines[i];
		struct mirror_facts f = { 0 };
		const int rc = broker_health(node.broker, i, &err);

		if (l->stored.mirror)
			f = mirror_facts(l->stored.mirror);
		t->shards[i] = (struct told_shard){
			.serves = rc == 0,
			.takes = l->stored.mirror && !f.opened,
			.epoch = f.line.epoch,
			.last = f.opened && line_is_open(l->stored.mirror->line) ? f.line.last : 0, /* line_reopen proves its groups at its end */
			.mark = f.line.mark,
		};
		snprintf(t->shards[i].line, sizeof t->shards[i].line, "%.*s", LINE_SHARD_MAX, l->stored.line);
		if (rc == SLU_EINVAL)
			snprintf(t->refused, sizeof t->refused, "%.*s", (int)sizeof t->refused - 1, err.text);
	}
}

static slu_time
due(void)
{
	const slu_time members = node.members ? members_due(node.members) : SLU_NEVER;
	const slu_time requests = node_store_due();
	const slu_time at = members < requests ? members : requests;
	const slu_time folders = node_standby_due();
	const slu_time rest = node.lanes_due < folders ? node.lanes_due : folders;

	if (node.depth > 1 || !node.broker)
		return node.wait_until < at ? node.wait_until : at;
	return rest < at ? rest : at;
}

/* Ends the last ask, and waits for the next one. A world that has ended asks nothing. */
static void
receive(void)
{
	struct channel *c = node.channel;

	if (node.asked) {
		tell_shards();
		c->told.due = due();
		fflush(stdout);
		sem_post(&c->answered);
	}
	for (;;) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 2;
		if (sem_timedwait(&c->asked, &until) == 0)
			break;
		if (errno == ETIMEDOUT && kill(node.channels[0].pid, 0))
			_exit(1);
	}
	node.asked = true;
	node.boot = c->ask.boot;
	node.wall = c->ask.wall;
	c->told.n_requests = c->told.n_replies = c->told.n_list = c->told.n_bytes = 0;
	c->told.followed = c->told.emptied = 0;
}

/* A virtual machine is copied while it runs: the copy has lost its connections. */
static void
copy_self(void)
{
	const unsigned to = node.channel->ask.clone;
	const int pid = fork();

	CHECK(pid >= 0);
	if (pid > 0)
		return;
	node.channels[to].pid = getpid();
	node.channel = &node.channels[to];
	memset(&node.channel->told, 0, offsetof(struct node_told, requests));
	node.random ^= 0x9E3779B97F4A7C15u * (to + 1);
	node.broken = true;
}

static void
die(void)
{
	node_save_disk();
	sem_post(&node.channel->answered);
	_exit(0);
}

void
node_turn(void)
{
	struct channel *c;

	node.depth++;
	receive();
	c = node.channel;
	switch (c->ask.kind) {
	case ASK_RUN:
		break;
	case ASK_ANSWER:
		node_take_answer();
		break;
	case ASK_POST:
		node_post(&c->ask.op);
		break;
	case ASK_CLONE:
		copy_self();
		break;
	case ASK_BREAK:
		node.broken = true;
		break;
	case ASK_LEAVE:
		node.leaving = true;
		if (node.members)
			members_drain(node.members, true);
		break;
	case ASK_DIE:
		die();
	}
	run_members();
	node_send_due();
	node.depth--;
	node.lanes_due = 0;
	if (node.depth > 0 || !node.broker || c->ask.kind != ASK_RUN)
		return;
	node.depth++; /* a wait of a lane is inside */
	node.lanes_due = broker_round(node.broker);
	node_standby();
	node.depth--;
}

/* ---- Start ---- */

static void
on_log(void *arg, enum slu_log_level level, const char *line, size_t n)
{
	(void)arg;
	(void)level;
	if (node.start.trace)
		printf("#   node %u: %.*s", node.start.slot, (int)n, line);
}

static struct settings
find_settings(void)
{
	const struct slu_backoff retry = { .base = 50 * SLU_MS, .max = SLU_SEC };
	struct settings proposal = { .format = 1, .shards = NODES_SHARDS };
	struct settings_search s;
	struct store_request to;
	struct line_request r;

	(void)getrandom(proposal.uuid, sizeof proposal.uuid, 0);
	(void)getrandom(proposal.secret, sizeof proposal.secret, 0);
	settings_search_init(&s, &proposal, &retry);
	store_request_init(&to);
	while (!s.found) {
		struct line_answer a;

		CHECK(!s.failed);
		node.wait_until = node.boot + 50 * SLU_MS;
		if (!settings_search_next(&s, node.boot, &r)) {
			node_turn();
			continue;
		}
		on_store_ask(&to, &r);
		node_send_and_wait(&to);
		a = on_store_answer(&to);
		settings_search_reply(&s, &a, node.boot, test_random(&node.random));
	}
	store_request_release(&to);
	return s.settings;
}

static void
join(const struct settings *s)
{
	struct members_conf conf = {
		.name = node.start.name,
		.address = node.start.address,
		.version = "1",
		.shards = s->shards,
		.format = s->format,
		.writes = 1,
		.reads = 1,
		.lease = node.start.lease,
		.hand_over = node.start.hand_over,
		.forget = 60 * SLU_SEC,
	};

	memcpy(conf.life, node.start.life, LINE_LIFE);
	memcpy(conf.former, node.start.former, LINE_LIFE);
	CHECK_EQ(0, members_new(&node.members, &conf));
	members_drain(node.members, node.leaving);
	EACH(i, node.shots)
		store_request_init(&node.shots[i].request);
}

static int
open_log(struct engine **out, const struct engine_conf *conf, struct engine_found *found,
	 struct slu_err *err)
{
	const struct logengine_conf more = {
		.clock = &node_clock,
		.segment_size = node.start.segment_size,
		.no_helper = true,
		.most = 1000,
		.secret = { 1, 2 },
		.store = &node_store,
		.boot = node.start.boot,
		.store_clock = &node_clock,
		.span_groups = node.start.span_groups,
	};
	const int rc = logengine_open(out, conf, &more, found, err);

	node.engines[conf->lane] = *out;
	return rc;
}

static void
open_broker(const struct settings *settings)
{
	static struct engine_ops engine;
	const struct broker_shard_conf shard = {
		.engine = &engine,
		.storage = {
			.folder = "log",
			.disk = &node.disk.disk,
			.log = node.log,
			.tenure = &tenure,
			.patience = node.start.patience,
		},
		.lanes = NODES_SHARDS,
		.store = settings->uuid,
	};
	const struct broker_conf conf = { .shards = &shard, .n_shards = 1, .clock = &node_clock, .by_hand = true };
	struct slu_err err = { 0 };

	engine = engine_log;
	engine.open = open_log;
	CHECK_EQ(0, broker_open(&node.broker, &conf, &err), err.text);
}

void
node_main(struct channel *channels, const struct node_start *start)
{
	struct settings settings;

	(void)signal(SIGCHLD, SIG_IGN); /* the copies of this node */
	node.start = *start;
	node.channels = channels;
	node.channel = &channels[1 + start->slot];
	node.channel->pid = getpid();
	node.random = start->random;
	node.log = slu_log_new(start->trace ? SLU_LOG_INFO : SLU_LOG_OFF, SLU_LOG_LOGFMT, on_log, NULL);
	node_load_disk();
	node_turn();
	settings = find_settings();
	memcpy(node.uuid, settings.uuid, sizeof node.uuid);
	join(&settings);
	open_broker(&settings);
	for (;;)
		node_turn();
}
