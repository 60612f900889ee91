#include "test.h"

#include "engine/formats.h"
#include "engine/log/record.h"
#include "engine/move_keys.h"

#define ID    "\x88\x77\x66\x55\x44\x33\x22\x11"
#define N(v)  v "\0\0\0\0\0\0\0"
#define QUEUE "\x02ns\x04mail"

/* An attempt of 7 us that began 5 us after 1970 with token 10, the second delivery of `me`, which failed with `why`; then
 * the last error. */
#define TRIED "\0attempt\x01" N("\x05") N("\x07") N("\x0a") "\x02\x00\x01\x02\x03\x00" \
							    "mewhy"                    \
							    "why"

/* One of each field, so that a swap shows. */
static struct logengine_entry
example(enum logengine_type type)
{
	struct logengine_entry e = {
		.type = type,
		.change = {
			.id = 0x1122334455667788,
			.token = 0x0a,
			.until = 0x0b,
			.due = 0x0c,
			.failed = true,
			.reason = DEAD_REJECTED,
			.remember = 0x0d,
			.keep = 0x0e,
			.number = 0x0f,
			.expires = 0x10,
			.claimed = 0x11,
			.attempts = 0x0302,
			.failures = 0x0201,
			.state = 5,
			.flags = 3,
			.prio = -3,
			.digest = 0x14,
			.scope = GATE_KEY,
			.share = SLICE("cust"),
			.value = SLICE("smtp"),
		},
		.space = SLICE("ns"),
		.queue = SLICE("mail"),
		.idem = SLICE("once"),
		.receiver = SLICE("heavy"),
		.holder = SLICE("me"),
		.text = SLICE("why"),
		.policy = policy_default,
		.highest = 0x99,
		.move = { .epoch = 0x12, .batch = 0x13, .what = BATCH_RESULTS },
		.intake = { .source = "0123456789abcdef", .batch = 0x15, .last = 0x16, .count = 0x17 },
	};

	if (type >= LOGENGINE_RETRY_ATTEMPTS && type <= LOGENGINE_RESTORE_ATTEMPTS)
		e.text = SLICE(TRIED);
	e.policy.retry.kind = SLU_BACKOFF_FIXED;
	e.policy.retry.jitter = SLU_JITTER_NONE;
	e.policy.paused = true;
	e.policy.max_depth = 7;
	e.policy.warn_depth = 6;
	e.policy.dlq_max = 5;
	if (type == LOGENGINE_POLICY_RATED) {
		e.policy.max_rate = 100;
		e.policy.burst = 10;
	}
	return e;
}

/* clang-format off */
#define BYTES(s) { s, sizeof(s) - 1 }
/* clang-format on */

/* docs/log-format.md, part two. These never change. */
/* clang-format off */
static const struct {
	enum logengine_type type;
	const char *name;
	struct slice bytes;
	bool has_rest; /* may end anywhere after its fixed part */
} golden[] = {
	{ LOGENGINE_CLAIM, "claim", BYTES(ID N("\x0a") N("\x0b")), false },
	{ LOGENGINE_EXTEND, "extend", BYTES(ID N("\x0b")), false },
	{ LOGENGINE_RETURN, "return", BYTES(ID), false },
	{ LOGENGINE_RETRY, "retry", BYTES(ID N("\x0c") "\x01\x00why"), true },
	{ LOGENGINE_DIE, "die", BYTES(ID "\x03\x01\x00why"), true },
	{ LOGENGINE_DONE, "done", BYTES(ID), false },
	{ LOGENGINE_KEEP, "keep", BYTES(ID N("\x0d") N("\x0e") QUEUE "why"), true },
	{ LOGENGINE_REDRIVE, "redrive", BYTES(ID N("\x0f")), false },
	{ LOGENGINE_PURGE, "purge", BYTES(N("\x0f") N("\x0d") QUEUE), false },
	{ LOGENGINE_POLICY, "policy", BYTES(QUEUE
		"\x00\xac\x23\xfc\x06\x00\x00\x00" "\x05\x00\x00\x00" "\x02" "\x00"
		"\x00\xca\x9a\x3b\x00\x00\x00\x00" "\x00\x28\x2e\x8c\xd1\x00\x00\x00"
		"\x00\x00\x00\x00\x00\x00\x00\x00" "\x07\x00\x00\x00" "\x06\x00\x00\x00"
		"\x00\x00\x4f\x91\x94\x4e\x00\x00" "\x00\x00\x00\x00\x00\x00\x00\x00"
		"\x05\x00\x00\x00" "\x00" "\x01"), false },
	{ LOGENGINE_CEILING, "ceiling", BYTES(N("\x0f") N("\x99")), false },
	{ LOGENGINE_OPENED, "opened", { "", 0 }, false },
	{ LOGENGINE_CLOSED, "closed", BYTES(N("\x0f") N("\x99")), false },
	{ LOGENGINE_UNDO, "undo", BYTES(ID), false },
	{ LOGENGINE_RESTORE, "restore", BYTES(ID N("\x0f") N("\x0c") N("\x10") N("\x0a") N("\x0b")
		N("\x11") "\x02\x03\x01\x02\x05\x03\x03why"), true },
	{ LOGENGINE_REMEMBER, "remember", BYTES(ID N("\x0d") QUEUE "\x04\x00once"), false },
	{ LOGENGINE_RESULT, "result", BYTES(ID N("\x0e") QUEUE "why"), true },
	{ LOGENGINE_POLICY_RATED, "policy_rated", BYTES(QUEUE
		"\x00\xac\x23\xfc\x06\x00\x00\x00" "\x05\x00\x00\x00" "\x02" "\x00"
		"\x00\xca\x9a\x3b\x00\x00\x00\x00" "\x00\x28\x2e\x8c\xd1\x00\x00\x00"
		"\x00\x00\x00\x00\x00\x00\x00\x00" "\x07\x00\x00\x00" "\x06\x00\x00\x00"
		"\x00\x00\x4f\x91\x94\x4e\x00\x00" "\x00\x00\x00\x00\x00\x00\x00\x00"
		"\x05\x00\x00\x00" "\x00" "\x01" "\x64\x00\x00\x00" "\x0a\x00\x00\x00"), false },
	{ LOGENGINE_ASIDE, "aside", BYTES(ID), false },
	{ LOGENGINE_SPELLING, "spelling", BYTES(QUEUE), false },
	{ LOGENGINE_MARK, "mark", BYTES(QUEUE N("\x12") "why"), true },
	{ LOGENGINE_TAKE, "take", BYTES(QUEUE N("\x13") "\x03why"), true },
	{ LOGENGINE_UNTAKE, "untake", BYTES(QUEUE N("\x13")), false },
	{ LOGENGINE_DROP, "drop", BYTES(QUEUE N("\x13") "\x03why"), true },
	{ LOGENGINE_GIVEN, "given", BYTES(QUEUE N("\x13") N("\x0f") "why"), true },
	{ LOGENGINE_TAKEN, "taken", BYTES(QUEUE N("\x13") "\x03" "\x05\x00" "heavy" "why"), true },
	{ LOGENGINE_REFUSED, "refused", BYTES(QUEUE N("\x13") "why"), true },
	{ LOGENGINE_CLAIM_OWNED, "claim_owned", BYTES(ID N("\x0a") N("\x0b") "why"), true },
	{ LOGENGINE_SPARE, "spare", BYTES(ID), false },
	{ LOGENGINE_RESTORE_OWNED, "restore_owned", BYTES(ID N("\x0f") N("\x0c") N("\x10") N("\x0a") N("\x0b")
		N("\x11") "\x02\x03\x01\x02\x05\x03\x03" "\x02me" "why"), true },
	{ LOGENGINE_FORGET, "forget", BYTES(QUEUE), false },
	{ LOGENGINE_DIGEST, "digest", BYTES(ID N("\x14")), false },
	{ LOGENGINE_INTAKE, "intake", BYTES("0123456789abcdef" N("\x15") N("\x16") "\x17\x00\x00\x00"), false },
	{ LOGENGINE_HOLD, "hold", BYTES(QUEUE "\x02" N("\x0b") "\x04\x00" "cust"), false },
	{ LOGENGINE_PRIORITY, "priority", BYTES(ID "\xfd\xff\xff\xff"), false },
	{ LOGENGINE_BREAKER, "breaker", BYTES(QUEUE "\x02" N("\x0b") "\x04" "smtp" "\x04\x00" "cust"), false },
	{ LOGENGINE_RETRY_ATTEMPTS, "retry_attempts", BYTES(ID N("\x0c") "\x01\x00" TRIED), true },
	{ LOGENGINE_DIE_ATTEMPTS, "die_attempts", BYTES(ID "\x03\x01\x00" TRIED), true },
	{ LOGENGINE_RESTORE_ATTEMPTS, "restore_attempts", BYTES(ID N("\x0f") N("\x0c") N("\x10") N("\x0a") N("\x0b")
		N("\x11") "\x02\x03\x01\x02\x05\x03\x03" "\x02\x00" "me" TRIED), true },
	{ LOGENGINE_CANCEL, "cancel", BYTES(ID), false },
	{ LOGENGINE_DUE, "due", BYTES(ID N("\x0c")), false },
};
/* clang-format on */

static size_t
join(const struct logengine_bytes *b, char *out)
{
	size_t n = 0;

	for (unsigned i = 0; i < b->n; i++) {
		memcpy(out + n, b->parts[i].p, b->parts[i].n);
		n += b->parts[i].n;
	}
	CHECK_EQ(n, b->size);
	return n;
}

TEST(records_have_the_bytes_of_the_format)
{
	char bytes[2048];

	EACH(i, golden) {
		const struct logengine_entry e = example(golden[i].type);
		struct logengine_bytes b;

		logengine_encode(&e, &b);
		CHECK_EQ(golden[i].bytes.n, join(&b, bytes), golden[i].name);
		if (memcmp(golden[i].bytes.p, bytes, b.size) != 0)
			test_fail(__FILE__, __LINE__, "%s", golden[i].name);
		CHECK_STR(golden[i].name, logengine_type_name((uint8_t)e.type));
	}
}

/* The numbers of the types are part of the format. */
TEST(types_have_their_numbers)
{
	unsigned named = 0;

	CHECK_EQ(1, LOGENGINE_ACCEPT);
	CHECK_EQ(7, LOGENGINE_DONE);
	CHECK_EQ(12, LOGENGINE_CEILING);
	CHECK_EQ(16, LOGENGINE_MESSAGE);
	CHECK_EQ(19, LOGENGINE_RESULT);
	CHECK_EQ(20, LOGENGINE_POLICY_RATED);
	CHECK_EQ(21, LOGENGINE_ASIDE);
	CHECK_EQ(22, LOGENGINE_SPELLING);
	CHECK_EQ(23, LOGENGINE_LOCK);
	CHECK_EQ(24, LOGENGINE_DOCUMENT);
	CHECK_EQ(25, LOGENGINE_MARK);
	CHECK_EQ(29, LOGENGINE_GIVEN);
	CHECK_EQ(31, LOGENGINE_REFUSED);
	CHECK_EQ(32, LOGENGINE_CLAIM_OWNED);
	CHECK_EQ(33, LOGENGINE_SPARE);
	CHECK_EQ(34, LOGENGINE_RESTORE_OWNED);
	CHECK_EQ(35, LOGENGINE_FORGET);
	CHECK_EQ(36, LOGENGINE_POLICY_FIELDS);
	CHECK_EQ(37, LOGENGINE_DIGEST);
	CHECK_EQ(38, LOGENGINE_INTAKE);
	CHECK_EQ(39, LOGENGINE_HOLD);
	CHECK_EQ(40, LOGENGINE_REPLACE);
	CHECK_EQ(41, LOGENGINE_PRIORITY);
	CHECK_EQ(42, LOGENGINE_BREAKER);
	CHECK_EQ(43, LOGENGINE_RETRY_ATTEMPTS);
	CHECK_EQ(44, LOGENGINE_DIE_ATTEMPTS);
	CHECK_EQ(45, LOGENGINE_RESTORE_ATTEMPTS);
	CHECK_EQ(46, LOGENGINE_CANCEL);
	CHECK_EQ(47, LOGENGINE_DUE);
	for (uint8_t type = 0; type < LOGENGINE_TYPES; type++)
		named += logengine_type_name(type) != NULL;
	CHECK_EQ(COUNT(golden) + 6, named, "those with a message, a lock and tagged fields beside");
}

TEST(a_step_has_the_bytes_of_its_record)
{
	static const struct {
		enum change_kind kind;
		enum logengine_type type;
	} steps[] = { { CHANGE_CLAIM, LOGENGINE_CLAIM }, { CHANGE_DONE, LOGENGINE_DONE } };

	EACH(i, steps) {
		struct logengine_entry e = example(steps[i].type);
		char bytes[LOGENGINE_FIXED_MAX + 16], step[LOGENGINE_STEP_MAX];
		struct logengine_bytes b;
		size_t n;

		e.change.kind = steps[i].kind;
		logengine_encode(&e, &b);
		n = join(&b, bytes);
		CHECK_EQ(n, logengine_encode_step(&e.change, step));
		CHECK(memcmp(bytes, step, n) == 0);
	}
}

/* ---- Tagged fields ---- */

/* clang-format off */
#define TAGGED QUEUE \
	"\x01\x08\x00\xac\x23\xfc\x06\x00\x00\x00" "\x02\x04\x05\x00\x00\x00" "\x03\x01\x02" "\x04\x01\x00" \
	"\x05\x08\x00\xca\x9a\x3b\x00\x00\x00\x00" "\x06\x08\x00\x28\x2e\x8c\xd1\x00\x00\x00" \
	"\x07\x08\x00\x00\x00\x00\x00\x00\x00\x00" "\x08\x04\x07\x00\x00\x00" "\x09\x04\x06\x00\x00\x00" \
	"\x0a\x08\x00\x00\x4f\x91\x94\x4e\x00\x00" "\x0b\x08\x00\x00\x00\x00\x00\x00\x00\x00" \
	"\x0c\x04\x05\x00\x00\x00" "\x0d\x01\x00" "\x0e\x01\x01" "\x0f\x04\x00\x00\x00\x00" \
	"\x10\x04\x00\x00\x00\x00" "\x11\x01\x01"
/* clang-format on */

TEST(a_policy_with_tags_has_the_bytes_of_the_format)
{
	struct logengine_entry e = example(LOGENGINE_POLICY_FIELDS), back;
	char bytes[LOGENGINE_FIXED_MAX + 16];
	struct logengine_bytes b;

	e.policy.strict = true;
	logengine_encode(&e, &b);
	CHECK_EQ(sizeof TAGGED - 1, join(&b, bytes));
	CHECK(memcmp(TAGGED, bytes, b.size) == 0);
	CHECK_STR("policy_fields", logengine_type_name(36));
	CHECK_EQ(0, logengine_decode(LOGENGINE_POLICY_FIELDS, (struct slice)BYTES(TAGGED), &back, NULL));
	CHECK(policy_is_same(&e.policy, &back.policy));
}

TEST(a_policy_with_a_dead_letter_queue_and_max_runtime_has_the_bytes_of_the_format)
{
	static const char want[] = TAGGED "\x28\x04"
					  "dead\x29\x08" N("\x07");
	struct logengine_entry e = example(LOGENGINE_POLICY_FIELDS), back;
	char bytes[LOGENGINE_FIXED_MAX + 16];
	struct logengine_bytes b;

	e.policy.strict = true;
	memcpy(e.policy.dead_letter_queue, "dead", 5);
	e.policy.max_runtime = 7;
	CHECK_EQ(LOGENGINE_POLICY_FIELDS, logengine_policy_type(&e.policy));
	logengine_encode(&e, &b);
	CHECK_EQ(sizeof want - 1, join(&b, bytes));
	CHECK(memcmp(want, bytes, b.size) == 0);
	CHECK_EQ(0, logengine_decode(LOGENGINE_POLICY_FIELDS, (struct slice)BYTES(want), &back, NULL));
	CHECK(policy_is_same(&e.policy, &back.policy));
}

TEST(a_drain_an_age_and_tags_have_the_bytes_of_the_format)
{
	static const char bytes_of[] = "\x32\x01\x01\x33\x08" N("\x07") "\x34\x04team";
	struct logengine_entry e = example(LOGENGINE_POLICY_FIELDS), back;
	char bytes[LOGENGINE_FIXED_MAX + 16];
	struct policy p[3] = { policy_default, policy_default, policy_default };
	struct logengine_bytes b;
	size_t n;

	p[0].draining = true;
	p[1].warn_age = 1;
	strcpy(p[2].tags, "t");
	for (unsigned i = 0; i < COUNT(p); i++)
		CHECK_EQ(LOGENGINE_POLICY_FIELDS, logengine_policy_type(&p[i]), "the older types have no room");
	e.policy.draining = true;
	e.policy.warn_age = 7;
	strcpy(e.policy.tags, "team");
	logengine_encode(&e, &b);
	n = join(&b, bytes);
	CHECK(memcmp(bytes_of, bytes + n - (sizeof bytes_of - 1), sizeof bytes_of - 1) == 0);
	CHECK_EQ(0, logengine_decode(LOGENGINE_POLICY_FIELDS, (struct slice){ bytes, n }, &back, NULL));
	CHECK(policy_is_same(&e.policy, &back.policy));
	bytes[n - (sizeof bytes_of - 1) + 2] = 2; /* no bool */
	CHECK_EQ(SLU_ECORRUPT, logengine_decode(LOGENGINE_POLICY_FIELDS, (struct slice){ bytes, n }, &back, NULL));
}

TEST(rules_are_a_tag_of_a_policy)
{
	static const char tag[] = "\x1b\x07x=1:low";
	struct logengine_entry e = example(LOGENGINE_POLICY_FIELDS), back;
	char bytes[LOGENGINE_FIXED_MAX + 16];
	struct logengine_bytes b;
	size_t n;

	memcpy(e.policy.rules, "x=1:low", 8);
	CHECK_EQ(LOGENGINE_POLICY_FIELDS, logengine_policy_type(&e.policy));
	logengine_encode(&e, &b);
	n = join(&b, bytes);
	CHECK(memcmp(tag, bytes + n - (sizeof tag - 1), sizeof tag - 1) == 0);
	CHECK_EQ(0, logengine_decode(LOGENGINE_POLICY_FIELDS, (struct slice){ bytes, n }, &back, NULL));
	CHECK_STR("x=1:low", back.policy.rules);
}

TEST(tags_that_are_missing_or_unknown)
{
	static const struct {
		struct slice bytes;
		int rc;
		const char *what;
	} rows[] = {
		{ BYTES(QUEUE), 0, "none: the default" },
		{ BYTES(QUEUE "\x11\x01\x01"), 0, "one" },
		{ BYTES(QUEUE "\xf0\x01\x01"), SLU_EINVAL, "of a newer version" },
		{ BYTES(QUEUE "\x27\x01\x01"), SLU_EINVAL, "between those of this version" },
		{ BYTES(QUEUE "\x00\x01\x01"), SLU_ECORRUPT, "never" },
		{ BYTES(QUEUE "\x11"), SLU_ECORRUPT, "cut behind the tag" },
		{ BYTES(QUEUE "\x11\x01"), SLU_ECORRUPT, "cut before the value" },
		{ BYTES(QUEUE "\x11\x04\x01\x00\x00\x00"), SLU_ECORRUPT, "of another width" },
		{ BYTES(QUEUE "\x11\x01\x02"), SLU_ECORRUPT, "no flag" },
	};

	EACH(i, rows) {
		struct slu_err err;
		struct logengine_entry e;

		CHECK_EQ(rows[i].rc, logengine_decode(LOGENGINE_POLICY_FIELDS, rows[i].bytes, &e, &err), rows[i].what);
		if (i < 2)
			CHECK_EQ(i == 1, e.policy.strict);
	}
}

/* ---- Keys ---- */

#define LOCK_FIXED "\x02\0ns\x03\0a/b" N("\0") N("\x0a") N("\x0b") N("\x07") N("\x0c") N("\x0d") "\x0e"         \
												 "0123456789ab" \
												 "\x02\0me"
#define LOCK_DOCS N("\x05") N("\x06") "\0\0" N("\x04") N("\0") "\x01\x03pic"

static void
encode_lock(const struct lock *lock, struct buf *docs, struct logengine_bytes *out)
{
	struct logengine_entry e = { .type = LOGENGINE_LOCK };

	logengine_fill_lock(&e, lock, docs);
	logengine_encode(&e, out);
}

TEST(a_lock_has_the_bytes_of_the_format)
{
	struct lock_doc docs[] = {
		{ .etag = 5, .staged = 6 },
		{ .name = SLICE("pic"), .etag = 4, .removed = true },
	};
	const struct lock lock = {
		.space = SLICE("ns"),
		.key = SLICE("a/b"),
		.token = 10,
		.until = 11,
		.version = 7,
		.updated = 12,
		.known = 13,
		.fresh = true,
		.hidden = true,
		.hides = true,
		.txn = "0123456789ab",
		.holder = SLICE("me"),
		.n = 2,
		.docs = docs,
	};
	const struct slice want = BYTES(LOCK_FIXED LOCK_DOCS);
	struct logengine_bytes b;
	struct logengine_entry e;
	struct buf text;
	char bytes[2048];

	buf_init(&text, 1024);
	encode_lock(&lock, &text, &b);
	CHECK_EQ(want.n, join(&b, bytes));
	CHECK(memcmp(want.p, bytes, want.n) == 0);
	CHECK_EQ(0, logengine_decode(LOGENGINE_LOCK, want, &e, NULL));
	buf_clear(&text);
	encode_lock(&e.lock.lock, &text, &b);
	CHECK_EQ(want.n, join(&b, bytes));
	CHECK(memcmp(want.p, bytes, want.n) == 0);
	CHECK_EQ(10, logengine_lock_top(&e.lock.lock));
	buf_release(&text);
}

TEST(a_lock_that_no_key_can_be_is_refused)
{
	static const struct {
		const char *label;
		struct slice bytes;
	} cases[] = {
		{ "cut in a document", BYTES(LOCK_FIXED N("\x05") N("\x06") "\0") },
		{ "cut in a name", BYTES(LOCK_FIXED N("\x04") N("\0") "\0\x03pi") },
		{ "a document of which there is nothing", BYTES(LOCK_FIXED N("\0") N("\0") "\0\0") },
		{ "removed and put", BYTES(LOCK_FIXED N("\x04") N("\x05") "\x01\0") },
		{ "two of one name", BYTES(LOCK_FIXED LOCK_DOCS N("\x09") N("\0") "\0\x03pic") },
		{ "a name and a message", BYTES("\x02\0ns\x03\0a/b" ID N("\x0a") N("\x0b") N("\x07") N("\x0c")
							N("\x0d") "\x0e"
								  "0123456789ab"
								  "\0\0") },
		{ "neither", BYTES("\0\0\0\0" N("\0") N("\x0a") N("\x0b") N("\x07") N("\x0c") N("\x0d") "\x0e"
													"0123456789ab"
													"\0\0") },
		{ "staged under no lease", BYTES("\x02\0ns\x03\0a/b" N("\0") N("\0") N("\x0b") N("\x07") N("\x0c")
							 N("\x0d") "\0"
								   "0123456789ab"
								   "\0\0" LOCK_DOCS) },
		{ "a flag that is none", BYTES("\x02\0ns\x03\0a/b" N("\0") N("\x0a") N("\x0b") N("\x07") N("\x0c")
						       N("\x0d") "\x20"
								 "0123456789ab"
								 "\0\0") },
	};
	const struct slice whole = BYTES(LOCK_FIXED LOCK_DOCS);
	struct logengine_entry e;

	EACH(i, cases)
		CHECK_EQ(SLU_ECORRUPT, logengine_decode(LOGENGINE_LOCK, cases[i].bytes, &e, NULL), cases[i].label);
	for (size_t n = 0; n < sizeof(LOCK_FIXED) - 1; n++)
		CHECK_EQ(SLU_ECORRUPT, logengine_decode(LOGENGINE_LOCK, (struct slice){ whole.p, n }, &e, NULL));
}

static void
check_again(const struct logengine_entry *e, struct slice want, const char *name)
{
	char bytes[2048];
	struct logengine_bytes b;

	logengine_encode(e, &b);
	CHECK_EQ(want.n, join(&b, bytes), name);
	CHECK(memcmp(want.p, bytes, want.n) == 0);
}

TEST(what_was_written_can_be_read)
{
	EACH(i, golden) {
		struct logengine_entry e;

		CHECK_EQ(0, logengine_decode((uint8_t)golden[i].type, golden[i].bytes, &e, NULL),
			 golden[i].name);
		CHECK_EQ(golden[i].type, e.type);
		check_again(&e, golden[i].bytes, golden[i].name);
	}
}

/* RECORD-1 */
TEST(a_record_that_is_cut_or_too_long_is_refused)
{
	char bytes[2048];

	EACH(i, golden) {
		const size_t text = golden[i].has_rest ? 3 : 0;
		const size_t fixed = golden[i].bytes.n - text;
		struct logengine_entry e;

		memcpy(bytes, golden[i].bytes.p, golden[i].bytes.n);
		for (size_t n = 0; n < fixed; n++)
			CHECK_EQ(SLU_ECORRUPT,
				 logengine_decode((uint8_t)golden[i].type,
						  (struct slice){ bytes, n }, &e, NULL),
				 golden[i].name);
		CHECK_EQ(golden[i].has_rest ? 0 : SLU_ECORRUPT,
			 logengine_decode((uint8_t)golden[i].type,
					  (struct slice){ bytes, golden[i].bytes.n + 1 }, &e, NULL),
			 golden[i].name);
	}
}

TEST(a_value_that_no_version_writes_is_refused)
{
	static const struct {
		const char *label;
		enum logengine_type type;
		struct slice bytes;
	} cases[] = {
		{ "a bool of 2", LOGENGINE_RETRY, BYTES(ID N("\x0c") "\x02\x00") },
		{ "no name", LOGENGINE_PURGE, BYTES(N("\x0f") N("\x0d") "\x00\x04mail") },
		{ "a name of 129", LOGENGINE_RESULT, BYTES(ID N("\x0e") "\x81") },
		{ "a key of 257", LOGENGINE_REMEMBER, BYTES(ID N("\x0d") QUEUE "\x01\x01") },
	};
	struct logengine_entry e;

	EACH(i, cases)
		CHECK_EQ(SLU_ECORRUPT,
			 logengine_decode((uint8_t)cases[i].type, cases[i].bytes, &e, NULL),
			 cases[i].label);
}

/* RECORD-2, WAL-8 */
TEST(a_record_type_of_a_newer_version_is_refused_with_that_reason)
{
	struct logengine_entry e;
	struct slu_err err;

	CHECK_EQ(SLU_EINVAL, logengine_decode(LOGENGINE_TYPES, (struct slice){ 0 }, &e, &err));
	CHECK_CONTAINS("newer version", err.text);
	CHECK_EQ(SLU_EINVAL, logengine_decode(0, (struct slice){ 0 }, &e, &err));
	CHECK(logengine_type_name(LOGENGINE_TYPES) == NULL);
}

/* ---- Lists of idempotency keys, in a TAKEN and in a row of a move ---- */

#define PLAIN_KEY  N("\x05") ID "\x04\x00once"
#define DIGEST_KEY N("\x05") ID "\x04\x80" N("\x14") "once"

TEST(keys_of_a_move_have_the_bytes_of_the_format)
{
	const struct move_key plain = { .until = 5, .id = 0x1122334455667788, .text = SLICE("once") };
	struct slice rest = BYTES(PLAIN_KEY DIGEST_KEY);
	struct move_key back, digest = plain;
	struct buf b;
	uint32_t n;

	digest.digest = 0x14;
	buf_init(&b, SIZE_MAX);
	move_key_put(&b, &plain);
	move_key_put(&b, &digest);
	CHECK(slice_eq(rest, buf_slice(&b)));
	buf_release(&b);
	CHECK_EQ(0, move_keys_count(rest, &n, NULL));
	CHECK_EQ(2, n);
	CHECK(move_key_next(&rest, &back) && back.digest == 0 && slice_eq(plain.text, back.text));
	CHECK(move_key_next(&rest, &back) && back.digest == 0x14 && slice_eq(plain.text, back.text));
	CHECK_EQ(5, back.until);
	CHECK_EQ(plain.id, back.id);
	CHECK_EQ(0, rest.n);
}

TEST(what_is_not_a_list_of_keys_is_refused)
{
	static const struct {
		const char *label;
		struct slice bytes;
	} cases[] = {
		{ "a text that is cut", BYTES(N("\x05") ID "\x04\x00onc") },
		{ "a digest that is cut", BYTES(N("\x05") ID "\x04\x80"
							     "\x14\0\0\0"
							     "once") },
		{ "a digest of 0", BYTES(N("\x05") ID "\x04\x80" N("\0") "once") },
		{ "no text", BYTES(N("\x05") ID "\x00\x80" N("\x14")) },
		{ "a text of 257", BYTES(N("\x05") ID "\x01\x81" N("\x14")) },
		{ "no id", BYTES(N("\x05") N("\0") "\x04\x00once") },
	};
	uint32_t n;

	EACH(i, cases)
		CHECK_EQ(SLU_EINVAL, move_keys_count(cases[i].bytes, &n, NULL), cases[i].label);
}

/* LINE-16 */
TEST(keys_with_digests_need_a_format_that_older_nodes_lack)
{
	struct op_put put = { .stood.kind = MOVE_REMEMBERED, .m.payload = BYTES(PLAIN_KEY) };
	const struct op op = { .verb = OP_MOVE, .puts = &put, .n_puts = 1 };

	CHECK_EQ(FORMATS_FIRST, formats_op(&op));
	put.m.payload = (struct slice)BYTES(PLAIN_KEY DIGEST_KEY);
	CHECK_EQ(FORMATS_KEY_DIGESTS, formats_op(&op));
	put.stood.kind = MOVE_RESULT;
	CHECK_EQ(FORMATS_FIRST, formats_op(&op));
}

/* LINE-16: an older node would extend the lease and forget the checkpoint. */
TEST(a_checkpoint_needs_a_format_that_older_nodes_lack)
{
	struct op_item items[2] = { { .id = 1 }, { .id = 2 } };
	const struct op op = { .verb = OP_EXTEND, .items = items, .n_items = 2 };

	CHECK_EQ(FORMATS_FIRST, formats_op(&op));
	items[1].text = SLICE("1");
	CHECK_EQ(3, formats_op(&op));
}
