#include "test.h"

#include "engine/log_record.h"

/* One of each field, so that a swap shows. */
static struct log_entry
example(enum log_type type)
{
	struct log_entry e = {
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
			.digest = 0x14,
		},
		.space = SLICE("ns"),
		.queue = SLICE("mail"),
		.idem = SLICE("once"),
		.whom = SLICE("heavy"),
		.owner = SLICE("me"),
		.text = SLICE("why"),
		.policy = policy_default,
		.highest = 0x99,
		.move = { .epoch = 0x12, .batch = 0x13, .what = BATCH_RESULTS },
	};

	e.policy.retry.kind = SLU_BACKOFF_FIXED;
	e.policy.retry.jitter = SLU_JITTER_NONE;
	e.policy.paused = true;
	e.policy.max_depth = 7;
	e.policy.warn_depth = 6;
	e.policy.dlq_max = 5;
	if (type == LOG_POLICY_RATED) {
		e.policy.max_rate = 100;
		e.policy.burst = 10;
	}
	return e;
}

#define ID    "\x88\x77\x66\x55\x44\x33\x22\x11"
#define N(v)  v "\0\0\0\0\0\0\0"
#define QUEUE "\x02ns\x04mail"

/* clang-format off */
#define BYTES(s) { s, sizeof(s) - 1 }
/* clang-format on */

/* docs/log-format.md, part two. These never change. */
/* clang-format off */
static const struct {
	enum log_type type;
	const char *name;
	struct slice bytes;
	bool has_rest; /* may end anywhere after its fixed part */
} golden[] = {
	{ LOG_CLAIM, "claim", BYTES(ID N("\x0a") N("\x0b")), false },
	{ LOG_EXTEND, "extend", BYTES(ID N("\x0b")), false },
	{ LOG_RETURN, "return", BYTES(ID), false },
	{ LOG_RETRY, "retry", BYTES(ID N("\x0c") "\x01\x00why"), true },
	{ LOG_DIE, "die", BYTES(ID "\x03\x01\x00why"), true },
	{ LOG_DONE, "done", BYTES(ID), false },
	{ LOG_KEEP, "keep", BYTES(ID N("\x0d") N("\x0e") QUEUE "why"), true },
	{ LOG_REDRIVE, "redrive", BYTES(ID N("\x0f")), false },
	{ LOG_PURGE, "purge", BYTES(N("\x0f") N("\x0d") QUEUE), false },
	{ LOG_POLICY, "policy", BYTES(QUEUE
		"\x00\xac\x23\xfc\x06\x00\x00\x00" "\x05\x00\x00\x00" "\x02" "\x00"
		"\x00\xca\x9a\x3b\x00\x00\x00\x00" "\x00\x28\x2e\x8c\xd1\x00\x00\x00"
		"\x00\x00\x00\x00\x00\x00\x00\x00" "\x07\x00\x00\x00" "\x06\x00\x00\x00"
		"\x00\x00\x4f\x91\x94\x4e\x00\x00" "\x00\x00\x00\x00\x00\x00\x00\x00"
		"\x05\x00\x00\x00" "\x00" "\x01"), false },
	{ LOG_CEILING, "ceiling", BYTES(N("\x0f") N("\x99")), false },
	{ LOG_OPENED, "opened", { "", 0 }, false },
	{ LOG_CLOSED, "closed", BYTES(N("\x0f") N("\x99")), false },
	{ LOG_UNDO, "undo", BYTES(ID), false },
	{ LOG_RESTORE, "restore", BYTES(ID N("\x0f") N("\x0c") N("\x10") N("\x0a") N("\x0b")
		N("\x11") "\x02\x03\x01\x02\x05\x03\x03why"), true },
	{ LOG_REMEMBER, "remember", BYTES(ID N("\x0d") QUEUE "\x04\x00once"), false },
	{ LOG_RESULT, "result", BYTES(ID N("\x0e") QUEUE "why"), true },
	{ LOG_POLICY_RATED, "policy_rated", BYTES(QUEUE
		"\x00\xac\x23\xfc\x06\x00\x00\x00" "\x05\x00\x00\x00" "\x02" "\x00"
		"\x00\xca\x9a\x3b\x00\x00\x00\x00" "\x00\x28\x2e\x8c\xd1\x00\x00\x00"
		"\x00\x00\x00\x00\x00\x00\x00\x00" "\x07\x00\x00\x00" "\x06\x00\x00\x00"
		"\x00\x00\x4f\x91\x94\x4e\x00\x00" "\x00\x00\x00\x00\x00\x00\x00\x00"
		"\x05\x00\x00\x00" "\x00" "\x01" "\x64\x00\x00\x00" "\x0a\x00\x00\x00"), false },
	{ LOG_ASIDE, "aside", BYTES(ID), false },
	{ LOG_SPELLING, "spelling", BYTES(QUEUE), false },
	{ LOG_MARK, "mark", BYTES(QUEUE N("\x12") "why"), true },
	{ LOG_TAKE, "take", BYTES(QUEUE N("\x13") "\x03why"), true },
	{ LOG_UNTAKE, "untake", BYTES(QUEUE N("\x13")), false },
	{ LOG_DROP, "drop", BYTES(QUEUE N("\x13") "\x03why"), true },
	{ LOG_GIVEN, "given", BYTES(QUEUE N("\x13") N("\x0f") "why"), true },
	{ LOG_TAKEN, "taken", BYTES(QUEUE N("\x13") "\x03" "\x05\x00" "heavy" "why"), true },
	{ LOG_REFUSED, "refused", BYTES(QUEUE N("\x13") "why"), true },
	{ LOG_CLAIM_OWNED, "claim_owned", BYTES(ID N("\x0a") N("\x0b") "why"), true },
	{ LOG_SPARE, "spare", BYTES(ID), false },
	{ LOG_RESTORE_OWNED, "restore_owned", BYTES(ID N("\x0f") N("\x0c") N("\x10") N("\x0a") N("\x0b")
		N("\x11") "\x02\x03\x01\x02\x05\x03\x03" "\x02me" "why"), true },
	{ LOG_FORGET, "forget", BYTES(QUEUE), false },
	{ LOG_DIGEST, "digest", BYTES(ID N("\x14")), false },
};
/* clang-format on */

static size_t
join(const struct log_bytes *b, char *out)
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
		const struct log_entry e = example(golden[i].type);
		struct log_bytes b;

		log_encode(&e, &b);
		CHECK_EQ(golden[i].bytes.n, join(&b, bytes), golden[i].name);
		if (memcmp(golden[i].bytes.p, bytes, b.size) != 0)
			test_fail(__FILE__, __LINE__, "%s", golden[i].name);
		CHECK_STR(golden[i].name, log_type_name((uint8_t)e.type));
	}
}

/* The numbers of the types are part of the format. */
TEST(types_have_their_numbers)
{
	unsigned named = 0;

	CHECK_EQ(1, LOG_ACCEPT);
	CHECK_EQ(7, LOG_DONE);
	CHECK_EQ(12, LOG_CEILING);
	CHECK_EQ(16, LOG_MESSAGE);
	CHECK_EQ(19, LOG_RESULT);
	CHECK_EQ(20, LOG_POLICY_RATED);
	CHECK_EQ(21, LOG_ASIDE);
	CHECK_EQ(22, LOG_SPELLING);
	CHECK_EQ(23, LOG_LOCK);
	CHECK_EQ(24, LOG_DOCUMENT);
	CHECK_EQ(25, LOG_MARK);
	CHECK_EQ(29, LOG_GIVEN);
	CHECK_EQ(31, LOG_REFUSED);
	CHECK_EQ(32, LOG_CLAIM_OWNED);
	CHECK_EQ(33, LOG_SPARE);
	CHECK_EQ(34, LOG_RESTORE_OWNED);
	CHECK_EQ(35, LOG_FORGET);
	CHECK_EQ(36, LOG_POLICY_FIELDS);
	CHECK_EQ(37, LOG_DIGEST);
	for (uint8_t type = 0; type < LOG_TYPES; type++)
		named += log_type_name(type) != NULL;
	CHECK_EQ(COUNT(golden) + 5, named, "those with a message, a lock and tagged fields beside");
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
	struct log_entry e = example(LOG_POLICY_FIELDS), back;
	char bytes[LOG_FIXED_MAX + 16];
	struct log_bytes b;

	e.policy.strict = true;
	log_encode(&e, &b);
	CHECK_EQ(sizeof TAGGED - 1, join(&b, bytes));
	CHECK(memcmp(TAGGED, bytes, b.size) == 0);
	CHECK_STR("policy_fields", log_type_name(36));
	CHECK_EQ(0, log_decode(LOG_POLICY_FIELDS, (struct slice)BYTES(TAGGED), &back, NULL));
	CHECK(policy_is_same(&e.policy, &back.policy));
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
		{ BYTES(QUEUE "\x00\x01\x01"), SLU_ECORRUPT, "never" },
		{ BYTES(QUEUE "\x11"), SLU_ECORRUPT, "cut behind the tag" },
		{ BYTES(QUEUE "\x11\x01"), SLU_ECORRUPT, "cut before the value" },
		{ BYTES(QUEUE "\x11\x04\x01\x00\x00\x00"), SLU_ECORRUPT, "of another width" },
		{ BYTES(QUEUE "\x11\x01\x02"), SLU_ECORRUPT, "no flag" },
	};

	EACH(i, rows) {
		struct slu_err err;
		struct log_entry e;

		CHECK_EQ(rows[i].rc, log_decode(LOG_POLICY_FIELDS, rows[i].bytes, &e, &err), rows[i].what);
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
encode_lock(const struct lock *lock, struct buf *docs, struct log_bytes *out)
{
	struct log_entry e = { .type = LOG_LOCK };

	log_fill_lock(&e, lock, docs);
	log_encode(&e, out);
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
		.owner = SLICE("me"),
		.n = 2,
		.docs = docs,
	};
	const struct slice want = BYTES(LOCK_FIXED LOCK_DOCS);
	struct log_bytes b;
	struct log_entry e;
	struct buf text;
	char bytes[2048];

	buf_init(&text, 1024);
	encode_lock(&lock, &text, &b);
	CHECK_EQ(want.n, join(&b, bytes));
	CHECK(memcmp(want.p, bytes, want.n) == 0);
	CHECK_EQ(0, log_decode(LOG_LOCK, want, &e, NULL));
	buf_clear(&text);
	encode_lock(&e.lock.lock, &text, &b);
	CHECK_EQ(want.n, join(&b, bytes));
	CHECK(memcmp(want.p, bytes, want.n) == 0);
	CHECK_EQ(10, log_lock_top(&e.lock.lock));
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
	struct log_entry e;

	EACH(i, cases)
		CHECK_EQ(SLU_ECORRUPT, log_decode(LOG_LOCK, cases[i].bytes, &e, NULL), cases[i].label);
	for (size_t n = 0; n < sizeof(LOCK_FIXED) - 1; n++)
		CHECK_EQ(SLU_ECORRUPT, log_decode(LOG_LOCK, (struct slice){ whole.p, n }, &e, NULL));
}

static void
check_again(const struct log_entry *e, struct slice want, const char *name)
{
	char bytes[2048];
	struct log_bytes b;

	log_encode(e, &b);
	CHECK_EQ(want.n, join(&b, bytes), name);
	CHECK(memcmp(want.p, bytes, want.n) == 0);
}

TEST(what_was_written_can_be_read)
{
	EACH(i, golden) {
		struct log_entry e;

		CHECK_EQ(0, log_decode((uint8_t)golden[i].type, golden[i].bytes, &e, NULL),
			 golden[i].name);
		CHECK_EQ(golden[i].type, e.type);
		check_again(&e, golden[i].bytes, golden[i].name);
	}
}

/* R1 */
TEST(a_record_that_is_cut_or_too_long_is_refused)
{
	char bytes[2048];

	EACH(i, golden) {
		const size_t text = golden[i].has_rest ? 3 : 0;
		const size_t fixed = golden[i].bytes.n - text;
		struct log_entry e;

		memcpy(bytes, golden[i].bytes.p, golden[i].bytes.n);
		for (size_t n = 0; n < fixed; n++)
			CHECK_EQ(SLU_ECORRUPT,
				 log_decode((uint8_t)golden[i].type,
					    (struct slice){ bytes, n }, &e, NULL),
				 golden[i].name);
		CHECK_EQ(golden[i].has_rest ? 0 : SLU_ECORRUPT,
			 log_decode((uint8_t)golden[i].type,
				    (struct slice){ bytes, golden[i].bytes.n + 1 }, &e, NULL),
			 golden[i].name);
	}
}

TEST(a_value_that_nobody_writes_is_refused)
{
	static const struct {
		const char *label;
		enum log_type type;
		struct slice bytes;
	} cases[] = {
		{ "a bool of 2", LOG_RETRY, BYTES(ID N("\x0c") "\x02\x00") },
		{ "no name", LOG_PURGE, BYTES(N("\x0f") N("\x0d") "\x00\x04mail") },
		{ "a name of 129", LOG_RESULT, BYTES(ID N("\x0e") "\x81") },
		{ "a key of 257", LOG_REMEMBER, BYTES(ID N("\x0d") QUEUE "\x01\x01") },
	};
	struct log_entry e;

	EACH(i, cases)
		CHECK_EQ(SLU_ECORRUPT,
			 log_decode((uint8_t)cases[i].type, cases[i].bytes, &e, NULL),
			 cases[i].label);
}

/* R2, W8 */
TEST(a_type_of_a_newer_version_is_refused_as_such)
{
	struct log_entry e;
	struct slu_err err;

	CHECK_EQ(SLU_EINVAL, log_decode(LOG_TYPES, (struct slice){ 0 }, &e, &err));
	CHECK_CONTAINS("newer version", err.text);
	CHECK_EQ(SLU_EINVAL, log_decode(0, (struct slice){ 0 }, &e, &err));
	CHECK(log_type_name(LOG_TYPES) == NULL);
}
