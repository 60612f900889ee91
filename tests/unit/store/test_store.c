/*
 * What every store must do (store/store.h). Each case runs on every row of tests/lib/store_rig.c: a folder, S3, Azure and
 * PostgreSQL (LQ-38).
 */
#include "store_rig.h"

#include "base/clock.h"
#include "store/probe.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- One put wins ---- */

enum {
	RACE_THREADS = 8,
	RACE_PUTS = 32,
	RACES = 20,
	PROCESS_NAMES = 100
};

struct racer {
	struct store *s;
	pthread_barrier_t *start;
	unsigned number;
	unsigned wins[RACES]; /* of this thread */
};

/* Its share of the puts of each race. The content tells which put it was. */
static void *
race(void *arg)
{
	struct racer *me = arg;
	char name[32], text[32];

	for (unsigned i = 0; i < RACES; i++) {
		pthread_barrier_wait(me->start);
		for (unsigned k = 0; k < RACE_PUTS / RACE_THREADS; k++) {
			snprintf(name, sizeof name, "race/%02u", i);
			snprintf(text, sizeof text, "thread %u", me->number);
			const enum store_result r = store_rig_put(me->s, name, text);

			CHECK(r == STORE_OK || r == STORE_EXISTS);
			me->wins[i] += r == STORE_OK;
		}
	}
	return NULL;
}

/* Stores that share one place must behave as one. */
STORE_CASE(STORE_1_one_of_32_puts_over_8_handles_wins)
{
	static struct racer racers[RACE_THREADS];
	pthread_t threads[RACE_THREADS];
	pthread_barrier_t start;
	char name[32], text[32];

	pthread_barrier_init(&start, NULL, RACE_THREADS);
	EACH(i, racers) {
		racers[i] = (struct racer){ store_rig_open(r), &start, (unsigned)i, { 0 } };
		pthread_create(&threads[i], NULL, race, &racers[i]);
	}
	EACH(i, racers)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < RACES; i++) {
		unsigned wins = 0, winner = 0;

		EACH(k, racers) {
			wins += racers[k].wins[i];
			winner = racers[k].wins[i] ? (unsigned)k : winner;
		}
		CHECK_EQ(1, wins);
		snprintf(name, sizeof name, "race/%02u", i);
		snprintf(text, sizeof text, "thread %u", winner);
		CHECK_STR(text, store_rig_get(r, name));
	}
	EACH(i, racers)
		store_close(racers[i].s);
	pthread_barrier_destroy(&start);
}

/* Different names and folders by one handle, so that the threads meet inside the store. */
static void *
share(void *arg)
{
	struct racer *me = arg;
	char name[32], text[32];
	struct store_names names = { 0 };
	struct slu_err err;

	pthread_barrier_wait(me->start);
	for (unsigned i = 0; i < RACES; i++) {
		snprintf(name, sizeof name, "%u/%u/x", i % 5, me->number);
		snprintf(text, sizeof text, "%u", i);
		me->wins[i] = store_rig_put(me->s, name, text) == STORE_OK;
		CHECK_EQ(STORE_OK, store_list(me->s, "", "", 10, &names, &err));
	}
	store_names_release(&names);
	return NULL;
}

STORE_CASE(threads_share_a_handle)
{
	static struct racer racers[RACE_THREADS];
	pthread_t threads[RACE_THREADS];
	pthread_barrier_t start;

	pthread_barrier_init(&start, NULL, RACE_THREADS);
	EACH(i, racers) {
		racers[i] = (struct racer){ r->s, &start, (unsigned)i, { 0 } };
		pthread_create(&threads[i], NULL, share, &racers[i]);
	}
	EACH(i, racers) {
		pthread_join(threads[i], NULL);
		for (unsigned k = 0; k < RACES; k++)
			CHECK_EQ(k < 5, racers[i].wins[k]);
	}
	pthread_barrier_destroy(&start);
}

/* Puts all names, from the first or from the last one on; results[i]: whether it won. */
static void
put_all(const struct store_rig *r, const char *text, bool upward, bool *won)
{
	struct store *s = store_rig_open(r);
	char name[32];

	for (unsigned i = 0; i < PROCESS_NAMES; i++) {
		const unsigned k = upward ? i : PROCESS_NAMES - 1 - i;

		snprintf(name, sizeof name, "deep/er/%u", k);
		won[k] = store_rig_put(s, name, text) == STORE_OK;
	}
	store_close(s);
}

STORE_CASE(STORE_1_two_processes_share_no_name)
{
	if (!r->row->shared)
		test_skip("other processes do not see this store");
	bool(*won)[PROCESS_NAMES] = mmap(NULL, 2 * sizeof *won, PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char name[32];
	int status;

	CHECK(won != MAP_FAILED);
	const pid_t child = fork();

	if (child == 0) {
		put_all(r, "child", false, won[1]);
		_exit(0);
	}
	put_all(r, "parent", true, won[0]);
	CHECK_EQ(child, waitpid(child, &status, 0));
	CHECK_EQ(0, status);
	for (unsigned i = 0; i < PROCESS_NAMES; i++) {
		CHECK_EQ(1, won[0][i] + won[1][i]);
		snprintf(name, sizeof name, "deep/er/%u", i);
		CHECK_STR(won[0][i] ? "parent" : "child", store_rig_get(r, name));
	}
	munmap(won, 2 * sizeof *won);
}

STORE_CASE(STORE_4_a_put_whose_answer_is_lost_exists_when_it_is_repeated)
{
	if (!r->row->lose_answer)
		test_skip("this store loses no answers on demand");
	r->row->lose_answer(r->s);
	CHECK_EQ(STORE_FAILED, store_put(r->s, "0/group/1", SLICE("mine"), STORE_IF_ABSENT, &r->err));
	CHECK_EQ(SLU_EDOWN, r->err.code);
	CHECK_EQ(STORE_EXISTS, store_rig_put(r->s, "0/group/1", "mine"));
	CHECK_STR("mine", store_rig_get(r, "0/group/1"));
}

/* ---- Objects ---- */

STORE_CASE(every_handle_sees_an_object_that_was_put)
{
	struct store *other = store_rig_open(r), *first = r->s;

	CHECK_STR("[absent]", store_rig_get(r, "a/b"));
	CHECK_EQ(STORE_OK, store_rig_put(r->s, "a/b", "text"));
	r->s = other;
	CHECK_STR("text", store_rig_get(r, "a/b"));
	CHECK_STR("a/b", store_rig_list(r, "", "", 10));
	r->s = first;
	store_close(other);
}

/* LQ-30 */
STORE_CASE(an_object_stays_when_its_name_is_put_again)
{
	CHECK_EQ(STORE_OK, store_rig_put(r->s, "a/b", "first"));
	CHECK_EQ(STORE_EXISTS, store_rig_put(r->s, "a/b", "second"));
	CHECK_STR("first", store_rig_get(r, "a/b"));
}

STORE_CASE(a_get_returns_the_range_and_the_size_of_the_whole)
{
	static const struct {
		uint64_t at;
		size_t max;
		const char *want;
	} cases[] = {
		{ 0, SIZE_MAX, "0123456789" },
		{ 0, 4, "0123" },
		{ 0, 10, "0123456789" },
		{ 0, 11, "0123456789" },
		{ 3, 4, "3456" },
		{ 9, 5, "9" },
		{ 10, 5, "" },
		{ 11, 5, "" },
		{ UINT64_MAX, SIZE_MAX, "" },
		{ 2, 0, "" },
	};

	CHECK_EQ(STORE_OK, store_rig_put(r->s, "range", "0123456789"));
	EACH(i, cases) {
		uint64_t size = 0;

		buf_clear(&r->bytes);
		buf_puts(&r->bytes, "before ");
		CHECK_EQ(STORE_OK, store_get(r->s, "range", cases[i].at, cases[i].max, &r->bytes,
					     &size, &r->err));
		CHECK_EQ(10, size);
		CHECK_STR(cases[i].want, buf_str(&r->bytes) + strlen("before "));
	}
}

STORE_CASE(an_object_has_0_bytes_or_1_byte_or_64_MiB)
{
	static const size_t sizes[] = { 0, 1, STORE_OBJECT_MAX };
	char *bytes = malloc(STORE_OBJECT_MAX + 1);
	uint64_t state = 1;

	CHECK(bytes);
	for (size_t i = 0; i < STORE_OBJECT_MAX; i += 8)
		memcpy(bytes + i, &(uint64_t){ test_random(&state) }, 8);
	EACH(i, sizes) {
		const struct slice object = { bytes, sizes[i] };
		char name[32];

		snprintf(name, sizeof name, "size/%zu", sizes[i]);
		CHECK_EQ(STORE_OK, store_put(r->s, name, object, STORE_IF_ABSENT, &r->err));
		store_rig_get(r, name);
		CHECK(slice_eq(object, buf_slice(&r->bytes)));
	}
	CHECK_EQ(STORE_REFUSED, store_put(r->s, "size/more", (struct slice){ bytes, STORE_OBJECT_MAX + 1 },
					  STORE_IF_ABSENT, &r->err));
	CHECK_EQ(SLU_ETOOBIG, r->err.code);
	CHECK_STR("[absent]", store_rig_get(r, "size/more"));
	free(bytes);
}

STORE_CASE(a_get_into_a_small_buffer_is_refused_and_leaves_it_as_it_was)
{
	struct buf small;

	buf_init(&small, 8);
	buf_puts(&small, "abc");
	CHECK_EQ(STORE_OK, store_rig_put(r->s, "large", "0123456789"));
	CHECK_EQ(STORE_REFUSED, store_get(r->s, "large", 0, SIZE_MAX, &small, NULL, &r->err));
	CHECK_EQ(SLU_ETOOBIG, r->err.code);
	CHECK_EQ(3, small.n);
	buf_release(&small);
}

STORE_CASE(a_removed_object_is_absent_and_its_name_is_free)
{
	CHECK_EQ(STORE_OK, store_rig_put(r->s, "a/b", "first"));
	CHECK_EQ(STORE_OK, store_remove(r->s, "a/b", &r->err));
	CHECK_STR("[absent]", store_rig_get(r, "a/b"));
	CHECK_STR("", store_rig_list(r, "", "", 10));
	CHECK_EQ(STORE_OK, store_rig_put(r->s, "a/b", "second"));
	CHECK_STR("second", store_rig_get(r, "a/b"));
}

STORE_CASE(a_remove_of_what_is_absent_harms_nothing)
{
	static const char *const names[] = { "a/b", "x/y/z", "a/c/d" };

	CHECK_EQ(STORE_OK, store_rig_put(r->s, "a/c", "stays"));
	EACH(i, names) {
		const enum store_result result = store_remove(r->s, names[i], &r->err);

		CHECK(result == STORE_OK || result == STORE_ABSENT);
	}
	CHECK_STR("stays", store_rig_get(r, "a/c"));
}

/* Names with the characters of an array of SQL are no names of objects. */
STORE_CASE(several_objects_are_removed_at_once)
{
	static const char more[] = "a/c\0x/absent\0b/d";

	if (!r->s->ops->remove_all)
		return;
	CHECK_EQ(STORE_OK, store_rig_put(r->s, "a/b", "1"));
	CHECK_EQ(STORE_OK, store_rig_put(r->s, "a/c", "2"));
	CHECK_EQ(STORE_OK, store_rig_put(r->s, "b/d", "3"));
	CHECK_EQ(STORE_OK, store_rig_put(r->s, "b/e", "4"));
	CHECK_EQ(STORE_OK, store_remove_all(r->s, "a/b", (struct slice){ more, sizeof more }, &r->err));
	CHECK_STR("b/e", store_rig_list(r, "", "", 10));
	CHECK_EQ(STORE_REFUSED, store_remove_all(r->s, "b/e", (struct slice){ "x,y", 4 }, &r->err));
	CHECK_EQ(STORE_REFUSED, store_remove_all(r->s, "b/e", (struct slice){ "x", 1 }, &r->err));
	CHECK_STR("4", store_rig_get(r, "b/e"));
}

STORE_CASE(a_replace_creates_lengthens_and_shortens)
{
	static const char *const texts[] = { "beat 9", "beat 10", "b", "", "beat 11" };

	EACH(i, texts) {
		CHECK_EQ(STORE_OK, store_put(r->s, "node/5e1f", slice_of(texts[i]), STORE_REPLACE,
					     &r->err));
		CHECK_STR(texts[i], store_rig_get(r, "node/5e1f"));
	}
	CHECK_EQ(STORE_EXISTS, store_rig_put(r->s, "node/5e1f", "x"));
	CHECK_STR("node/5e1f", store_rig_list(r, "", "", 10));
}

STORE_CASE(the_clock_is_the_wall_clock_of_the_store)
{
	slu_time first, second;

	CHECK_EQ(STORE_OK, store_clock(r->s, &first, &r->err));
	CHECK_EQ(STORE_OK, store_clock(r->s, &second, &r->err));
	CHECK(first > 1700000000 * SLU_SEC);
	CHECK(second >= first);
}

/* ---- Names ---- */

STORE_CASE(STORE_7_every_legal_byte_may_be_in_a_name)
{
	static const char legal[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789._-";
	char name[STORE_NAME_MAX];

	for (const char *c = legal; *c; c++) {
		snprintf(name, sizeof name, "0%c/%s%c%c", *c, *c == '.' ? "x" : "", *c, *c);
		CHECK_EQ(STORE_OK, store_rig_put(r->s, name, name), name);
	}
	for (const char *c = legal; *c; c++) {
		snprintf(name, sizeof name, "0%c/%s%c%c", *c, *c == '.' ? "x" : "", *c, *c);
		CHECK_STR(name, store_rig_get(r, name));
	}
	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	name[100] = name[200] = '/';
	CHECK_EQ(STORE_OK, store_rig_put(r->s, name, "long"));
	CHECK_STR(name, store_rig_list(r, "x", "", 10));
}

STORE_CASE(STORE_7_other_names_are_refused)
{
	char too_long[STORE_NAME_MAX + 1];
	const char *const names[] = {
		"",
		"/",
		"/a",
		"a/",
		"a//b",
		".",
		"..",
		"a/../b",
		".tmp/x",
		"a/.b",
		"a b",
		"a+b",
		"a\nb",
		"a\\b",
		"a:b",
		"a*",
		"a\177",
		"\303\244",
		"a?b=c",
		too_long,
		"1/2/3/4/5/6/7/8/9",
	};

	memset(too_long, 'x', sizeof too_long - 1);
	too_long[sizeof too_long - 1] = '\0';
	EACH(i, names) {
		CHECK_EQ(STORE_REFUSED, store_put(r->s, names[i], SLICE("x"), STORE_IF_ABSENT, &r->err),
			 names[i]);
		CHECK_EQ(SLU_EINVAL, r->err.code);
		CHECK_STR("[refused]", store_rig_get(r, names[i]));
		CHECK_EQ(STORE_REFUSED, store_remove(r->s, names[i], &r->err), names[i]);
	}
	CHECK_STR("", store_rig_list(r, "", "", 10));
	CHECK_EQ(STORE_OK, store_rig_put(r->s, "1/2/3/4/5/6/7/8", "deepest"));
	CHECK_STR("1/2/3/4/5/6/7/8", store_rig_list(r, "", "", 10));
}

STORE_CASE(an_error_names_the_store_the_object_and_the_cause)
{
	CHECK_EQ(STORE_REFUSED, store_put(r->s, "a b", SLICE("x"), STORE_IF_ABSENT, &r->err));
	CHECK_CONTAINS(r->row->ops->name, r->err.text);
	CHECK_CONTAINS("put a b: invalid name", r->err.text);
}

/* ---- Lists ---- */

STORE_CASE(STORE_6_a_list_is_in_byte_order_over_folders)
{
	static const char *const names[] = {
		"0/group/2",
		"0/group/10",
		"0/group/1",
		"0-1/x",
		"0.1/x",
		"00/x",
		"0_/x",
		"0/span/1",
		"A/x",
		"a/x",
		"node/1",
		"0/group-/x",
	};

	EACH(i, names)
		CHECK_EQ(STORE_OK, store_rig_put(r->s, names[i], ""), names[i]);
	CHECK_STR("0-1/x 0.1/x 0/group-/x 0/group/1 0/group/10 0/group/2 0/span/1 00/x 0_/x A/x a/x node/1",
		  store_rig_list(r, "", "", 100));
	CHECK_STR("0/group/1 0/group/10 0/group/2", store_rig_list(r, "0/group/", "", 100));
	CHECK_STR("0/group-/x 0/group/1 0/group/10 0/group/2", store_rig_list(r, "0/group", "", 100));
	CHECK_STR("0/group/1 0/group/10", store_rig_list(r, "0/group/1", "", 100));
	CHECK_STR("0/group/10 0/group/2", store_rig_list(r, "0/group/", "0/group/1", 100));
	CHECK_STR("0/group/1 0/group/10 +", store_rig_list(r, "0/group/", "", 2));
	CHECK_STR("0/group/1 0/group/10 0/group/2", store_rig_list(r, "0/group/", "", 3));
	CHECK_STR("0/span/1 00/x +", store_rig_list(r, "", "0/group/\177", 2));
	CHECK_STR("", store_rig_list(r, "0/group/", "0/group/\177", 2));
	CHECK_STR("", store_rig_list(r, "nothing/", "", 2));
	CHECK_STR("", store_rig_list(r, "node/1/", "", 2));
	CHECK_STR("node/1", store_rig_list(r, "", "node/", 2));
	CHECK_STR("", store_rig_list(r, "0/", "1", 2));
}

STORE_CASE(a_list_with_a_wrong_prefix_or_page_is_refused)
{
	CHECK_STR("[refused]", store_rig_list(r, "../", "", 10));
	CHECK_STR("[refused]", store_rig_list(r, ".tmp/", "", 10));
	CHECK_STR("[refused]", store_rig_list(r, "a//", "", 10));
	CHECK_STR("[refused]", store_rig_list(r, "", "", 0));
	CHECK_STR("[refused]", store_rig_list(r, "", "", STORE_PAGE_MAX + 1));
}

enum {
	MANY = 10000
};

/* What stays is in the list exactly once, whatever comes and goes between two pages. */
STORE_CASE(STORE_6_10000_names_in_pages_with_changes_in_between)
{
	static char names[MANY][STORE_NAME_MAX];
	const uint32_t many = r->row->slow ? MANY / 5 : MANY;
	struct store_names page = { 0 };
	char after[STORE_NAME_MAX] = "", extra[32];
	uint32_t at = 0, pages = 0;

	for (uint32_t i = 0; i < many; i++)
		snprintf(names[i], sizeof names[i], "0/group/%020u", 2 * i + 2);
	store_rig_fill(r, names, many);
	do {
		CHECK_EQ(STORE_OK, store_list(r->s, "0/group/", after, STORE_PAGE_MAX, &page, &r->err));
		for (uint32_t i = 0; i < page.n; i++) {
			if ((page.names[i][strlen(page.names[i]) - 1] - '0') % 2)
				continue; /* one of those that came meanwhile */
			CHECK_STR(names[at], page.names[i]);
			at++;
		}
		strcpy(after, page.names[page.n - 1]);
		snprintf(extra, sizeof extra, "0/group/%020u", 2 * at + 1);
		CHECK_EQ(STORE_OK, store_rig_put(r->s, extra, ""));
		snprintf(extra, sizeof extra, "0/group/%020u", 1 + 2 * pages);
		CHECK_EQ(STORE_OK, store_rig_put(r->s, extra, ""));
		CHECK_EQ(STORE_OK, store_remove(r->s, names[pages++], &r->err));
	} while (page.more);
	CHECK_EQ(many, at);
	CHECK(pages >= many / STORE_PAGE_MAX);
	store_names_release(&page);
}

/* A driver that answers what the test wants. */
static const char *const *listed;

static enum store_result
fake_open(struct store **out, const char *rest, const struct store_conf *conf, struct slu_err *err)
{
	static struct store s;
	(void)rest;
	(void)conf;
	(void)err;

	*out = &s;
	return STORE_OK;
}

static void
fake_close(struct store *s)
{
	(void)s;
}

static enum store_result
fake_list(struct store *s, const char *prefix, const char *after, uint32_t max,
	  struct store_names *out, struct slu_err *err)
{
	(void)s;
	(void)prefix;
	(void)after;
	(void)max;
	(void)err;
	for (const char *const *name = listed; *name; name++)
		store_names_add(out, *name);
	return STORE_OK;
}

/* A line that reads such a list would miss groups. */
TEST_BARE(STORE_6_a_list_out_of_order_is_refused)
{
	static const struct {
		const char *label;
		const char *names[4];
		enum store_result want;
	} cases[] = {
		{ "in order", { "a/2", "a/3" }, STORE_OK },
		{ "backward", { "a/3", "a/2" }, STORE_REFUSED },
		{ "twice", { "a/2", "a/2" }, STORE_REFUSED },
		{ "not behind the name", { "a/1" }, STORE_REFUSED },
		{ "without the prefix", { "b/2" }, STORE_REFUSED },
		{ "no name", { "a/.2" }, STORE_REFUSED },
		{ "too many", { "a/2", "a/3", "a/4" }, STORE_REFUSED },
	};
	static const struct store_ops fake = {
		.name = "fake", .open = fake_open, .close = fake_close, .list = fake_list
	};
	const struct store_ops *const rows[] = { &fake, NULL };
	const struct store_conf conf = { .url = "fake://user:secret@host/path?key=secret" };
	struct store_names names = { 0 };
	struct slu_err err;
	struct store *s;

	CHECK_EQ(STORE_OK, store_open(&s, rows, &conf, &err));
	EACH(i, cases) {
		listed = cases[i].names;
		CHECK_EQ(cases[i].want, store_list(s, "a/", "a/1", 2, &names, &err), cases[i].label);
		if (cases[i].want == STORE_OK)
			continue;
		CHECK_STR("fake://host/path: list a/: the store returned names out of order", err.text);
		CHECK_EQ(0, names.n);
	}
	store_names_release(&names);
	store_close(s);
}

/* A server that starts while another one probes must not take the store for one in use. */
STORE_CASE(objects_of_a_probe_do_not_count)
{
	static const char *const rows[][2] = {
		{ "probe/1.0", "" }, { "probe/2.19", "" }, { "settings/1", "settings/1" }, { "0/group/1", "0/group/1" }
	};
	char name[STORE_NAME_MAX];

	CHECK_EQ(STORE_OK, store_first(r->s, name, &r->err));
	CHECK_STR("", name);
	EACH(i, rows) {
		CHECK_EQ(STORE_OK, store_rig_put(r->s, rows[i][0], ""));
		CHECK_EQ(STORE_OK, store_first(r->s, name, &r->err));
		CHECK_STR(rows[i][1], name);
	}
}

/* ---- Open ---- */

STORE_CASE(a_store_for_reading_changes_nothing)
{
	const struct store_ops *const rows[] = { r->row->ops, NULL };
	const struct store_conf conf = { .url = r->url, .read_only = true };
	struct store *s, *first = r->s;
	slu_time wall;

	CHECK_EQ(STORE_OK, store_rig_put(r->s, "a/b", "text"));
	CHECK_EQ(STORE_OK, store_open(&s, rows, &conf, &r->err));
	r->s = s;
	CHECK_STR("text", store_rig_get(r, "a/b"));
	CHECK_STR("a/b", store_rig_list(r, "", "", 10));
	CHECK_EQ(STORE_REFUSED, store_rig_put(s, "a/c", "text"));
	CHECK_EQ(STORE_REFUSED, store_remove(s, "a/b", &r->err));
	CHECK_CONTAINS("reading only", r->err.text);
	CHECK_EQ(STORE_REFUSED, store_clock(s, &wall, &r->err));
	r->s = first;
	store_close(s);
	CHECK_STR("a/b", store_rig_list(r, "", "", 10));
}

STORE_CASE(a_wrong_url_is_refused_by_name)
{
	static const char *const urls[] = { "", "x", "nothing://x", "://", "file:/x", "FILE:///tmp" };
	const struct store_ops *const rows[] = { r->row->ops, NULL };
	struct store *s;

	EACH(i, urls) {
		const struct store_conf conf = { .url = urls[i] };

		CHECK_EQ(STORE_REFUSED, store_open(&s, rows, &conf, &r->err), urls[i]);
		CHECK_CONTAINS("invalid URL of a store", r->err.text);
		CHECK_CONTAINS("://...", r->err.text);
		CHECK(s == NULL);
	}
}
