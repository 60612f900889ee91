/*
 * test_engine_state.c - the documents beside messages: LOCK-7 and LOCK-12 of core/locks/locks.h. The Redis engine refuses
 * checkpoints.
 */
#include "lock_fixture.h"

#include "base/id.h"

struct state {
	struct held h;
	uint64_t id;
	char key[128];
};

/* The key of the state of a message of queue q. */
static void
state_key(struct state *s, uint64_t id)
{
	char uuid[ID_UUID_TEXT];

	s->id = id;
	snprintf(s->key, sizeof s->key, "q/q/state/%s", id_to_uuid(id, uuid));
}

/* Ask of the state, with the lease that the last claim gave. */
static void
begin_state(struct rig *r, struct state *s, enum op_verb verb)
{
	rig_op(&s->h.op, verb, RIG_SPACE, "q");
	s->h.op.lock.key = slice_of(s->key);
	s->h.op.lock.token = r->n ? r->rows[0].token : 0;
	lock_txn(s->h.op.lock.token, s->h.op.lock.txn);
}

static int
put_state(struct rig *r, struct state *s, const char *text)
{
	begin_state(r, s, OP_STATE_PUT);
	s->h.put = (struct op_put){ 0 };
	s->h.put.m.payload = slice_of(text);
	s->h.put.m.payload_size = strlen(text);
	s->h.op.puts = &s->h.put;
	s->h.op.n_puts = 1;
	return rig_do(r, &s->h.op);
}

static const char *
get_state(struct rig *r, struct state *s, bool as_holder)
{
	begin_state(r, s, OP_STATE_GET);
	if (!as_holder)
		s->h.op.lock.token = 0;
	if (rig_do(r, &s->h.op))
		return "refused";
	read_document(r, &s->h.op.lock.record, &s->h);
	op_unpin(&s->h.op);
	return s->h.text;
}

static uint32_t
claim_stateful(struct rig *r)
{
	rig_unpin(r);
	rig_op(&r->op, OP_CLAIM, RIG_SPACE, "q");
	r->op.claim.stateful = true;
	r->op.claim.lease = 10 * SLU_SEC;
	r->op.rows = r->rows;
	r->op.max_rows = 1;
	CHECK_EQ(0, rig_do(r, &r->op));
	r->n = r->op.n_rows;
	return r->n;
}

static uint32_t
count_states(struct rig *r)
{
	struct op op;

	rig_op(&op, OP_SHARD, "", "");
	CHECK_EQ(0, rig_do(r, &op));
	return (uint32_t)op.on_shard.states;
}

CASE(the_holder_of_a_message_holds_its_state) /* LQ-05, LQ-20, LQ-27 */
{
	struct state s;

	state_key(&s, rig_put(r, "q", NULL));
	CHECK_EQ(SLU_ELEASE, put_state(r, &s, "nobody's"));
	CHECK_EQ(1, claim_stateful(r));
	CHECK_EQ(0, r->rows[0].state_etag, "a fresh message has none");
	CHECK_STR("", get_state(r, &s, true));
	CHECK_EQ(0, put_state(r, &s, "step 1"));
	CHECK_STR("step 1", get_state(r, &s, true));
	CHECK_STR("", get_state(r, &s, false)); /* not committed */
	r->rows[0].token++;
	CHECK_EQ(SLU_ELEASE, put_state(r, &s, "another's"));
	CHECK_STR("refused", get_state(r, &s, true));
}

CASE(a_nack_commits_the_state_and_an_ack_removes_it) /* LQ-05, LQ-27 */
{
	struct op_item nack = { 0 };
	struct state s;
	uint64_t etag;

	state_key(&s, rig_put(r, "q", NULL));
	CHECK_EQ(1, claim_stateful(r));
	CHECK_EQ(0, put_state(r, &s, "step 1"));
	etag = s.h.op.lock.etag;
	nack.id = s.id;
	nack.token = r->rows[0].token;
	CHECK_EQ(0, rig_item(r, OP_NACK, &nack));
	rig_reopen(r);
	CHECK_EQ(1, claim_stateful(r), "and the next one goes on from there");
	CHECK_EQ(etag, r->rows[0].state_etag);
	CHECK_EQ(1, r->rows[0].state_version);
	CHECK_STR("step 1", get_state(r, &s, true));
	CHECK_EQ(0, put_state(r, &s, "step 2"));
	CHECK_EQ(0, rig_settle_one(r, OP_ACK, s.id, r->rows[0].token));
	CHECK_EQ(0, count_states(r), "nothing of it is left");
	CHECK_STR("", get_state(r, &s, false));
	rig_reopen(r);
	CHECK_EQ(0, count_states(r));
}

CASE(what_is_staged_goes_with_the_lease_of_the_message)
{
	struct state s;
	uint64_t old;

	state_key(&s, rig_put(r, "q", NULL));
	CHECK_EQ(1, claim_stateful(r));
	CHECK_EQ(0, put_state(r, &s, "lost"));
	old = r->rows[0].token;
	rig_pass(r, 10 * SLU_SEC);
	rig_reopen(r);
	CHECK_EQ(1, claim_stateful(r));
	CHECK_EQ(0, r->rows[0].state_etag);
	CHECK_STR("", get_state(r, &s, true));
	r->rows[0].token = old;
	CHECK_EQ(SLU_ELEASE, put_state(r, &s, "of an older delivery")); /* LQ-22 */
}

CASE(a_claim_that_is_returned_leaves_the_state_as_it_was)
{
	struct state s;

	state_key(&s, rig_put(r, "q", NULL));
	CHECK_EQ(1, claim_stateful(r));
	CHECK_EQ(0, put_state(r, &s, "lost"));
	rig_return(r);
	CHECK_STR("", get_state(r, &s, false));
	CHECK_EQ(1, claim_stateful(r));
	CHECK_STR("", get_state(r, &s, true));
}

CASE(extending_the_message_extends_its_state)
{
	struct op_item item = { .time = 100 * SLU_SEC };
	struct state s;

	state_key(&s, rig_put(r, "q", NULL));
	CHECK_EQ(1, claim_stateful(r));
	CHECK_EQ(0, put_state(r, &s, "kept"));
	item.id = s.id;
	item.token = r->rows[0].token;
	CHECK_EQ(0, rig_item(r, OP_EXTEND, &item));
	rig_pass(r, 99 * SLU_SEC);
	CHECK_STR("kept", get_state(r, &s, true));
	begin_state(r, &s, OP_KEEPALIVE);
	CHECK_EQ(SLU_EINVAL, rig_do(r, &s.h.op));
	CHECK_EQ(LOCK_OF_MESSAGE, s.h.op.lock.why);
	begin_state(r, &s, OP_ACQUIRE);
	CHECK_EQ(SLU_EINVAL, rig_do(r, &s.h.op));
}

CASE(a_release_of_a_message_s_state_commits_and_the_message_stays_leased)
{
	struct state s;

	state_key(&s, rig_put(r, "q", NULL));
	CHECK_EQ(1, claim_stateful(r));
	CHECK_EQ(0, put_state(r, &s, "kept"));
	begin_state(r, &s, OP_RELEASE);
	CHECK_EQ(0, rig_do(r, &s.h.op));
	CHECK_STR("kept", get_state(r, &s, false));
	CHECK_EQ(0, put_state(r, &s, "more"));
	CHECK_EQ(0, rig_settle_one(r, OP_ACK, s.id, r->rows[0].token));
	CHECK_EQ(0, count_states(r));
}

CASE(a_dead_letter_keeps_its_state_and_takes_it_along_when_deleted)
{
	struct op_item nack = { .dead = true };
	struct state s;

	state_key(&s, rig_put(r, "q", NULL));
	CHECK_EQ(1, claim_stateful(r));
	CHECK_EQ(0, put_state(r, &s, "why it failed"));
	nack.id = s.id;
	nack.token = r->rows[0].token;
	CHECK_EQ(0, rig_item(r, OP_NACK, &nack));
	rig_reopen(r);
	CHECK_STR("why it failed", get_state(r, &s, false));
	CHECK_EQ(0, rig_settle_one(r, OP_DELETE, s.id, 0));
	CHECK_EQ(0, count_states(r));
}

CASE(a_purge_takes_the_states_along)
{
	struct op_item nack = { 0 };
	struct state s;

	state_key(&s, rig_put(r, "q", NULL));
	CHECK_EQ(1, claim_stateful(r));
	CHECK_EQ(0, put_state(r, &s, "x"));
	nack.id = s.id;
	nack.token = r->rows[0].token;
	CHECK_EQ(0, rig_item(r, OP_NACK, &nack));
	rig_op(&s.h.op, OP_PURGE, RIG_SPACE, "q");
	CHECK_EQ(0, rig_do(r, &s.h.op));
	CHECK_EQ(1, s.h.op.count);
	CHECK_STR("", get_state(r, &s, false));
	rig_pass(r, 0);
	CHECK_EQ(0, count_states(r));
	rig_reopen(r);
	CHECK_EQ(0, count_states(r));
}

CASE(the_state_of_a_message_is_its_queue_s_alone)
{
	struct state s;

	state_key(&s, rig_put(r, "other", NULL));
	rig_claim(r, "other", 1);
	CHECK_EQ(SLU_ELEASE, put_state(r, &s, "by another queue's name"));
	begin_state(r, &s, OP_STATE_GET);
	s.h.op.queue = slice_of("other");
	CHECK_EQ(SLU_EINVAL, rig_do(r, &s.h.op), "the key names queue q");
}

/* ---- Checkpoints: LOCK-12 ---- */

static int
checkpoint(struct rig *r, const struct state *s, uint64_t token, const char *text)
{
	struct op_item item = { .id = s->id, .token = token, .time = 10 * SLU_SEC, .text = slice_of(text) };

	return rig_item(r, OP_EXTEND, &item);
}

/* The checkpoint that the last claim shows. */
static const char *
shown(struct rig *r, struct state *s)
{
	if (r->n == 0)
		return "no message";
	if (!r->rows[0].checkpoint.pin)
		return "";
	read_document(r, &r->rows[0].checkpoint, &s->h);
	return s->h.text;
}

CASE(the_next_claim_shows_the_last_checkpoint) /* PW-F8 */
{
	struct state s;

	state_key(&s, rig_put(r, "q", NULL));
	CHECK_EQ(1, rig_claim_for(r, "q", 10 * SLU_SEC));
	CHECK_STR("", shown(r, &s));
	CHECK_EQ(0, checkpoint(r, &s, r->rows[0].token, "1"));
	CHECK_EQ(0, checkpoint(r, &s, r->rows[0].token, "2"));
	CHECK_STR("2", get_state(r, &s, false));
	rig_reopen(r); /* as after a kill: the lease is found again */
	rig_pass(r, 20 * SLU_SEC);
	CHECK_EQ(1, rig_claim_for(r, "q", 10 * SLU_SEC));
	CHECK_STR("2", shown(r, &s));
	CHECK_EQ(2, r->rows[0].attempts);
	CHECK_EQ(1, r->rows[0].failures);
	rig_return(r);
	CHECK_EQ(1, rig_claim_for(r, "q", 10 * SLU_SEC));
	CHECK_STR("2", shown(r, &s));
	CHECK_EQ(0, rig_settle_one(r, OP_ACK, s.id, r->rows[0].token));
	CHECK_EQ(0, count_states(r));
}

CASE(a_checkpoint_takes_what_is_staged_along)
{
	struct state s;

	state_key(&s, rig_put(r, "q", NULL));
	CHECK_EQ(1, claim_stateful(r));
	CHECK_EQ(0, put_state(r, &s, "staged"));
	begin_state(r, &s, OP_STATE_PUT);
	prepare_put(&s.h, s.key, "file", "beside");
	s.h.op.lock.token = r->rows[0].token;
	s.h.op.queue = slice_of("q");
	lock_txn(s.h.op.lock.token, s.h.op.lock.txn);
	CHECK_EQ(0, rig_do(r, &s.h.op));
	CHECK_EQ(0, checkpoint(r, &s, r->rows[0].token, "kept"));
	rig_reopen(r);
	rig_pass(r, 20 * SLU_SEC);
	CHECK_EQ(1, claim_stateful(r));
	CHECK_STR("kept", shown(r, &s));
	CHECK_EQ(1, r->rows[0].state_version);
	begin_state(r, &s, OP_STATE_GET);
	s.h.op.lock.name = slice_of("file");
	CHECK_EQ(0, rig_do(r, &s.h.op));
	read_document(r, &s.h.op.lock.record, &s.h);
	CHECK_STR("beside", s.h.text);
	op_unpin(&s.h.op);
}

CASE(a_checkpoint_of_a_lease_that_has_ended_changes_nothing)
{
	struct state s;
	uint64_t old;

	state_key(&s, rig_put(r, "q", NULL));
	CHECK_EQ(1, rig_claim_for(r, "q", 10 * SLU_SEC));
	old = r->rows[0].token;
	CHECK_EQ(0, checkpoint(r, &s, old, "first"));
	rig_pass(r, 20 * SLU_SEC);
	CHECK_EQ(SLU_ELEASE, checkpoint(r, &s, old, "late"));
	CHECK_EQ(1, rig_claim_for(r, "q", 10 * SLU_SEC));
	CHECK_EQ(SLU_ELEASE, checkpoint(r, &s, old, "late"));
	CHECK_EQ(SLU_ENOTFOUND, checkpoint(r, &(struct state){ .id = s.id + 1 }, old, "another"));
	CHECK_STR("first", get_state(r, &s, false));
	CHECK_EQ(0, rig_settle_one(r, OP_ACK, s.id, r->rows[0].token));
	CHECK_EQ(SLU_ENOTFOUND, checkpoint(r, &s, r->rows[0].token, "gone"));
	CHECK_EQ(0, count_states(r));
}
