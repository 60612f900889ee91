/*
 * mover_marks.c - a queue is sent to another shard: Z2 of broker/mover.h.
 *
 *      MARK ──> where it lives ──> to ──> from, if it lived elsewhere
 *
 * Where it lives decides: of two that send it somewhere at the same time, one comes second there,
 * and has done nothing. Whoever dies between two marks leaves the others to the next who serves
 * the queue (broker/moving.h), for they are older.
 */
#include "broker/broker_in.h"
#include "broker/mover_in.h"

#include "core/policy.h"

#include <stdio.h>

enum {
	CHAIN = 16 /* marks that are followed, one to the next */
};

/* Where the queue lives, and since which epoch. */
struct home {
	uint32_t lane;
	uint64_t epoch;
	char name[MOVE_SHARD];
	struct op_move at; /* the look at it */
	bool marked;       /* a mark of that epoch says so, not the map alone */
	bool alone;        /* the map names no other */
};

/* ---- The policy ---- */

static int
policy_of(const struct move *mv, uint32_t lane, struct policy *out, struct slu_err *err)
{
	struct wait w;
	int rc;

	wait_init(&w, mv, OP_POLICY_GET);
	rc = wait_at(&w, mv->b, lane, err);
	*out = w.op.policy;
	wait_release(&w);
	return rc;
}

static int
set_policy(const struct move *mv, const struct policy *p, struct slu_err *err)
{
	struct wait w;
	int rc;

	wait_init(&w, mv, OP_POLICY_SET);
	w.op.policy = *p;
	rc = wait_at(&w, mv->b, mv->to_lane, err);
	wait_release(&w);
	return rc;
}

/* ---- Where it lives ---- */

/* Where it lives by the map, and whether that is the only place it ever had: by the map, and for
 * all that this node knows. */
static int
by_map(const struct move *mv, struct home *h, struct slu_err *err)
{
	const struct routes *const r = broker_routes(mv->b);
	const struct shardmap *const map = broker_map(r);
	struct broker_place places[SUPPLIED_MAX];
	unsigned n;
	const int rc = broker_places(mv->b, r, mv->space, mv->queue, places, &n, err);

	*h = (struct home){ 0 };
	if (rc)
		return rc;
	h->lane = places[0].lane;
	h->epoch = map ? shardmap_version(map) << MOVE_EPOCH_BITS : 0;
	h->alone = n == 1;
	return 0;
}

bool
is_mapped(const struct move *mv)
{
	struct home h;

	return by_map(mv, &h, NULL) == 0 && h.lane == mv->to_lane;
}

/* The highest epoch says so; of the same, the one where we take it to live. */
static void
consider(const struct move *mv, struct home *h, uint32_t lane, const struct op_move *m)
{
	if (m->epoch < h->epoch || m->epoch == 0)
		return;
	h->marked = true;
	if (m->epoch == h->epoch && (lane != h->lane || !m->lives[0]))
		return;
	h->epoch = m->epoch;
	h->lane = lane;
	if (!m->lives[0])
		return;
	h->lane = broker_lane_on(mv->b, m->lives, mv->space, mv->queue);
	memcpy(h->name, m->lives, sizeof h->name);
}

/* The map, and the marks as far as they lead. */
static int
find_home(const struct move *mv, struct home *h, struct slu_err *err)
{
	uint32_t looked = UINT32_MAX;
	int rc = by_map(mv, h, err);

	if (!rc)
		consider(mv, h, mv->from_lane, &mv->here);
	if (!rc)
		consider(mv, h, mv->to_lane, &mv->there);
	for (int i = 0; !rc && h->lane != looked && i < CHAIN; i++) {
		looked = h->lane;
		if (looked == UINT32_MAX)
			return no_such_shard(mv, h->name, err);
		rc = step(mv, looked, MOVE_LOOK, 0, &h->at, err);
		if (!rc)
			consider(mv, h, looked, &h->at);
	}
	if (!rc && h->lane != looked)
		rc = slu_fail(err, SLU_EBUSY, "queue %.*s of %.*s moves again and again",
			      (int)mv->queue.n, mv->queue.p, (int)mv->space.n, mv->space.p);
	return rc;
}

/* ---- The policy goes ahead ---- */

/* Where it lived, by the newest mark that we have seen, also if a newer map says otherwise of
 * which nobody has heard; without any mark only perhaps. */
struct former {
	uint32_t lane; /* UINT32_MAX: on `to`, or nobody knows */
	bool sure;
	struct op_move at; /* the look at it */
	struct policy policy;
};

static void
consider_former(const struct move *mv, struct former *f, uint32_t lane, const struct op_move *m)
{
	if (m->epoch <= f->at.epoch)
		return;
	f->at = *m;
	f->sure = true;
	f->lane = m->lives[0] ? broker_lane_on(mv->b, m->lives, mv->space, mv->queue) : lane;
}

static int
find_former(const struct move *mv, const struct home *h, struct former *f, struct slu_err *err)
{
	*f = (struct former){ .lane = h->lane, .sure = h->marked || h->alone };
	if (!f->sure && h->lane == mv->to_lane)
		f->lane = mv->from_lane;
	if (!h->marked) {
		consider_former(mv, f, h->lane, &h->at);
		consider_former(mv, f, mv->from_lane, &mv->here);
		consider_former(mv, f, mv->to_lane, &mv->there);
	}
	if (f->lane == mv->to_lane)
		f->lane = UINT32_MAX;
	return f->lane == UINT32_MAX ? 0 : step(mv, f->lane, MOVE_LOOK, 0, &f->at, err);
}

/* Somebody has been faster: the policy that we know may be an old one. */
static int
check_former(const struct move *mv, const struct former *f, struct slu_err *err)
{
	struct op_move is;
	const int rc = step(mv, f->lane, MOVE_LOOK, 0, &is, err);

	return rc || is.epoch == f->at.epoch
		       ? rc
		       : slu_fail(err, SLU_ECONFLICT,
				  "queue %.*s of %.*s has just been sent somewhere: run this again",
				  (int)mv->queue.n, mv->queue.p, (int)mv->space.n, mv->space.p);
}

/* If it may have been on `to` all the time, by the map, the policy there counts. */
static bool
is_newer(const struct move *mv, const struct home *h, const struct former *f,
	 const struct policy *own)
{
	if (!f->sure && h->lane == mv->to_lane && !policy_is_same(own, &policy_default))
		return false;
	return policy_replaces(&f->policy, own, f->sure);
}

static int
copy_policy(const struct move *mv, const struct home *h, struct former *f, struct slu_err *err)
{
	struct policy own;
	int rc = find_former(mv, h, f, err);

	if (rc || f->lane == UINT32_MAX)
		return rc;
	rc = policy_of(mv, f->lane, &f->policy, err);
	if (!rc)
		rc = policy_of(mv, mv->to_lane, &own, err);
	if (rc || !is_newer(mv, h, f, &own))
		return rc;
	rc = check_former(mv, f, err);
	return rc ? rc : set_policy(mv, &f->policy, err);
}

/* Somebody may have set another one there until the mark stood. From then on both have it, where
 * the queue lived first: so what is there when ours is set is the last that we could have hidden. */
static int
follow_policy(const struct move *mv, struct former *f, struct slu_err *err)
{
	struct policy is, now;
	int rc = 0;

	for (int i = 0; f->lane != UINT32_MAX && i < CHAIN; i++) {
		rc = policy_of(mv, f->lane, &is, err);
		if (rc || policy_is_same(&is, &f->policy))
			break;
		rc = policy_of(mv, mv->to_lane, &now, err);
		if (rc || !policy_follows(&now, &f->policy, &is))
			break;
		rc = set_policy(mv, &now, err);
		if (rc)
			break;
		f->policy = is;
	}
	return rc;
}

/* ---- Marks ---- */

int
lift(const struct move *mv, uint64_t former, struct slu_err *err)
{
	struct wait w;
	int rc = 0;

	wait_init(&w, mv, OP_MOVE);
	if (move_lift(&w.op.move, mv->there.counter, former))
		rc = wait_at(&w, mv->b, mv->to_lane, err);
	wait_release(&w);
	return rc;
}

static int
mark(const struct move *mv, uint32_t lane, uint64_t epoch, struct op_move *out,
     struct slu_err *err)
{
	struct wait w;
	int rc;

	wait_init(&w, mv, OP_MOVE);
	w.op.move.step = MOVE_MARK;
	w.op.epoch = epoch;
	w.op.lives = lane == mv->to_lane ? "" : mv->to;
	rc = wait_at(&w, mv->b, lane, err);
	*out = w.op.move;
	wait_release(&w);
	if (!rc && strcmp(out->lives, lane == mv->to_lane ? "" : mv->to) != 0)
		rc = slu_fail(err, SLU_ECONFLICT,
			      "queue %.*s of %.*s has just been sent to shard %s: run this again",
			      (int)mv->queue.n, mv->queue.p, (int)mv->space.n, mv->space.p,
			      out->lives[0] ? out->lives : broker_shard_name(mv->b, lane));
	return rc;
}

/* It is sent to `to` from where it lives. */
static int
send(struct move *mv, const struct home *h, uint64_t epoch, struct slu_err *err)
{
	struct op_move ignored;
	int rc = lift(mv, h->at.counter, err);

	if (!rc)
		rc = mark(mv, h->lane, epoch, h->lane == mv->from_lane ? &mv->here : &ignored, err);
	if (!rc)
		rc = mark(mv, mv->to_lane, epoch, &mv->there, err);
	if (!rc && h->lane != mv->from_lane)
		rc = mark(mv, mv->from_lane, epoch, &mv->here, err);
	return rc;
}

/* It lives there already; `from` may not know. */
static int
tell_from(struct move *mv, uint64_t epoch, struct slu_err *err)
{
	const int rc = lift(mv, mv->here.counter, err);

	return rc ? rc : mark(mv, mv->from_lane, epoch, &mv->here, err);
}

int
set_marks(struct move *mv, struct slu_err *err)
{
	struct former former;
	struct home h;
	int rc = find_home(mv, &h, err);

	if (!rc && h.lane == mv->to_lane && mv->here.epoch >= h.epoch && strcmp(mv->here.lives, mv->to) == 0)
		return 0;
	if (!rc)
		rc = copy_policy(mv, &h, &former, err);
	if (!rc && h.lane == mv->to_lane && mv->here.epoch < h.epoch)
		rc = tell_from(mv, h.epoch, err);
	else if (!rc)
		rc = send(mv, &h, h.epoch + 1, err);
	return rc ? rc : follow_policy(mv, &former, err);
}
