/*
 * live.c - GET /v1/admin/live: a line whenever the queues have changed (api/live/live.h), until the client goes.
 *
 *      {"at":"...","queues":[{"namespace":"default","queue":"jobs","ready":3, ...}],"more":false,"totals":{...},"problems":0}
 *
 * `namespace` narrows the lines to one namespace. The next line is made when the kernel has the line before. The answer
 * ends after MOST: the client asks again, and its token is checked again.
 */

#include "api/authorize.h"
#include "api/handler.h"
#include "api/live/live.h"
#include "auth/identity.h"

#define MOST (10 * 60 * SLU_SEC)

static const char lines[] = "application/x-ndjson";

struct state {
	struct slice namespace; /* n 0: all that the caller may see */
	struct live_reader reader;
	struct apicall *apicall;
	void (*ended)(struct exchange *x, bool sent); /* the one before */
	slu_time until;
	bool begun; /* call_begin */
};

static const struct param params[] = {
	PARAM(name, struct state, namespace),
};

static bool
may_see(const struct identity *who, struct slice space)
{
	return identity_may(who, space, RIGHT_READ) || identity_may(who, space, RIGHT_ADMIN);
}

static bool
sees(const struct live_reader *r, struct slice space)
{
	const struct state *const s = CONTAINER(r, struct state, reader);

	if (s->namespace.n)
		return slice_eq(s->namespace, space);
	return r->whole || may_see(s->apicall->x->who, space);
}

static bool
sees_some(const struct identity *who)
{
	for (unsigned i = 0; who && i < who->n_grants; i++)
		if (who->grants[i].rights & (RIGHT_READ | RIGHT_ADMIN))
			return true;
	return false;
}

/* --- lines -------------------------------------------------------------------- */

static void
give(struct apicall *a, struct state *s)
{
	if (s->begun) {
		exchange_piece(a->x, false);
		return;
	}
	s->begun = true;
	call_begin(call_of(a->x), 200, lines);
}

/* The client is gone, the server stops, or MOST is over. */
static void
end(struct apicall *a, const struct state *s)
{
	if (s->begun && a->gone)
		exchange_break(a->x);
	else if (s->begun)
		exchange_piece(a->x, true);
	else
		call_answer(call_of(a->x), 200, lines, NULL);
}

static void
step(struct apicall *a)
{
	struct state *const s = a->state;
	struct live *const l = a->api->live;
	enum live_got got;

	do {
		got = a->gone || clock_mono(a->api->clock) > s->until ? LIVE_ENDED
								      : live_take(l, &s->reader, &a->x->out);
	} while (got == LIVE_NOTHING && !live_wait(l, &s->reader));
	if (got == LIVE_GOT)
		give(a, s);
	else if (got == LIVE_ENDED)
		end(a, s);
}

static void
on_woken(struct loop_work *w)
{
	step(CONTAINER(w, struct state, reader.woken)->apicall);
}

/* EXCHANGE-7: the kernel has the line. */
static void
more(struct exchange *x)
{
	step(x->user);
}

static void
gone(struct exchange *x)
{
	struct apicall *const a = x->user;
	struct state *const s = a->state;

	a->gone = true;
	if (live_forget(a->api->live, &s->reader))
		end(a, s);
}

static void
ended(struct exchange *x, bool sent)
{
	const struct apicall *const a = x->user;
	struct state *const s = a->state;

	live_leave(a->api->live, &s->reader);
	s->ended(x, sent);
}

/* --- the call ------------------------------------------------------------------- */

static void
live(struct apicall *a)
{
	struct state *const s = a->state;
	struct slu_err err = { 0 };

	s->apicall = a;
	s->until = clock_mono(a->api->clock) + MOST;
	s->reader.loop = exchange_loop(a->x);
	s->reader.woken.run = on_woken;
	s->reader.whole = s->namespace.n == 0 && may_see(a->x->who, (struct slice){ 0 });
	s->reader.sees = sees;
	if ((s->namespace.n || !sees_some(a->x->who)) && !s->reader.whole && !authorize_space(a, s->namespace))
		return;
	if (!a->api->live) {
		apicall_refuse(a, SLU_ENOTFOUND, "this server has no live updates");
		return;
	}
	if (live_join(a->api->live, &s->reader, &err)) {
		apicall_refuse_err(a, &err, -1);
		return;
	}
	s->ended = a->x->ended;
	a->x->ended = ended;
	a->x->more = more;
	a->x->gone = gone;
	(void)call_add(call_of(a->x), "Cache-Control", SLICE("no-store")); /* the answer is fine without */
	step(a);
}

const struct handler admin_live = { live, sizeof(struct state), QUERY_ROWS(params) };
