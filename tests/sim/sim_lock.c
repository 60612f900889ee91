/*
 * sim_lock.c - clients of lock keys, and what each answer must be: LOCK-1 to LOCK-8 of
 * core/locks/locks.h in the plainest way.
 *
 * All that changes a key is synced before it is answered, so a power cut takes nothing that
 * was; but that a lease has ended is not: it may be back for its five seconds.
 */
#include "sim_world.h"

#include "base/id.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define ANY_DOC UINT_MAX

static struct model_lock *
lock_of(struct sim_world *w, const struct sim_call *c)
{
	return &w->model.locks[c->queue - MODEL_QUEUES][c->key];
}

static bool
is_held(const struct model_lock *l, slu_time now)
{
	return l->token && l->until > now;
}

/* By the clock of the shard that gave the lease; for a queue that moves it may be another shard. */
static slu_time
its_now(struct sim_world *w, const struct model_lock *l, const struct sim_call *c, slu_time now)
{
	return !w->conf.moves || (c && c->op.route.lane == l->lane) ? now : world_lane_now(w, l->lane);
}

/* Of one key they rise on whichever shard it is, and of all that are on one. */
static void
see_number(struct sim_world *w, const struct sim_call *c, struct model_lock *l, uint64_t number,
	   const char *what)
{
	if (number <= l->top)
		world_fail(w, "I4: %s %" PRIu64 " after %" PRIu64, what, number, l->top);
	l->top = number;
	if (!w->conf.moves)
		world_see_number(w, c->queue, number, what);
}

bool
world_is_free(struct sim_world *w, const struct sim_call *c)
{
	const struct model_lock *l = lock_of(w, c);

	return !l->doubt && !is_held(l, world_now(w, c->queue));
}

/* ---- Asking ---- */

static void
begin(struct sim_world *w, struct sim_call *c, enum op_verb verb, unsigned space, unsigned key)
{
	world_start(w, c, verb, MODEL_QUEUES + space);
	c->key = key;
	snprintf(c->keys[0], sizeof c->keys[0], "lock/%u", key);
	c->op.lock.key = slice_of(c->keys[0]);
	c->op.lock.ttl = world_some_time(w);
}

/* What a document says follows from its number. */
static void
document(char out[static WORLD_TEXT], unsigned doc)
{
	world_text(out, 'd', doc);
}

static void
give_document(struct sim_world *w, struct sim_call *c)
{
	c->doc = ++w->docs;
	document(c->texts[0], c->doc);
	c->puts[0] = (struct op_put){ .m = { .payload = slice_of(c->texts[0]) } };
	c->puts[0].m.payload_size = c->puts[0].m.payload.n;
	c->op.n_puts = 1;
}

/* By a lease that a client has or had; sometimes by a wrong token. */
static void
make_held(struct sim_world *w, struct sim_call *c)
{
	static const enum op_verb verbs[] = {
		OP_STATE_PUT,
		OP_STATE_PUT,
		OP_STATE_PUT,
		OP_RELEASE,
		OP_RELEASE,
		OP_KEEPALIVE,
		OP_STATE_REMOVE,
		OP_STATE_GET,
	};
	const unsigned at = (unsigned)world_dice(w, w->n_held);
	const struct held_lock held = w->held[at];

	begin(w, c, verbs[world_dice(w, COUNT(verbs))], held.space, held.key);
	c->op.lock.token = world_chance(w, 5) ? held.token - 1 : held.token;
	lock_txn(held.token, c->op.lock.txn);
	c->op.lock.rollback = world_chance(w, 30);
	if (c->op.verb == OP_STATE_PUT)
		give_document(w, c);
	if (c->op.verb == OP_RELEASE && !world_chance(w, 20))
		w->held[at] = w->held[--w->n_held];
}

bool
world_make_lock(struct sim_world *w, struct sim_call *c, unsigned queue)
{
	const unsigned key = (unsigned)world_dice(w, MODEL_LOCKS);

	if (w->n_leases && world_chance(w, 25))
		return world_make_state(w, c);
	if (w->n_held && world_chance(w, 75)) {
		make_held(w, c);
		return true;
	}
	if (world_chance(w, 20)) {
		begin(w, c, world_chance(w, 50) ? OP_STATE_GET : OP_DESCRIBE, queue / 2, key);
		return true;
	}
	begin(w, c, OP_ACQUIRE, queue / 2, key);
	c->op.wait = world_chance(w, 50) ? world_some_time(w) : 0;
	return true;
}

void
world_keep_lock(struct sim_world *w, const struct sim_call *c)
{
	if (w->n_held < WORLD_HELD)
		w->held[w->n_held++] = (struct held_lock){ c->queue - MODEL_QUEUES, c->key,
							   c->op.lock.token };
}

/* ---- Answers ---- */

/* LOCK-8: the next look shows whether it is forgotten. */
static void
check_version(struct sim_world *w, struct model_lock *l, uint64_t version, slu_time now)
{
	const slu_time known = l->token ? l->until + LOCK_KNOWN : l->known;

	if (w->conf.moves && !l->etag)
		l->version = version; /* without a state it does not move: LOCK-11 */
	if (version != l->version && version == 0 && !l->etag && !is_held(l, now) && known <= now)
		l->version = 0;
	if (version != l->version)
		world_fail(w, "K4: version %" PRIu64 ", not %" PRIu64, version, l->version);
}

static void
check_text(struct sim_world *w, struct op *op, unsigned doc)
{
	const struct op_ref *ref = &op->lock.record;
	struct message m;
	char want[WORLD_TEXT];
	int rc;

	CHECK(ref->pin && ref->size <= sizeof w->bytes);
	rc = engine_read(op->engine, ref, 0, ref->size, w->bytes, true, &w->err);
	if (rc && (w->disk->dead || w->failing))
		return;
	if (rc || message_decode((struct slice){ w->bytes, ref->size }, &m, &w->err))
		world_fail(w, "document %u cannot be read: %s", doc, w->err.text);
	document(want, doc);
	if ((doc != ANY_DOC && !slice_eq(slice_of(want), m.payload)) || m.number != op->lock.etag)
		world_fail(w, "document %u has other bytes", doc);
}

/* As anybody sees it, or as its holder does. */
static void
check_seen(struct sim_world *w, const struct model_lock *l, struct op *op, bool holder)
{
	const bool staged = holder && l->stages;
	const uint64_t etag = staged ? l->staged : l->etag;

	if (op->lock.etag != etag || op->lock.version != l->version + staged)
		world_fail(w,
			   "K3: etag %" PRIu64 ", version %" PRIu64 "; not %" PRIu64 ", %" PRIu64,
			   op->lock.etag, op->lock.version, etag, l->version + staged);
	if (etag)
		check_text(w, op, staged ? l->staged_doc : l->doc);
}

/* DISPATCH-1: no op that came before and may wait still waits for it. */
static void
check_line(struct sim_world *w, const struct sim_call *c)
{
	EACH(i, w->calls) {
		const struct sim_call *other = &w->calls[i];

		if (other->state == CALL_POSTED && other->op.verb == OP_ACQUIRE &&
		    !other->canceled && other->queue == c->queue && other->key == c->key &&
		    other->op.wait > 0 && !other->op.route.waited && other->serial < c->serial &&
		    c->op.wait > 0)
			world_fail(w, "acquire %u was served before %u", c->serial, other->serial);
	}
}

static void
end_acquire(struct sim_world *w, struct sim_call *c, slu_time now)
{
	struct model_lock *l = lock_of(w, c);

	if (c->op.rc == SLU_ELEASE && c->op.lock.why == LOCK_HELD) {
		if (!l->doubt && !is_held(l, its_now(w, l, c, now)) && !c->op.route.waited)
			world_fail(w, "K2: acquire %u was refused, and nobody has the key", c->serial);
		return;
	}
	if (c->op.rc)
		world_fail(w, "an acquire was refused: %d, %s", c->op.rc, c->op.err.text);
	if (!l->doubt && is_held(l, its_now(w, l, c, now)))
		world_fail(w, "K1: acquire %u got what %" PRIu64 " holds", c->serial, l->token);
	if (!w->conf.moves)
		check_line(w, c);
	see_number(w, c, l, c->op.lock.token, "token");
	if (c->op.lock.until != now + c->op.lock.ttl)
		world_fail(w, "acquire %u: another end", c->serial);
	check_version(w, l, c->op.lock.version, now);
	if (c->op.lock.etag != l->etag && !l->doubt)
		world_fail(w, "acquire %u: another state", c->serial);
	w->sum.locked++;
	l->fresh = !l->token && !l->etag && l->known <= now;
	l->token = c->op.lock.token;
	l->until = c->op.lock.until;
	l->lane = c->op.route.lane;
	l->stages = false;
	world_shard(w, c->queue)->synced = true;
}

static void
stage(struct model_lock *l, uint64_t etag, unsigned doc)
{
	l->stages = etag || l->etag; /* what was only staged was never there */
	l->staged = etag;
	l->staged_doc = doc;
}

static void
release(struct sim_world *w, struct model_lock *l, const struct sim_call *c)
{
	w->sum.rolled_back += l->stages && c->op.lock.rollback;
	w->sum.committed += l->stages && !c->op.lock.rollback;
	if (l->stages && !c->op.lock.rollback) {
		l->version++;
		l->etag = l->staged;
		l->doc = l->staged_doc;
	}
	l->stages = false;
	l->known = c->op.route.arrived + (c->returning && l->fresh ? 0 : LOCK_KNOWN);
	l->token = 0;
}

/* What the holder of that token asked for has happened. */
static void
end_held(struct sim_world *w, struct sim_call *c, struct model_lock *l)
{
	if (c->op.verb == OP_KEEPALIVE) {
		l->until = c->op.route.arrived + c->op.lock.ttl;
		if (c->op.lock.until != l->until)
			world_fail(w, "keepalive %u: another end", c->serial);
	}
	if (c->op.verb == OP_STATE_PUT) {
		see_number(w, c, l, c->op.lock.etag, "etag");
		stage(l, c->op.lock.etag, c->doc);
	}
	if (c->op.verb == OP_STATE_REMOVE && (l->stages ? l->staged : l->etag))
		stage(l, 0, 0);
	if (c->op.verb == OP_RELEASE)
		release(w, l, c);
	if (c->op.verb == OP_STATE_GET)
		check_seen(w, l, &c->op, true);
}

/* Of one that is not held, or by another token. */
static void
check_refused(struct sim_world *w, const struct sim_call *c)
{
	const int want = c->op.verb == OP_RELEASE ? 0 : SLU_ELEASE; /* LOCK-6 */

	if (c->op.rc != want)
		world_fail(w, "I5: %s by token %" PRIu64 ": %d instead of %d",
			   op_verb_name(c->op.verb), c->op.lock.token, c->op.rc, want);
}

static void
end_look(struct sim_world *w, struct sim_call *c, struct model_lock *l, slu_time now)
{
	check_version(w, l, c->op.lock.version, now);
	if (c->op.verb == OP_STATE_GET)
		check_seen(w, l, &c->op, false);
	else if (c->op.lock.token != (is_held(l, its_now(w, l, c, now)) ? l->token : 0))
		world_fail(w, "K2: token %" PRIu64 " is said to hold", c->op.lock.token);
}

void
world_end_lock(struct sim_world *w, struct sim_call *c, slu_time now)
{
	struct model_lock *l;
	const bool looks = c->op.verb == OP_DESCRIBE ||
			   (c->op.verb == OP_STATE_GET && !c->op.lock.token);

	if (c->op.rc == SLU_EFULL && (w->limited || world_is_down(w, c->queue)))
		return;
	if (c->queue < MODEL_QUEUES) {
		world_end_state(w, c);
		return;
	}
	l = lock_of(w, c);
	if (c->op.verb == OP_ACQUIRE) {
		end_acquire(w, c, now);
		return;
	}
	if (l->doubt)
		return;
	if (looks) {
		end_look(w, c, l, now);
		return;
	}
	if (c->op.lock.token != l->token || !is_held(l, its_now(w, l, c, c->op.route.arrived))) {
		check_refused(w, c);
		return;
	}
	if (c->op.rc)
		world_fail(w, "%s by token %" PRIu64 " was refused: %d, %s",
			   op_verb_name(c->op.verb), l->token, c->op.rc, c->op.err.text);
	end_held(w, c, l);
	world_shard(w, c->queue)->synced |= c->op.verb != OP_STATE_GET &&
					    (c->op.verb != OP_STATE_REMOVE || c->op.count);
}

void
world_doubt_lock(struct sim_world *w, struct sim_call *c)
{
	struct sim_msg *x;

	if (c->queue < MODEL_QUEUES) { /* a state that was put */
		x = model_find(&w->model, c->op.id);
		if (x)
			x->vague_state = true;
		return;
	}
	lock_of(w, c)->doubt |= c->op.verb != OP_STATE_GET && c->op.verb != OP_DESCRIBE;
}

/* ---- All keys ---- */

/* A key as it is found. */
struct found {
	struct op lease;
	struct op open; /* the document, pinned */
	struct op held; /* as the holder sees it, if there is one */
};

static bool
ask(struct sim_world *w, struct op *op, enum op_verb verb, unsigned place, const char *key,
    uint64_t token)
{
	op_init(op, verb, world_space(place), world_queue(place), NULL, NULL);
	op->lock.key = slice_of(key);
	op->lock.token = token;
	if (!world_call_now(w, op))
		return false;
	if (op->rc && !w->disk->dead && !w->failing && !(w->conf.moves && w->limited))
		world_fail(w, "%s of %s: %d, %s", op_verb_name(verb), key, op->rc, op->err.text);
	return op->rc == 0;
}

static void
let_go(struct found *f)
{
	op_unpin(&f->open);
	op_unpin(&f->held);
}

static bool
look(struct sim_world *w, unsigned place, unsigned key, struct found *f)
{
	char name[WORLD_KEY];

	memset(f, 0, sizeof *f);
	snprintf(name, sizeof name, "lock/%u", key);
	if (ask(w, &f->lease, OP_DESCRIBE, place, name, 0) &&
	    ask(w, &f->open, OP_STATE_GET, place, name, 0) &&
	    ask(w, &f->held, OP_STATE_GET, place, name, f->lease.lock.token))
		return true;
	let_go(f);
	return false;
}

/* Which document it is, by its bytes; ANY_DOC: it could not be read. */
static unsigned
read_number(struct sim_world *w, struct op *op)
{
	const struct op_ref *ref = &op->lock.record;
	char text[WORLD_TEXT];
	struct message m;

	if (!ref->pin || ref->size > sizeof w->bytes ||
	    engine_read(op->engine, ref, 0, ref->size, w->bytes, true, &w->err) ||
	    message_decode((struct slice){ w->bytes, ref->size }, &m, &w->err))
		return ANY_DOC;
	snprintf(text, sizeof text, "%.*s", (int)m.payload.n, m.payload.p); /* "d-7..." */
	return (unsigned)strtoul(text + 2, NULL, 10);
}

/* What is there is right from now on; but it is the old state, or a later one. */
static void
learn(struct sim_world *w, struct model_lock *l, struct found *f, unsigned place)
{
	uint64_t *top = &w->model.top[w->model.queues[place].shard];
	const uint64_t seen = f->held.lock.etag > f->lease.lock.token ? f->held.lock.etag
								      : f->lease.lock.token;

	if (f->open.lock.version < l->version && f->open.lock.version)
		world_fail(w, "a commit is lost: version %" PRIu64 " after %" PRIu64,
			   f->open.lock.version, l->version);
	*l = (struct model_lock){
		.version = f->open.lock.version,
		.etag = f->open.lock.etag,
		.doc = read_number(w, &f->open),
		.token = f->lease.lock.token,
		.until = f->lease.lock.until,
		.stages = f->held.lock.version > f->open.lock.version,
		.staged = f->held.lock.etag,
		.staged_doc = read_number(w, &f->held),
		.known = l->known,
		.lane = f->lease.route.lane,
		.top = seen > l->top ? seen : l->top,
	};
	*top = seen > *top ? seen : *top;
}

static void
check_key(struct sim_world *w, struct model_lock *l, struct found *f, unsigned place, bool adopt)
{
	const slu_time now = its_now(w, l, NULL, world_now(w, place));
	const uint64_t token = f->lease.lock.token;

	if (l->doubt && adopt)
		learn(w, l, f, place);
	if (l->doubt)
		return;
	if (is_held(l, now) ? token != l->token : token && (!adopt || token != l->token))
		world_fail(w, "K1, K2: token %" PRIu64 " holds, not %" PRIu64, token, l->token);
	if (token && adopt) {
		l->until = f->lease.lock.until; /* five seconds, at least */
		l->lane = f->lease.route.lane;
	}
	if (token && f->lease.lock.until != l->until)
		world_fail(w, "token %" PRIu64 " has another end", token);
	check_version(w, l, f->open.lock.version, now);
	check_seen(w, l, &f->open, false);
	check_seen(w, l, &f->held, token != 0);
}

bool
world_check_locks(struct sim_world *w, bool adopt)
{
	for (unsigned space = 0; w->locks && space < MODEL_SPACES; space++)
		for (unsigned key = 0; key < MODEL_LOCKS; key++) {
			struct model_lock *l = &w->model.locks[space][key];
			struct found f;

			if (!look(w, MODEL_QUEUES + space, key, &f))
				return false;
			check_key(w, l, &f, MODEL_QUEUES + space, adopt);
			if (adopt)
				l->doubt = false;
			let_go(&f);
		}
	return true;
}

/* ---- The states of messages: LOCK-7 ---- */

bool
world_make_state(struct sim_world *w, struct sim_call *c)
{
	const struct sim_lease held = w->leases[world_dice(w, w->n_leases)];
	const struct slice queue = world_queue(held.queue);
	char uuid[ID_UUID_TEXT];

	world_start(w, c, OP_STATE_PUT, held.queue);
	snprintf(c->state_key, sizeof c->state_key, "q/%.*s/state/%s", (int)queue.n, queue.p,
		 id_to_uuid(held.id, uuid));
	c->op.id = held.id;
	c->op.lock.key = slice_of(c->state_key);
	c->op.lock.token = held.token;
	lock_txn(held.token, c->op.lock.txn);
	give_document(w, c);
	return true;
}

void
world_end_state(struct sim_world *w, struct sim_call *c)
{
	struct sim_msg *x;
	const int right = model_right(&w->model, c->queue, c->op.id, c->op.lock.token,
				      c->op.route.arrived, &x);

	if (x && x->fading)
		return;
	if ((right == 0) != (c->op.rc == 0) || (c->op.rc && c->op.rc != SLU_ELEASE))
		world_fail(w, "I5: state of %" PRIu64 " by token %" PRIu64 ": %d instead of %d",
			   c->op.id, c->op.lock.token, c->op.rc, right);
	if (right)
		return;
	world_see_number(w, c->queue, c->op.lock.etag, "etag");
	x->staged = c->op.lock.etag;
	x->staged_by = x->token;
	world_shard(w, c->queue)->synced = true;
}

void
world_check_state(struct sim_world *w, const struct op_row *row, struct sim_msg *x)
{
	if (row->state_etag != x->etag && !x->vague_state)
		world_fail(w, "K7: %" PRIu64 " has state %" PRIu64 ", not %" PRIu64, x->id,
			   row->state_etag, x->etag);
	x->etag = row->state_etag;
	x->vague_state = false;
}

/* Nothing is left of what is gone. */
void
world_count_states(struct sim_world *w)
{
	uint32_t want = 0, got = 0;

	for (unsigned i = 0; i < w->n_shards; i++) {
		struct locks_size size;

		locks_size(logengine_locks(w->shards[i].engine), &size);
		got += size.messages;
	}
	EACH_MSG(x, &w->model)
	{
		if (x->vague_state)
			return;
		want += x->etag || (x->state == M_LEASED && x->staged && x->staged_by == x->token);
	}
	if (want != got && !w->disk->dead && !w->failing)
		world_fail(w, "K7: %u messages have a state, not %u", got, want);
}
