/*
 * peernet_call.c - ops of this node for the owners of shards.
 */
#include "peer/peernet_private.h"

#include "peer/fate.h"
#include "peer/op_codec.h"

#define RETRY (200 * SLU_MS) /* PEERNET-4 */

/* ---- The lane's thread ---- */

static void
free_call(struct peer_call *c)
{
	buf_release(&c->message);
	mem_free(c);
}

static struct peer_call *
new_call(uint32_t lane, struct op *op)
{
	struct peer_call *const c = mem_zalloc(sizeof *c);

	if (!c)
		return NULL;
	c->op = op;
	c->lane = lane;
	list_init(&c->node);
	list_init(&c->cancel);
	buf_init(&c->message, OP_CODEC_MAX);
	op_encode_question(op, &c->message);
	if (!c->message.failed)
		return c;
	free_call(c);
	return NULL;
}

/* Under mtx. */
static bool
has_owner(const struct peernet *p, uint32_t lane)
{
	return !p->stopping && lane < p->lanes && p->targets[lane].port && p->targets[lane].not_before <= peernet_now();
}

static bool
send_op(void *arg, uint32_t lane, struct op *op)
{
	struct peernet *const p = arg;
	struct peer_call *c;
	bool sent;

	if (!op_travels(op))
		return false;
	pthread_mutex_lock(&p->mtx);
	sent = has_owner(p, lane);
	pthread_mutex_unlock(&p->mtx);
	c = sent ? new_call(lane, op) : NULL;
	if (!c)
		return false;
	pthread_mutex_lock(&p->mtx);
	sent = has_owner(p, lane);
	if (sent) {
		op->route.call = c;
		list_append(&p->asks, &c->node);
	}
	pthread_mutex_unlock(&p->mtx);
	if (!sent)
		free_call(c);
	return sent;
}

/* The thread may have taken the calls together with others. */
static void
flush(void *arg)
{
	struct peernet *const p = arg;
	bool any;

	pthread_mutex_lock(&p->mtx);
	any = !list_is_empty(&p->asks);
	pthread_mutex_unlock(&p->mtx);
	if (any)
		peernet_wake(p);
}

/* The call of an op that is on its way back is gone. */
static void
cancel_op(void *arg, struct op *op)
{
	struct peernet *const p = arg;
	struct peer_call *c;

	pthread_mutex_lock(&p->mtx);
	c = op->route.call;
	if (c && list_is_empty(&c->cancel))
		list_append(&p->cancels, &c->cancel);
	pthread_mutex_unlock(&p->mtx);
	if (c)
		peernet_wake(p);
}

static void
end_waits(void *arg)
{
	struct peernet *const p = arg;

	pthread_mutex_lock(&p->mtx);
	p->waits_end = true;
	pthread_mutex_unlock(&p->mtx);
	peernet_wake(p);
}

void
peernet_call_init(struct peernet *p)
{
	p->remote = (struct broker_remote){ .arg = p, .send = send_op, .flush = flush, .cancel = cancel_op, .end_waits = end_waits };
}

/* ---- The end of a call ---- */

static void
come_back(struct peernet *p, struct peer_call *c, bool again)
{
	struct op *const op = c->op;

	pthread_mutex_lock(&p->mtx);
	op->route.call = NULL;
	list_remove(&c->cancel);
	list_remove(&c->node);
	pthread_mutex_unlock(&p->mtx);
	free_call(c);
	broker_came_back(p->broker, op, again);
}

/* PEERNET-3. The call has left its link. */
static void
end_broken(struct peernet *p, struct peer_call *c, const struct slu_err *why)
{
	const bool again = peer_may_repeat(c->op->verb, c->at.began);
	struct slu_err err;

	if (!again) {
		(void)slu_fail(&err, SLU_EUNKNOWN, "%.200s; the op may or may not have happened", why->text);
		op_fail(c->op, SLU_EUNKNOWN, &err);
	}
	come_back(p, c, again);
}

static void
on_answered(struct peer_link *l, struct link_op *at, struct peer_bytes *message)
{
	struct peer_callee *const to = CONTAINER(l, struct peer_callee, sock.link);
	struct peer_call *const c = CONTAINER(at, struct peer_call, at);
	struct slu_err err = { 0 };

	if (op_decode_answer(c->op, message, broker_engine(to->net->broker, c->lane), &err)) {
		log_warn(to->net->log, "invalid answer of another node", F_STR("why", err.text));
		c->at.began = true;
		end_broken(to->net, c, &err);
	} else {
		come_back(to->net, c, false);
	}
	peer_bytes_unpin(message);
}

/* Nothing has happened: the op goes to the node of the hint, or to the node that members name (TARGET-1). */
static void
on_denied(struct peer_link *l, struct link_op *at, const struct peer_target *hint)
{
	struct peernet *const p = CONTAINER(l, struct peer_callee, sock.link)->net;
	struct peer_call *const c = CONTAINER(at, struct peer_call, at);

	pthread_mutex_lock(&p->mtx);
	if (hint && memcmp(hint->life, p->life, HELLO_LIFE) != 0)
		(void)target_learn(&p->targets[c->lane], hint); /* an old hint changes nothing */
	pthread_mutex_unlock(&p->mtx);
	come_back(p, c, true);
}

static void
on_opened(struct peer_link *l)
{
	log_debug(CONTAINER(l, struct peer_callee, sock.link)->net->log, "link to another node opened");
}

/* LINK-5: nothing is sent to this life until the next owner is known. */
static void
on_stopped(struct peer_link *l)
{
	const struct peer_callee *const to = CONTAINER(l, struct peer_callee, sock.link);
	struct peernet *const p = to->net;

	pthread_mutex_lock(&p->mtx);
	for (uint32_t i = 0; i < p->lanes; i++)
		if (memcmp(p->targets[i].life, to->life, HELLO_LIFE) == 0)
			p->targets[i].port = 0;
	pthread_mutex_unlock(&p->mtx);
	log_info(p->log, "another node stops");
}

static const struct link_events events = {
	.opened = on_opened,
	.answered = on_answered,
	.denied = on_denied,
	.stopped = on_stopped,
};

/* ---- Callees ---- */

static struct peer_callee *
find_callee(const struct peernet *p, const uint8_t life[static HELLO_LIFE])
{
	LIST_EACH(n, &p->callees) {
		struct peer_callee *const c = CONTAINER(n, struct peer_callee, node);

		if (memcmp(c->life, life, HELLO_LIFE) == 0)
			return c;
	}
	return NULL;
}

static struct peer_callee *
new_callee(struct peernet *p, const struct peer_target *t)
{
	struct peer_callee *const c = mem_zalloc(sizeof *c);

	if (!c || peersock_open(&c->sock, p, -1, HELLO_CALLER, &events, t->life)) {
		mem_free(c);
		return NULL;
	}
	c->net = p;
	memcpy(c->life, t->life, HELLO_LIFE);
	list_append(&p->callees, &c->node);
	peernet_dial(c, t);
	return c;
}

/* PEERNET-4. Under mtx. */
static void
leave_alone(struct peernet *p, const uint8_t life[static HELLO_LIFE])
{
	const slu_time until = peernet_now() + RETRY;

	for (uint32_t i = 0; i < p->lanes; i++)
		if (memcmp(p->targets[i].life, life, HELLO_LIFE) == 0)
			p->targets[i].not_before = until;
}

static unsigned
count_callees(const struct peernet *p)
{
	unsigned n = 0;

	LIST_EACH(each, &p->callees)
		n++;
	return n;
}

/* ---- New calls ---- */

static void
ask(struct peernet *p, struct peer_call *c)
{
	struct peer_target t;
	struct peer_callee *to;

	pthread_mutex_lock(&p->mtx);
	t = p->targets[c->lane];
	pthread_mutex_unlock(&p->mtx);
	to = t.port ? find_callee(p, t.life) : NULL;
	if (!to && t.port && count_callees(p) < PEERNET_LINKS)
		to = new_callee(p, &t);
	if (to && link_ask(&to->sock.link, &c->at, buf_slice(&c->message)) == 0)
		return;
	pthread_mutex_lock(&p->mtx);
	leave_alone(p, t.life);
	pthread_mutex_unlock(&p->mtx);
	come_back(p, c, true);
}

/* Moves all new calls to the list. */
static void
take_asks(struct peernet *p, struct list *asks)
{
	list_init(asks);
	pthread_mutex_lock(&p->mtx);
	list_take(&p->asks, asks);
	pthread_mutex_unlock(&p->mtx);
}

static struct peer_call *
next_ask(struct list *asks)
{
	struct peer_call *const c = list_is_empty(asks) ? NULL : CONTAINER(asks->next, struct peer_call, node);

	if (c)
		list_remove(&c->node);
	return c;
}

static struct peer_call *
next_cancel(struct peernet *p)
{
	struct peer_call *c = NULL;

	pthread_mutex_lock(&p->mtx);
	if (!list_is_empty(&p->cancels)) {
		c = CONTAINER(p->cancels.next, struct peer_call, cancel);
		list_remove(&c->cancel);
	}
	pthread_mutex_unlock(&p->mtx);
	return c;
}

/* A call is in one link: its owner may have changed since, so all are asked. */
static void
cancel_call(struct peernet *p, struct peer_call *c)
{
	LIST_EACH(n, &p->callees) {
		struct peer_link *const l = &CONTAINER(n, struct peer_callee, node)->sock.link;

		if (link_has(l, &c->at))
			link_cancel(l, &c->at);
	}
}

/* The broker drains: all ops that wait on other nodes end. */
static void
end_calls(struct peernet *p)
{
	LIST_EACH(n, &p->callees) {
		struct peer_link *const l = &CONTAINER(n, struct peer_callee, node)->sock.link;

		for (uint32_t i = 0; i < l->n_slots; i++)
			if (l->slots[i] && CONTAINER(l->slots[i], struct peer_call, at)->op->wait > 0)
				link_cancel(l, l->slots[i]);
	}
}

void
peernet_calls_take(struct peernet *p)
{
	struct peer_call *c;
	struct list asks;
	bool waits_end;

	take_asks(p, &asks);
	while ((c = next_ask(&asks)))
		ask(p, c);
	while ((c = next_cancel(p)))
		cancel_call(p, c);
	pthread_mutex_lock(&p->mtx);
	waits_end = p->waits_end;
	pthread_mutex_unlock(&p->mtx);
	if (waits_end)
		end_calls(p);
}

/* ---- Links that end ---- */

static bool
is_target(struct peernet *p, const uint8_t life[static HELLO_LIFE])
{
	bool found = false;

	pthread_mutex_lock(&p->mtx);
	for (uint32_t i = 0; !found && i < p->lanes; i++)
		found = p->targets[i].port && memcmp(p->targets[i].life, life, HELLO_LIFE) == 0;
	pthread_mutex_unlock(&p->mtx);
	return found;
}

/* The owner is left alone before its ops come back, or they would be sent to it at once. */
static void
end_callee(struct peer_callee *to)
{
	struct peernet *const p = to->net;
	struct link_op *at;

	if (to->lookup)
		to->lookup->callee = NULL;
	pthread_mutex_lock(&p->mtx);
	leave_alone(p, to->life);
	pthread_mutex_unlock(&p->mtx);
	if (to->sock.link.ops)
		log_warn(p->log, "link to another node lost", F_STR("why", to->sock.link.err.text),
			 F_U64("ops", to->sock.link.ops));
	while ((at = link_leave(&to->sock.link)))
		end_broken(p, CONTAINER(at, struct peer_call, at), &to->sock.link.err);
	peersock_close(&to->sock);
	list_remove(&to->node);
	mem_free(to);
}

void
peernet_callees_tidy(struct peernet *p)
{
	LIST_EACH_SAFE(n, &p->callees) {
		struct peer_callee *const to = CONTAINER(n, struct peer_callee, node);
		struct peer_link *const l = &to->sock.link;
		const bool needed = is_target(p, to->life);

		link_hurry(l, !needed && !l->stopping); /* PEERNET-8 */
		if (l->state == LINK_BROKEN || (l->ops == 0 && (l->stopping || !needed)))
			end_callee(to);
	}
}

void
peernet_calls_end(struct peernet *p)
{
	struct peer_call *c;
	struct list asks;

	take_asks(p, &asks);
	while ((c = next_ask(&asks)))
		come_back(p, c, true);
	while (!list_is_empty(&p->callees)) {
		struct peer_callee *const to = CONTAINER(p->callees.next, struct peer_callee, node);

		if (to->sock.link.state != LINK_BROKEN)
			(void)slu_fail(&to->sock.link.err, SLU_ECLOSED, "this node stops");
		end_callee(to);
	}
}
