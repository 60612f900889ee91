/*
 * peernet_serve.c - ops of other nodes for shards that this node owns.
 */
#include "peer/peernet_private.h"

#include "peer/op_codec.h"
#include "peer/op_page.h"

/* ---- A served op ---- */

static void
free_served(struct peer_served *s)
{
	list_remove(&s->node);
	op_release_question(&s->op);
	peer_bytes_unpin(s->message);
	buf_release(&s->answer);
	mem_free(s);
}

/* The lane's thread. */
static void
on_done(struct op *op)
{
	struct peer_served *const s = op->owner;
	struct peernet *const p = s->net;
	bool first;

	pthread_mutex_lock(&p->mtx);
	first = list_is_empty(&p->done); /* the thread takes all at once */
	list_append(&p->done, &s->done);
	pthread_mutex_unlock(&p->mtx);
	if (first)
		peernet_wake(p);
}

/* SLU_EMOVED and SLU_ECLOSED: nothing has happened (OP-3), and another node may run it. */
static bool
is_elsewhere(int rc)
{
	return rc == SLU_EMOVED || rc == SLU_ECLOSED;
}

/* CODEC-5: the files of messages that this node, the owner, has not accepted are removed. */
static void
refuse_files(const struct peer_served *s)
{
	const struct op *const op = &s->op;
	struct engine *const e = broker_engine(s->net->broker, op->route.lane);

	if (op->rc == SLU_EUNKNOWN || is_elsewhere(op->rc) || !e->ops->away)
		return;
	for (uint32_t i = 0; i < op->n_puts; i++)
		if (op->puts[i].m.file && (op->rc || op->puts[i].existed))
			e->ops->away->refuse(e, &op->puts[i].m);
}

/* The answer names the owner of the shard, if this node knows it. */
static void
deny(struct peer_served *s)
{
	struct peernet *const p = s->net;
	struct peer_target hint = { 0 };

	pthread_mutex_lock(&p->mtx);
	if (s->routed && s->op.route.lane < p->lanes)
		hint = p->targets[s->op.route.lane];
	pthread_mutex_unlock(&p->mtx);
	link_not_owner(&s->guest->sock.link, s->at.number, &hint);
}

/* A helper's thread. */
static void
read_records(struct helper_job *job)
{
	struct peer_served *const s = CONTAINER(job, struct peer_served, read);

	(void)op_encode_answer(&s->op, true, &s->answer); /* cannot be SLU_EBUSY: it may block */
	s->encoded = true;
	on_done(&s->op);
}

/* Returns false if a helper makes the answer. */
static bool
encode(struct peer_served *s)
{
	if (s->encoded || is_elsewhere(s->op.rc))
		return true;
	op_page_end(&s->op, PEERNET_PAGE);
	if (op_encode_answer(&s->op, false, &s->answer) != SLU_EBUSY)
		return true;
	s->read.run = read_records;
	helper_post(&s->net->reader, &s->read);
	return false;
}

/* The op has its answer, and its link is there. */
static void
answer(struct peer_served *s)
{
	struct peer_guest *const g = s->guest;

	list_remove(&s->node);
	list_append(&g->leaving, &s->node);
	if (is_elsewhere(s->op.rc)) {
		deny(s);
		return;
	}
	if (s->answer.failed)
		g->sock.link.state = LINK_BROKEN; /* no memory: the caller learns that the outcome is unknown */
	else
		link_answer(&g->sock.link, &s->at, buf_slice(&s->answer));
}

void
peernet_answer(struct peernet *p)
{
	struct list done;

	list_init(&done);
	pthread_mutex_lock(&p->mtx);
	list_take(&p->done, &done);
	pthread_mutex_unlock(&p->mtx);
	while (!list_is_empty(&done)) {
		struct peer_served *const s = CONTAINER(done.next, struct peer_served, done);

		list_remove(&s->done);
		refuse_files(s);
		if (s->guest && !encode(s))
			continue;
		p->serving--;
		if (s->guest)
			answer(s);
		else
			free_served(s); /* PEERNET-2 */
	}
}

static void
free_sent(struct peer_guest *g)
{
	LIST_EACH_SAFE(n, &g->leaving) {
		struct peer_served *const s = CONTAINER(n, struct peer_served, node);

		if (link_is_sent(&s->at))
			free_served(s);
	}
}

/* ---- Questions ---- */

static struct peer_served *
new_served(struct peer_guest *g, struct peer_bytes *message)
{
	struct peer_served *const s = mem_zalloc(sizeof *s);

	if (!s) {
		peer_bytes_unpin(message);
		return NULL;
	}
	s->guest = g;
	s->net = g->net;
	s->message = message;
	list_init(&s->node);
	list_init(&s->done);
	buf_init(&s->answer, OP_CODEC_MAX);
	return s;
}

static void
run(struct peer_served *s)
{
	struct peernet *const p = s->net;
	int rc;

	s->op.done = on_done;
	s->op.owner = s;
	s->op.route.forwarded = true; /* PEERNET-1 */
	list_append(&s->guest->running, &s->node);
	p->serving++;
	s->routed = true;
	rc = broker_post(p->broker, &s->op);
	if (rc == 0)
		return;
	s->routed = false;
	p->serving--;
	op_fail(&s->op, rc, s->op.err.code == (enum slu_code)rc ? &s->op.err : NULL);
	if (!is_elsewhere(rc))
		(void)op_encode_answer(&s->op, true, &s->answer); /* has no records */
	answer(s);
}

static void
on_asked(struct peer_link *l, uint64_t number, struct peer_bytes *message)
{
	struct peer_guest *const g = CONTAINER(l, struct peer_guest, sock.link);
	struct peer_served *const s = new_served(g, message);
	struct slu_err err = { 0 };
	int rc = s ? op_decode_question(&s->op, (struct slice){ message->p, message->n }, &err) : SLU_ENOMEM;

	if (rc && s)
		log_warn(g->net->log, "op of another node refused", F_STR("why", err.text));
	if (!rc && link_accept(l, &s->at, number) == 0) {
		run(s);
		return;
	}
	if (s)
		free_served(s);
	if (rc)
		link_not_owner(l, number, NULL);
}

static void
on_canceled(struct peer_link *l, struct link_op *at)
{
	const struct peer_guest *const g = CONTAINER(l, struct peer_guest, sock.link);

	broker_cancel(g->net->broker, &CONTAINER(at, struct peer_served, at)->op);
}

static const struct link_events events = { .asked = on_asked, .canceled = on_canceled };

/* ---- Guests ---- */

void
peernet_add_guest(struct peernet *p, int fd)
{
	struct peer_guest *const g = mem_zalloc(sizeof *g);

	if (!g || peersock_open(&g->sock, p, fd, HELLO_OWNER, &events, NULL)) {
		mem_free(g);
		peersock_shut(fd);
		return;
	}
	g->net = p;
	list_init(&g->running);
	list_init(&g->leaving);
	list_append(&p->guests, &g->node);
	p->n_guests++;
}

/* PEERNET-2 */
static void
end_guest(struct peer_guest *g)
{
	struct peernet *const p = g->net;

	while (link_leave(&g->sock.link))
		;
	LIST_EACH_SAFE(n, &g->leaving)
		free_served(CONTAINER(n, struct peer_served, node));
	LIST_EACH_SAFE(n, &g->running) {
		struct peer_served *const s = CONTAINER(n, struct peer_served, node);

		s->guest = NULL;
		list_remove(&s->node);
		broker_cancel(p->broker, &s->op);
	}
	if (g->sock.link.err.code)
		log_debug(p->log, "link of another node ended", F_STR("why", g->sock.link.err.text));
	peersock_close(&g->sock);
	list_remove(&g->node);
	p->n_guests--;
	mem_free(g);
}

void
peernet_guests_tidy(struct peernet *p, bool all)
{
	LIST_EACH_SAFE(n, &p->guests) {
		struct peer_guest *const g = CONTAINER(n, struct peer_guest, node);

		if (all || g->sock.link.state == LINK_BROKEN)
			end_guest(g);
	}
}

void
peernet_step(struct peernet *p)
{
	peernet_calls_take(p);
	peernet_answer(p);
	LIST_EACH(n, &p->guests) {
		struct peer_guest *const g = CONTAINER(n, struct peer_guest, node);

		peersock_write(&g->sock);
		free_sent(g);
	}
	peernet_callees_tidy(p);
	peernet_guests_tidy(p, false);
}
