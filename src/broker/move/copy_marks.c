/*
 * copy_marks.c - sends a queue to another shard: COPY-2 and COPY-5 of broker/move/copy.h.
 *
 *      MARK ──> its home ──> to ──> from, if the home is another shard
 *
 * The home is the shard that the queue lives on. The mark there decides: of two nodes that send the
 * queue somewhere at the same time, one comes second there and has changed nothing. If a node dies
 * between two marks, the next node that serves the queue sets the others (broker/move/table.h),
 * because they are older.
 */
#include "broker/broker_private.h"
#include "broker/move/copy_private.h"

#include "core/queue/policy.h"

enum {
	CHAIN = 16 /* marks that are followed from one to the next */
};

/* Where the queue lives. */
struct home {
	uint32_t lane;         /* UINT32_MAX: this node does not know the shard */
	uint64_t epoch;        /* since which */
	char name[MOVE_SHARD]; /* the shard by its mark */
	struct op_move at;     /* the look at it */
	bool marked;           /* a mark of that epoch names it, not only the map */
	bool alone;            /* the map names no former shard */
};

/* ---- The policy ---- */

static int
policy_of(const struct movecopy *mv, uint32_t lane, struct policy *out, struct slu_err *err)
{
	struct movewait w;
	int rc;

	movewait_init(&w, mv, OP_POLICY_GET);
	rc = movewait_at(&w, mv->b, lane, err);
	*out = w.op.policy;
	movewait_release(&w);
	return rc;
}

static int
set_policy(const struct movecopy *mv, const struct policy *p, struct slu_err *err)
{
	struct movewait w;
	int rc;

	movewait_init(&w, mv, OP_POLICY_SET);
	w.op.policy = *p;
	rc = movewait_at(&w, mv->b, mv->to_lane, err);
	movewait_release(&w);
	return rc;
}

/* ---- The home ---- */

/* The home by the map, and whether the queue ever lived elsewhere, as far as this node knows. */
static int
by_map(const struct movecopy *mv, struct home *h, struct slu_err *err)
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
movecopy_is_mapped(const struct movecopy *mv)
{
	struct home h;

	return by_map(mv, &h, NULL) == 0 && h.lane == mv->to_lane;
}

/* The mark with the highest epoch decides; of two with one epoch, the mark of the home so far. */
static void
consider(const struct movecopy *mv, struct home *h, uint32_t lane, const struct op_move *m)
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

/* Finds the home by the map, then follows the marks. */
static int
find_home(const struct movecopy *mv, struct home *h, struct slu_err *err)
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
			return movecopy_no_such_shard(mv, h->name, err);
		rc = movecopy_step(mv, looked, MOVE_LOOK, 0, &h->at, err);
		if (!rc)
			consider(mv, h, looked, &h->at);
	}
	if (!rc && h->lane != looked)
		rc = slu_fail(err, SLU_EBUSY, "queue %.*s of %.*s keeps moving",
			      (int)mv->queue.n, mv->queue.p, (int)mv->space.n, mv->space.p);
	return rc;
}

/* ---- The policy goes first: COPY-5 ---- */

/* Where the queue lived, by the newest mark, also if a newer map that has set no mark yet says
 * otherwise. */
struct former {
	uint32_t lane;        /* UINT32_MAX: on `to`, or not known */
	bool sure;            /* a mark says so, or the queue never moved */
	struct op_move at;    /* the look at it */
	struct policy policy; /* as it was copied */
};

static void
consider_former(const struct movecopy *mv, struct former *f, uint32_t lane, const struct op_move *m)
{
	if (m->epoch <= f->at.epoch)
		return;
	f->at = *m;
	f->sure = true;
	f->lane = m->lives[0] ? broker_lane_on(mv->b, m->lives, mv->space, mv->queue) : lane;
}

static int
find_former(const struct movecopy *mv, const struct home *h, struct former *f, struct slu_err *err)
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
	return f->lane == UINT32_MAX ? 0 : movecopy_step(mv, f->lane, MOVE_LOOK, 0, &f->at, err);
}

/* Fails if another node has marked the shard meanwhile: the policy may be an old one. */
static int
check_former(const struct movecopy *mv, const struct former *f, struct slu_err *err)
{
	struct op_move is;
	const int rc = movecopy_step(mv, f->lane, MOVE_LOOK, 0, &is, err);

	return rc || is.epoch == f->at.epoch
		       ? rc
		       : slu_fail(err, SLU_ECONFLICT,
				  "queue %.*s of %.*s has just been sent to another shard; repeat the move",
				  (int)mv->queue.n, mv->queue.p, (int)mv->space.n, mv->space.p);
}

/* If the queue may always have been on `to` by the map, the policy there counts. */
static bool
is_newer(const struct movecopy *mv, const struct home *h, const struct former *f,
	 const struct policy *own)
{
	if (!f->sure && h->lane == mv->to_lane && !policy_is_same(own, &policy_default))
		return false;
	return policy_replaces(&f->policy, own, f->sure);
}

static int
copy_policy(const struct movecopy *mv, const struct home *h, struct former *f, struct slu_err *err)
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

/* The policy may have changed on the former shard before its mark was set. After that a change goes to
 * both shards, the former one first; so no change is hidden once the two agree. */
static int
follow_policy(const struct movecopy *mv, struct former *f, struct slu_err *err)
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
movecopy_lift(const struct movecopy *mv, uint64_t former, struct slu_err *err)
{
	struct movewait w;
	int rc = 0;

	movewait_init(&w, mv, OP_MOVE);
	if (move_lift(&w.op.move, mv->there.counter, former))
		rc = movewait_at(&w, mv->b, mv->to_lane, err);
	movewait_release(&w);
	return rc;
}

/* The shard of the queue for people; lives: op_move.lives of the lane. */
static const char *
shard_of(const struct movecopy *mv, const char *lives, uint32_t lane)
{
	const uint32_t at = *lives ? broker_lane_on(mv->b, lives, mv->space, mv->queue) : lane;

	return at == UINT32_MAX ? lives : broker_shard_name(mv->b, at);
}

static int
mark(const struct movecopy *mv, uint32_t lane, uint64_t epoch, struct op_move *out,
     struct slu_err *err)
{
	struct movewait w;
	int rc;

	movewait_init(&w, mv, OP_MOVE);
	w.op.move.step = MOVE_MARK;
	w.op.home.epoch = epoch;
	w.op.home.lives = lane == mv->to_lane ? "" : mv->to;
	rc = movewait_at(&w, mv->b, lane, err);
	*out = w.op.move;
	movewait_release(&w);
	if (!rc && strcmp(out->lives, lane == mv->to_lane ? "" : mv->to) != 0)
		rc = slu_fail(err, SLU_ECONFLICT,
			      "queue %.*s of %.*s has just been sent to shard %s; repeat the move",
			      (int)mv->queue.n, mv->queue.p, (int)mv->space.n, mv->space.p,
			      shard_of(mv, out->lives, lane));
	return rc;
}

/* Sends the queue from its home to `to`. */
static int
send(struct movecopy *mv, const struct home *h, uint64_t epoch, struct slu_err *err)
{
	struct op_move ignored;
	int rc = movecopy_lift(mv, h->at.counter, err);

	if (!rc)
		rc = mark(mv, h->lane, epoch, h->lane == mv->from_lane ? &mv->here : &ignored, err);
	if (!rc)
		rc = mark(mv, mv->to_lane, epoch, &mv->there, err);
	if (!rc && h->lane != mv->from_lane)
		rc = mark(mv, mv->from_lane, epoch, &mv->here, err);
	return rc;
}

/* The queue lives on `to` already; marks `from`. */
static int
tell_from(struct movecopy *mv, uint64_t epoch, struct slu_err *err)
{
	const int rc = movecopy_lift(mv, mv->here.counter, err);

	return rc ? rc : mark(mv, mv->from_lane, epoch, &mv->here, err);
}

int
movecopy_set_marks(struct movecopy *mv, struct slu_err *err)
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
