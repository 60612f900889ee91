/*
 * Two ends of a link, byte by byte: HELLO-1 to HELLO-5 and LINK-1 to LINK-5. The last tests break the
 * link at every byte, and kill either node at any step: PEER-1.
 */
#include "test.h"

#include "base/le.h"
#include "base/mem.h"
#include "peer/fate.h"
#include "peer/link.h"

enum {
	OPS = 8,
	LARGE = 200 * 1024,
	PIPE = 8 << 20
};

static const uint8_t secret[HELLO_SECRET] = "the secret of the store";
static const uint8_t caller_life[HELLO_LIFE] = "caller";
static const uint8_t owner_life[HELLO_LIFE] = "owner";

/* ---- Two nodes ---- */

/* An op of the caller. */
struct call {
	struct link_op at;
	enum op_verb verb;
	struct buf question;
	unsigned answers;
	unsigned refusals; /* NOT_OWNER */
	struct buf answer;
};

/* An op of the owner. */
struct work {
	struct link_op at;
	uint64_t number;
	struct buf answer;
	bool canceled;
	bool used;
};

static struct peer_link caller, owner;
static struct buf to_owner, to_caller; /* on the wire */
static struct call calls[OPS];
static struct work works[64];
static unsigned n_works, opened, stopped;
static unsigned ran[OPS]; /* by the first byte of the question: how often the owner ran it */
static bool disowned;     /* the owner owns nothing */
static struct peer_target next_owner, hinted;
static slu_time now;

static void
on_opened(struct peer_link *l)
{
	(void)l;
	opened++;
}

static void
on_asked(struct peer_link *l, uint64_t number, struct peer_bytes *message)
{
	struct work *const w = &works[n_works];
	const unsigned i = (uint8_t)message->p[0];

	if (disowned) {
		link_not_owner(l, number, &next_owner);
	} else {
		CHECK(n_works < COUNT(works) && i < OPS);
		n_works++;
		*w = (struct work){ .number = number, .used = true };
		if (link_accept(l, &w->at, number) == 0)
			ran[i]++;
		buf_init(&w->answer, PIPE);
		buf_put(&w->answer, message->p, message->n); /* an echo */
	}
	peer_bytes_unpin(message);
}

static void
on_canceled(struct peer_link *l, struct link_op *op)
{
	(void)l;
	CONTAINER(op, struct work, at)->canceled = true;
}

static void
on_answered(struct peer_link *l, struct link_op *op, struct peer_bytes *message)
{
	struct call *const c = CONTAINER(op, struct call, at);

	(void)l;
	c->answers++;
	buf_put(&c->answer, message->p, message->n);
	peer_bytes_unpin(message);
}

static void
on_denied(struct peer_link *l, struct link_op *op, const struct peer_target *hint)
{
	(void)l;
	CONTAINER(op, struct call, at)->refusals++;
	hinted = hint ? *hint : (struct peer_target){ 0 };
}

static void
on_stopped(struct peer_link *l)
{
	(void)l;
	stopped++;
}

static const struct link_events events = {
	.opened = on_opened,
	.asked = on_asked,
	.canceled = on_canceled,
	.answered = on_answered,
	.denied = on_denied,
	.stopped = on_stopped,
};

static struct link_conf
conf_of(enum hello_role role)
{
	struct link_conf c = { .role = role, .events = &events, .secret = secret };

	memcpy(c.life, role == HELLO_CALLER ? caller_life : owner_life, HELLO_LIFE);
	memcpy(c.other, owner_life, HELLO_LIFE);
	memset(c.nonce, role == HELLO_CALLER ? 0x11 : 0x22, HELLO_NONCE);
	return c;
}

static void
connect_with(const struct link_conf *a, const struct link_conf *b)
{
	buf_init(&to_owner, PIPE);
	buf_init(&to_caller, PIPE);
	link_init(&caller, a, now);
	link_init(&owner, b, now);
}

static void
connect_nodes(void)
{
	const struct link_conf a = conf_of(HELLO_CALLER), b = conf_of(HELLO_OWNER);

	connect_with(&a, &b);
}

/* Passes up to n bytes on. Returns how many. */
static size_t
pass(struct peer_link *to, struct buf *wire, size_t n)
{
	n = n < wire->n ? n : wire->n;
	(void)link_take(to, wire->p, n, now); /* the state says the rest */
	if (n > 0)
		memmove(wire->p, wire->p + n, wire->n - n);
	wire->n -= n;
	return n;
}

/* Passes bytes in pieces of this size until nothing moves. */
static void
turn(size_t piece)
{
	bool moved = true;

	while (moved) {
		moved = link_give(&caller, &to_owner);
		moved |= link_give(&owner, &to_caller);
		moved |= pass(&owner, &to_owner, piece) > 0;
		moved |= pass(&caller, &to_caller, piece) > 0;
	}
}

static void
end_nodes(void)
{
	while (link_leave(&caller))
		;
	while (link_leave(&owner))
		;
	link_release(&caller);
	link_release(&owner);
	buf_release(&to_owner);
	buf_release(&to_caller);
	for (unsigned i = 0; i < n_works; i++)
		buf_release(&works[i].answer);
	n_works = 0;
}

static void
end_all(void)
{
	end_nodes();
	EACH(i, calls) {
		buf_release(&calls[i].question);
		buf_release(&calls[i].answer);
	}
}

FIXTURE(NULL, end_all);

static void
prepare(unsigned i, enum op_verb verb, size_t size)
{
	struct call *const c = &calls[i];

	*c = (struct call){ .verb = verb };
	buf_init(&c->question, PIPE);
	buf_init(&c->answer, PIPE);
	buf_putc(&c->question, (char)i);
	for (size_t k = 1; k < size; k++)
		buf_putc(&c->question, (char)(k * 7 + i));
}

static void
ask(unsigned i)
{
	CHECK_EQ(0, link_ask(&caller, &calls[i].at, buf_slice(&calls[i].question)));
}

static void
answer(struct work *w)
{
	CHECK(w->used && w->at.number);
	link_answer(&owner, &w->at, buf_slice(&w->answer));
}

/* ---- The hello ---- */

TEST(nodes_with_one_secret_prove_themselves)
{
	connect_nodes();
	turn(1);
	CHECK(link_is_open(&caller) && link_is_open(&owner));
	CHECK_EQ(2, opened);
}

TEST(the_secret_is_not_sent)
{
	struct buf all;

	buf_init(&all, PIPE);
	connect_nodes();
	for (int i = 0; i < 8; i++) {
		(void)link_give(&caller, &to_owner);
		(void)link_give(&owner, &to_caller);
		buf_put(&all, to_owner.p, to_owner.n);
		buf_put(&all, to_caller.p, to_caller.n);
		pass(&owner, &to_owner, SIZE_MAX);
		pass(&caller, &to_caller, SIZE_MAX);
	}
	CHECK(link_is_open(&caller));
	CHECK(!memmem(all.p, all.n, secret, 8));
	buf_release(&all);
}

TEST(a_node_of_another_store_or_another_life_is_refused)
{
	static const uint8_t other[HELLO_SECRET] = "the secret of another store";
	static const struct {
		const char *label;
		bool secret, life, binding;
	} cases[] = {
		{ "another secret", true, false, false },
		{ "HELLO-3: the caller wants another life", false, true, false },
		{ "HELLO-4: another session of TLS", false, false, true },
	};

	EACH(i, cases) {
		struct link_conf a = conf_of(HELLO_CALLER), b = conf_of(HELLO_OWNER);

		opened = 0;
		a.secret = cases[i].secret ? other : secret;
		a.other[0] ^= cases[i].life;
		connect_with(&a, &b);
		if (cases[i].binding)
			link_bind(&caller, (const uint8_t[HELLO_BINDING]){ 1 });
		turn(100);
		CHECK_EQ(LINK_BROKEN, owner.state, cases[i].label);
		CHECK_EQ(0, opened, cases[i].label);
		CHECK_EQ(0, to_caller.n, "HELLO-5: no proof");
		end_nodes();
	}
}

/* HELLO-2: a stranger sends the proof of the caller back to it. */
TEST(a_node_does_not_accept_its_own_proof)
{
	char head[LINK_HEAD] = { LINK_CHALLENGE };
	struct link_conf a = conf_of(HELLO_CALLER), b = conf_of(HELLO_OWNER);

	connect_with(&a, &b);
	(void)link_give(&caller, &to_owner);
	to_owner.n = 0;
	le32_put(head + 4, 1 + HELLO_NONCE);
	buf_put(&to_caller, head, sizeof head);
	buf_putc(&to_caller, LINK_VERSION);
	buf_put(&to_caller, a.nonce, HELLO_NONCE); /* its own nonce, too */
	pass(&caller, &to_caller, SIZE_MAX);
	CHECK(link_give(&caller, &to_owner));
	pass(&caller, &to_owner, SIZE_MAX); /* reflected */
	CHECK_EQ(LINK_BROKEN, caller.state);
	CHECK_EQ(0, opened);
}

/* HELLO-1: a stranger has seen a whole connection, and sends what the caller sent. */
TEST(a_recorded_connection_cannot_be_replayed)
{
	struct buf record;
	struct link_conf b = conf_of(HELLO_OWNER);

	buf_init(&record, PIPE);
	connect_nodes();
	prepare(0, OP_ENQUEUE, 100);
	ask(0);
	for (int i = 0; i < 8; i++) {
		(void)link_give(&caller, &to_owner);
		buf_put(&record, to_owner.p, to_owner.n);
		pass(&owner, &to_owner, SIZE_MAX);
		(void)link_give(&owner, &to_caller);
		pass(&caller, &to_caller, SIZE_MAX);
	}
	CHECK_EQ(1, ran[0]);
	end_nodes();
	memset(b.nonce, 0x33, HELLO_NONCE);
	connect_with(&(struct link_conf){ .role = HELLO_CALLER, .events = &events, .secret = secret }, &b);
	CHECK(link_take(&owner, record.p, record.n, now));
	CHECK_EQ(LINK_BROKEN, owner.state);
	CHECK_EQ(1, ran[0]);
	buf_release(&record);
}

TEST(a_stranger_learns_nothing)
{
	static const struct slice cases[] = {
		SLICE("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
		SLICE("\x04\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0x"),        /* a question at once */
		SLICE("\x03\0\0\0\x20\0\0\0\0\0\0\0\0\0\0\0"),       /* a proof at once */
		SLICE("\x01\0\0\0\xff\xff\0\0\0\0\0\0\0\0\0\0"),     /* a long hello */
		SLICE("\x01\0\0\0\x39\0\0\0\0\0\0\0\0\0\0\0nonsense" /* of no version */
		      "0123456789012345678901234567890123456789012345678"),
	};

	EACH(i, cases) {
		connect_nodes();
		CHECK(link_take(&owner, cases[i].p, cases[i].n, now));
		CHECK(!link_give(&owner, &to_caller));
		CHECK_EQ(0, to_caller.n);
		end_nodes();
	}
}

/* ---- Ops ---- */

static void
open_nodes(void)
{
	connect_nodes();
	turn(SIZE_MAX);
	CHECK(link_is_open(&caller) && link_is_open(&owner));
}

TEST(answers_come_in_any_order)
{
	open_nodes();
	for (unsigned i = 0; i < 3; i++) {
		prepare(i, OP_CLAIM, 10 + i);
		ask(i);
	}
	turn(7);
	CHECK_EQ(3, n_works);
	answer(&works[2]);
	answer(&works[0]);
	turn(7);
	CHECK_EQ(1, calls[2].answers);
	CHECK_EQ(1, calls[0].answers);
	CHECK_EQ(0, calls[1].answers);
	answer(&works[1]);
	turn(7);
	for (unsigned i = 0; i < 3; i++)
		CHECK(slice_eq(buf_slice(&calls[i].question), buf_slice(&calls[i].answer)));
	CHECK_EQ(0, caller.ops);
	CHECK_EQ(0, owner.ops);
}

/* PEER-3: frames in turn. */
TEST(a_small_message_overtakes_a_large_one)
{
	open_nodes();
	prepare(0, OP_ENQUEUE, 20 * LINK_FRAME);
	prepare(1, OP_ENQUEUE, 10);
	ask(0);
	ask(1);
	(void)link_give(&caller, &to_owner);
	CHECK(to_owner.n < 8 * LINK_FRAME);
	pass(&owner, &to_owner, SIZE_MAX);
	CHECK_EQ(0, ran[0]);
	CHECK_EQ(1, ran[1]);
	turn(SIZE_MAX);
	CHECK_EQ(1, ran[0]);
	answer(&works[1]);
	turn(1000);
	CHECK(slice_eq(buf_slice(&calls[0].question), buf_slice(&calls[0].answer)));
}

TEST(ops_that_are_asked_before_the_hello_wait_for_it)
{
	connect_nodes();
	prepare(0, OP_ENQUEUE, 10);
	ask(0);
	(void)link_give(&caller, &to_owner);
	CHECK(!calls[0].at.began); /* LINK-1, LINK-2 */
	turn(SIZE_MAX);
	CHECK(calls[0].at.began);
	CHECK_EQ(1, ran[0]);
}

TEST(a_cancel_follows_its_question)
{
	open_nodes();
	prepare(0, OP_CLAIM, LARGE);
	prepare(1, OP_CLAIM, 10);
	ask(0);
	ask(1);
	link_cancel(&caller, &calls[0].at); /* none of it has left */
	turn(100);
	CHECK(works[0].number != 0 && works[1].canceled); /* the small one came first */
	CHECK(!works[0].canceled);
	link_cancel(&caller, &calls[1].at);
	link_cancel(&caller, &calls[1].at);
	answer(&works[0]); /* they pass each other */
	turn(100);
	answer(&works[1]);
	turn(100);
	CHECK_EQ(1, calls[0].answers);
	CHECK_EQ(1, calls[1].answers);
	CHECK(link_is_open(&owner));
}

TEST(an_owner_that_is_none_says_so_before_anything_happens)
{
	open_nodes();
	disowned = true;
	next_owner = (struct peer_target){ .epoch = 7, .port = 7171, .host = "next", .life = { 1 } };
	prepare(0, OP_ENQUEUE, LARGE);
	ask(0);
	turn(SIZE_MAX);
	CHECK_EQ(1, calls[0].refusals);
	CHECK_EQ(7, hinted.epoch);
	CHECK_STR("next", hinted.host);
	CHECK_EQ(0, caller.ops);
	CHECK_EQ(0, ran[0]);
}

/* LINK-5 */
TEST(an_owner_that_stops_gets_no_more_questions)
{
	open_nodes();
	prepare(0, OP_CLAIM, 10);
	prepare(1, OP_CLAIM, 10);
	ask(0);
	turn(SIZE_MAX);
	link_stop(&owner);
	turn(SIZE_MAX);
	CHECK_EQ(1, stopped);
	CHECK_EQ(SLU_EDOWN, link_ask(&caller, &calls[1].at, buf_slice(&calls[1].question)));
	answer(&works[0]);
	turn(SIZE_MAX);
	CHECK_EQ(1, calls[0].answers);
}

/* LINK-5. The large question has begun, the small ones wait behind it. */
TEST(an_owner_that_stops_gives_back_what_has_not_begun)
{
	open_nodes();
	prepare(0, OP_ENQUEUE, 2 * LINK_GIVE);
	prepare(1, OP_ENQUEUE, 10);
	ask(0);
	(void)link_give(&caller, &to_owner);
	ask(1);
	link_stop(&owner);
	(void)link_give(&owner, &to_caller);
	pass(&caller, &to_caller, SIZE_MAX);
	CHECK_EQ(1, calls[1].refusals);
	CHECK(!calls[1].at.began);
	CHECK_EQ(0, calls[0].refusals);
	turn(SIZE_MAX);
	CHECK_EQ(1, ran[0]);
	CHECK_EQ(0, ran[1]);
	answer(&works[0]);
	turn(SIZE_MAX);
	CHECK_EQ(1, calls[0].answers);
	CHECK_EQ(0, caller.ops);
}

TEST(many_ops_are_on_their_way_and_then_no_more)
{
	struct link_op *const many = mem_array(LINK_OPS + 1, sizeof *many);

	CHECK(many);
	open_nodes();
	for (unsigned i = 0; i < LINK_OPS; i++)
		CHECK_EQ(0, link_ask(&caller, &many[i], SLICE("\1")));
	CHECK_EQ(SLU_EBUSY, link_ask(&caller, &many[LINK_OPS], SLICE("\1")));
	while (link_leave(&caller))
		;
	mem_free(many);
}

/* ---- Faults of the other end ---- */

static void
send_to_owner(uint8_t type, uint8_t flags, uint32_t size, uint64_t number)
{
	char head[LINK_HEAD] = { (char)type, (char)flags };

	le32_put(head + 4, size);
	le64_put(head + 8, number);
	(void)link_take(&owner, head, sizeof head, now);
}

TEST(a_malformed_frame_breaks_the_link)
{
	static const struct {
		const char *label;
		uint8_t type, flags;
		uint32_t size;
		uint64_t number;
	} cases[] = {
		{ "type 0", 0, 0, 0, 0 },
		{ "a type of tomorrow", LINK_FRAMES, 0, 0, 0 },
		{ "a flag of tomorrow", LINK_ASK, 2, 1, 1 },
		{ "a frame that is too large", LINK_ASK, 0, LINK_FRAME + 1, 1 },
		{ "a question without a number", LINK_ASK, 0, 1, 0 },
		{ "an answer to a node that asks nothing", LINK_ANSWER, 0, 1, 1 },
		{ "a second hello", LINK_HELLO, 0, 1, 0 },
		{ "a cancel with a body", LINK_CANCEL, 0, 1, 1 },
		{ "a ping of several frames", LINK_IS_THERE, 1, 0, 0 },
	};

	EACH(i, cases) {
		open_nodes();
		send_to_owner(cases[i].type, cases[i].flags, cases[i].size, cases[i].number);
		CHECK_EQ(LINK_BROKEN, owner.state, cases[i].label);
		end_nodes();
	}
}

TEST(a_number_is_used_once)
{
	open_nodes();
	prepare(0, OP_CLAIM, 10);
	ask(0);
	turn(SIZE_MAX);
	send_to_owner(LINK_ASK, 0, 1, works[0].number);
	(void)link_take(&owner, "\1", 1, now);
	CHECK_EQ(LINK_BROKEN, owner.state);
	CHECK_EQ(0, ran[1]);
}

/* ---- Time ---- */

TEST(an_end_that_is_silent_is_given_up)
{
	open_nodes();
	CHECK(link_tick(&caller, now) < SLU_NEVER);
	prepare(0, OP_CLAIM, 10);
	ask(0);
	turn(SIZE_MAX);
	for (int i = 0; i < 20; i++) { /* pings are answered: it may wait for ever */
		now += LINK_PING;
		(void)link_tick(&caller, now);
		(void)link_tick(&owner, now);
		turn(SIZE_MAX);
	}
	CHECK(link_is_open(&caller) && link_is_open(&owner));
	for (int i = 0; i < 6; i++) {
		now += LINK_PING;
		(void)link_tick(&caller, now);
		(void)link_tick(&owner, now);
	}
	CHECK_EQ(LINK_BROKEN, caller.state);
	CHECK_EQ(LINK_BROKEN, owner.state);
}

TEST(an_end_that_may_be_gone_is_given_up_after_two_pings)
{
	open_nodes();
	prepare(0, OP_CLAIM, 10);
	ask(0);
	turn(SIZE_MAX);
	link_hurry(&caller, true);
	for (slu_time t = 0; t < LINK_HURRY; t += LINK_PING) {
		CHECK(link_is_open(&caller));
		now += LINK_PING;
		(void)link_tick(&caller, now);
	}
	CHECK_EQ(LINK_BROKEN, caller.state);
}

TEST(a_link_that_was_idle_is_not_silent)
{
	open_nodes();
	for (int i = 0; i < 20; i++) {
		now += LINK_PING;
		(void)link_tick(&caller, now);
		(void)link_tick(&owner, now);
	}
	prepare(0, OP_CLAIM, 10);
	ask(0);
	now += LINK_PING;
	(void)link_tick(&caller, now);
	(void)link_tick(&owner, now);
	turn(SIZE_MAX);
	CHECK(link_is_open(&caller) && link_is_open(&owner));
	CHECK_EQ(1, ran[0]);
}

TEST(a_node_that_slept_listens_before_it_judges)
{
	open_nodes();
	prepare(0, OP_CLAIM, 10);
	ask(0);
	turn(SIZE_MAX);
	now += 100 * LINK_SILENCE;
	(void)link_tick(&caller, now);
	CHECK(link_is_open(&caller));
}

TEST(a_hello_takes_five_seconds_at_most)
{
	connect_nodes();
	now += LINK_HELLO_TIME;
	CHECK_EQ(SLU_NEVER, link_tick(&owner, now));
	CHECK_EQ(LINK_BROKEN, owner.state);
}

/* ---- PEER-1: breaks at every byte, and deaths at every step ---- */

enum fate {
	PENDING,
	ANSWERED,
	UNKNOWN
};

static const enum op_verb verbs[] = { OP_ENQUEUE, OP_GET, OP_CLAIM, OP_ACK };

/* The link is gone: what becomes of the ops that were on it. */
static void
judge(enum fate fates[static OPS])
{
	struct link_op *left;

	while ((left = link_leave(&caller))) {
		struct call *const c = CONTAINER(left, struct call, at);

		if (!peer_may_repeat(c->verb, left->began))
			fates[c - calls] = UNKNOWN;
	}
}

/* Asks all pending ops over a link that passes this many bytes each way, and then breaks. */
static void
run_link(size_t bytes_there, size_t bytes_back, size_t piece, enum fate fates[static OPS])
{
	bool moved = true;

	connect_nodes();
	for (unsigned i = 0; i < COUNT(verbs); i++)
		if (fates[i] == PENDING)
			ask(i);
	while (moved) {
		size_t n;

		moved = link_give(&caller, &to_owner);
		moved |= link_give(&owner, &to_caller);
		n = pass(&owner, &to_owner, piece < bytes_there ? piece : bytes_there);
		bytes_there -= n;
		moved |= n > 0;
		for (unsigned i = n_works; i-- > 0;)
			if (works[i].used && link_is_open(&owner)) {
				answer(&works[i]);
				works[i].used = false;
				moved = true;
			}
		n = pass(&caller, &to_caller, piece < bytes_back ? piece : bytes_back);
		bytes_back -= n;
		moved |= n > 0;
	}
	for (unsigned i = 0; i < COUNT(verbs); i++)
		if (fates[i] == PENDING && calls[i].answers)
			fates[i] = ANSWERED;
	judge(fates);
	end_nodes();
}

static void
check_fates(const enum fate fates[static OPS])
{
	for (unsigned i = 0; i < COUNT(verbs); i++) {
		CHECK(fates[i] != PENDING);
		CHECK(calls[i].answers <= 1);
		if (verbs[i] != OP_GET)
			CHECK(ran[i] <= 1); /* never twice */
		if (fates[i] == ANSWERED)
			CHECK(ran[i] >= 1);
	}
}

static void
break_at(size_t there, size_t back, size_t piece)
{
	enum fate fates[OPS] = { PENDING };

	memset(ran, 0, sizeof ran);
	for (unsigned i = 0; i < COUNT(verbs); i++)
		prepare(i, verbs[i], i == 1 ? 300 : 20 + i);
	run_link(there, back, piece, fates);
	run_link(SIZE_MAX, SIZE_MAX, piece, fates);
	check_fates(fates);
	for (unsigned i = 0; i < COUNT(verbs); i++) {
		buf_release(&calls[i].question);
		buf_release(&calls[i].answer);
	}
}

TEST_LIMIT(no_break_runs_an_op_twice_or_loses_its_answer, 300)
{
	for (size_t there = 0; there < 700; there++)
		break_at(there, SIZE_MAX, 1 + there % 50);
	for (size_t back = 0; back < 700; back++)
		break_at(SIZE_MAX, back, 1 + back % 50);
	for (size_t both = 0; both < 700; both += 13)
		break_at(both, both / 2, 5);
	memset(calls, 0, sizeof calls);
}

TORTURE(a_link_without_memory)
{
	n_works = 0;
	memset(works, 0, sizeof works);
	memset(ran, 0, sizeof ran);
	connect_nodes();
	turn(40);
	CHECK(!link_is_open(&owner) || owner.role == HELLO_OWNER);
	link_release(&caller);
	link_release(&owner);
	buf_release(&to_owner);
	buf_release(&to_caller);
}
