#include "test.h"

#include "conf/options.h"
#include "conf/show.h"
#include "count_engine.h"
#include "engine/memory/memory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* --- a table of our own: every kind -------------------------------------------- */

struct values {
	char *config;
	char *text;
	char *secret;
	struct conf_list list;
	bool yes;
	uint32_t count;
	uint64_t size;
	slu_time time;
	slu_time bounded;
	unsigned word;
	bool asked;
};

#define AT(member) offsetof(struct values, member)

static const char *const words[] = { "one", "two", NULL };

/* clang-format off */
static const struct option rows[] = {
	{ .key = "config", .kind = &text_kind, .offset = AT(config), .standard = "", .no_file = true, .value = "FILE", .doc = "" },
	{ .key = "a.text", .kind = &text_kind, .offset = AT(text), .standard = "", .value = "TEXT", .doc = "a text" },
	{ .key = "a.secret_word", .kind = &secret_kind, .offset = AT(secret), .standard = "", .value = "WORD", .doc = "a secret" },
	{ .key = "list", .kind = &list_kind, .offset = AT(list), .standard = "", .value = "ITEM", .doc = "" },
	{ .key = "yes", .kind = &bool_kind, .offset = AT(yes), .standard = "false", .value = "", .doc = "" },
	{ .key = "count", .kind = &count_kind, .offset = AT(count), .standard = "1", .min = 1, .max = 9, .value = "N", .doc = "" },
	{ .key = "size", .kind = &size_kind, .offset = AT(size), .standard = "1M", .min = 1024, .max = 1 << 30, .value = "SIZE", .doc = "" },
	{ .key = "time", .kind = &time_kind, .offset = AT(time), .standard = "1s", .value = "TIME", .doc = "" },
	{ .key = "bounded", .kind = &time_kind, .offset = AT(bounded), .standard = "1s", .min = SLU_MS, .max = SLU_MIN, .value = "TIME", .doc = "" },
	{ .key = "word", .kind = &word_kind, .offset = AT(word), .standard = "one", .words = words, .value = "one|two", .doc = "" },
};
/* clang-format on */

static const struct option_action actions[] = { { "--ask", AT(asked), "" }, { 0 } };

static struct {
	struct values v;
	char *origins[COUNT(rows)];
	struct option_set set;
	struct conf_faults faults;
} fx;

static void
release(void)
{
	option_set_release(&fx.set);
	faults_release(&fx.faults);
	memset(&fx, 0, sizeof fx);
}

FIXTURE(NULL, release);

/* Replaces what was loaded. */
static void
load(const char *const *args)
{
	char *argv[16] = { (char *)"prog" };
	int argc = 1;

	release();
	fx.set = (struct option_set){ rows, COUNT(rows), &fx.v, fx.origins };
	for (; args && *args; args++)
		argv[argc++] = (char *)*args;
	load_options(&(struct option_load){ &fx.set, actions, NULL, &fx.faults }, argc, argv);
}

#define LOAD(...) load((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

static void
write_file(const char *name, const char *text, size_t n)
{
	const int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	CHECK(fd >= 0 && write(fd, text, n) == (ssize_t)n);
	close(fd);
}

static void
put_file(const char *name, const char *text)
{
	write_file(name, text, strlen(text));
}

/* The one fault there is. */
static const char *
fault(void)
{
	if (fx.faults.n != 1)
		test_fail(__FILE__, __LINE__, "%u faults, the first: %s", fx.faults.n,
			  fx.faults.n ? fx.faults.items[0] : "none");
	return fx.faults.items[0];
}

TEST(names_follow_from_the_key)
{
	char name[OPTION_NAME];

	CHECK_STR("a-secret-word", option_flag(&rows[2], name));
	CHECK_STR("SLUICE_A_SECRET_WORD", option_variable(&rows[2], name));
}

TEST(every_kind_is_read_from_everywhere)
{
	static const char *const yaml =
		"a: {text: t}\nlist: [x, y]\nyes: true\ncount: 3\nsize: 2k\n"
		"time: 2s\nbounded: 3s\nword: two\n";

	put_file("c.yaml", yaml);
	LOAD("--config", "c.yaml");
	CHECK_EQ(0, fx.faults.n, fx.faults.n ? fx.faults.items[0] : "");
	CHECK_STR("t", fx.v.text);
	CHECK_EQ(2, fx.v.list.n);
	CHECK(fx.v.yes);
	CHECK_EQ(3, fx.v.count);
	CHECK_EQ(2048, fx.v.size);
	CHECK_EQ(2 * SLU_SEC, fx.v.time);
	CHECK_EQ(3 * SLU_SEC, fx.v.bounded);
	CHECK_EQ(1, fx.v.word);
	CHECK_STR("c.yaml:3", fx.origins[4]);

	setenv("SLUICE_COUNT", "4", 1);
	LOAD("--config=c.yaml", "--word=one", "--yes=false", "--ask");
	CHECK_EQ(4, fx.v.count);
	CHECK_STR("env SLUICE_COUNT", fx.origins[5]);
	CHECK_EQ(0, fx.v.word);
	CHECK(!fx.v.yes && fx.v.asked);
	CHECK_STR("flag --word", fx.origins[9]);

	LOAD("--config=c.yaml", "--count=5");
	CHECK_EQ(5, fx.v.count);
	CHECK_STR("flag --count", fx.origins[5]);
}

TEST(what_need_not_be_set_can_be_unset)
{
	put_file("c.yaml", "a.text: t\nlist: [x]\n");
	LOAD("--config", "c.yaml", "--a-text=", "--list=");
	CHECK_EQ(0, fx.faults.n);
	CHECK(!fx.v.text && fx.v.list.n == 0);
}

TEST(bounds_are_held)
{
	static const struct {
		const char *flag, *says;
	} cases[] = {
		{ "--count=0", "--count: \"0\": expected a number from 1 to 9" },
		{ "--count=10", "from 1 to 9" },
		{ "--size=1", "--size: invalid size \"1\"; expected 1K to 1G" },
		{ "--size=2G", "expected 1K to 1G" },
		{ "--size=x", "\"x\"" },
		{ "--bounded=1us", "--bounded: invalid duration \"1us\"; expected 1ms to 1m" },
		{ "--bounded=2m", "expected 1ms to 1m" },
		{ "--word=three", "--word: invalid value \"three\"; expected one|two" },
		{ "--list=a,,b", "--list: missing value" },
		{ "--list=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "at most 16" },
		{ "--count", "--count: missing value; expected N" },
	};

	EACH(i, cases) {
		LOAD(cases[i].flag);
		CHECK_CONTAINS(cases[i].says, fault());
	}
}

/* --- secrets ------------------------------------------------------------------- */

/* */
TEST(a_secret_comes_from_a_file)
{
	put_file("word", "open sesame\r\n\n");
	setenv("SLUICE_A_SECRET_WORD_FILE", "word", 1);
	LOAD();
	CHECK_STR("open sesame", fx.v.secret);
	CHECK_STR("env SLUICE_A_SECRET_WORD_FILE", fx.origins[2]);

	unsetenv("SLUICE_A_SECRET_WORD_FILE");
	LOAD("--a-secret-word-file", "word");
	CHECK_STR("open sesame", fx.v.secret);
	CHECK_STR("flag --a-secret-word-file", fx.origins[2]);

	put_file("c.yaml", "a:\n  secret_word_file: word\n");
	LOAD("--config", "c.yaml");
	CHECK_STR("open sesame", fx.v.secret);
	CHECK_STR("c.yaml:2", fx.origins[2]);

	setenv("SLUICE_A_SECRET_WORD", "as it is", 1);
	LOAD();
	CHECK_STR("as it is", fx.v.secret);
}

TEST(a_secret_that_cannot_be_read_is_named_and_not_shown)
{
	setenv("SLUICE_A_SECRET_WORD", "sesame", 1);
	setenv("SLUICE_A_SECRET_WORD_FILE", "word", 1);
	LOAD();
	CHECK_STR("SLUICE_A_SECRET_WORD and SLUICE_A_SECRET_WORD_FILE are both set: keep one",
		  fault());

	unsetenv("SLUICE_A_SECRET_WORD");
	LOAD();
	CHECK_STR("SLUICE_A_SECRET_WORD_FILE: word: No such file or directory", fault());

	write_file("word", "ses\0ame", 7);
	LOAD();
	CHECK_CONTAINS("text without NUL bytes", fault());

	unsetenv("SLUICE_A_SECRET_WORD_FILE");
	LOAD("--a-secret-word=sesame");
	CHECK_CONTAINS("use --a-secret-word-file", fault());
	CHECK(!strstr(fault(), "sesame"));
}

TEST(only_secrets_come_from_files)
{
	setenv("SLUICE_A_TEXT_FILE", "c.yaml", 1);
	put_file("c.yaml", "a.text_file: c.yaml\n");
	LOAD("--config=c.yaml");
	CHECK_CONTAINS("unknown key a.text_file", fault());
	CHECK(!fx.v.text);
}

/* Everything that shows values, into one text. */
static void
show_all(const struct option_set *s, char *out, size_t size)
{
	FILE *const f = tmpfile();
	struct buf json;
	size_t n;

	CHECK(f);
	buf_init(&json, 1 << 20);
	show_values(s, f);
	show_help(s, actions, f);
	show_doc(s, actions, f);
	show_json(s, &json);
	fputs(buf_str(&json), f);
	rewind(f);
	n = fread(out, 1, size - 1, f);
	out[n] = '\0';
	buf_release(&json);
	fclose(f);
}

TEST(a_secret_is_shown_nowhere)
{
	static char out[64 * 1024];

	setenv("SLUICE_A_SECRET_WORD", "sesame", 1);
	LOAD();
	show_all(&fx.set, out, sizeof out);
	CHECK(!strstr(out, "sesame"));
	CHECK_CONTAINS("a.secret_word: ***", out);
	CHECK_CONTAINS("\"a.secret_word\":{\"value\":\"***\"", out);
	CHECK_CONTAINS("--a-secret-word-file", out);
	CHECK_CONTAINS("SLUICE_A_SECRET_WORD_FILE", out);
}

TEST(a_secret_that_is_not_set_is_shown_as_that)
{
	static char out[64 * 1024];

	LOAD();
	show_all(&fx.set, out, sizeof out);
	CHECK(!strstr(out, "***"));
	CHECK_CONTAINS("\"a.secret_word\":{\"value\":null", out);
}

/* SHOW-1: a server must not run with the mask as a password. */
TEST(a_printed_secret_does_not_load)
{
	put_file("c.yaml", "a.secret_word: ***\n");
	LOAD("--config=c.yaml");
	CHECK_CONTAINS("c.yaml:1: ", fault());
	CHECK(!fx.v.secret);
}

/* --- the table of sluiced ------------------------------------------------------- */

/* --a.b and --a_b would be one flag. */
TEST(no_two_rows_have_one_name)
{
	struct conf none = { 0 };
	const struct option_set s = conf_set(&none);

	for (unsigned i = 0; i < s.n; i++) {
		for (unsigned j = 0; j < i; j++) {
			char a[OPTION_NAME], b[OPTION_NAME];

			CHECK(strcmp(option_flag(&s.rows[i], a), option_flag(&s.rows[j], b)) != 0);
			CHECK(strcmp(option_variable(&s.rows[i], a),
				     option_variable(&s.rows[j], b)) != 0);
			CHECK(s.rows[i].offset != s.rows[j].offset);
		}
	}
}

TEST(every_row_is_whole)
{
	struct conf none = { 0 };
	const struct option_set s = conf_set(&none);

	for (unsigned i = 0; i < s.n; i++) {
		const struct option *const o = &s.rows[i];

		CHECK(o->key && o->kind && o->standard && o->value && o->doc && *o->doc);
		CHECK(strlen(o->key) + sizeof "SLUICE__FILE" < OPTION_NAME);
		CHECK_EQ(o->kind == &word_kind, o->words != NULL, o->key);
		CHECK(o->offset + o->kind->size <= sizeof none);
		if (o->kind == &count_kind || o->kind == &size_kind)
			CHECK(o->min < o->max);
	}
}

TORTURE(loading_survives_any_lack_of_memory)
{
	struct conf c;
	struct conf_faults faults = { 0 };
	char *argv[] = { (char *)"sluiced", (char *)"--config", (char *)"c.yaml",
			 (char *)"--listen=a,b", NULL };
	int rc;

	put_file("c.yaml", "data: ${HOME}/x\nlisten:\n  - a\nlog:\n  level: debug\n");
	setenv("HOME", "/home", 1);
	rc = conf_load(&c, engine_rows, 4, argv, &faults);
	if (!rc) {
		CHECK_STR("/home/x", c.data);
		CHECK_EQ(2, c.listen.n);
		CHECK_EQ(SLU_LOG_DEBUG, c.log_level);
	} else {
		CHECK(faults_any(&faults));
	}
	faults_release(&faults);
	conf_release(&c);
}

/* ---- An engine's own settings ---- */

TEST(a_new_engine_has_its_settings_by_its_row_alone)
{
	static const struct engine_ops *const table[] = { &engine_count, &engine_memory, NULL };
	static const char *const argv[] = { "sluiced", "--config", "f.yaml", "--engine", "count", "--count-from", "7" };
	const struct sharding_shard *shard;
	const struct count_conf *own;
	struct conf_faults faults = { 0 };
	char *printed = NULL;
	size_t size = 0;
	struct conf c;
	FILE *f;

	put_file("f.yaml", "shards: {one: {from: 3, poolSize: 2}, two: {engine: memory}}\n");
	CHECK_EQ(0, conf_load(&c, table, COUNT(argv), (char **)argv, &faults));
	own = conf_engine_values(&c, &engine_count);
	CHECK_EQ(7, own->from);
	CHECK(conf_engine_values(&c, &engine_memory) == NULL);
	CHECK_STR(c.data, conf_engine_place(&c, &engine_count)); /* it has options, and no place of its own */
	CHECK_STR(c.data, conf_engine_place(&c, &engine_memory));
	shard = sharding_find(c.sharding, "one");
	CHECK(shard->engine == &engine_count);
	CHECK_EQ(3, ((const struct count_conf *)shard->options)->from);
	CHECK(sharding_find(c.sharding, "two")->engine == &engine_memory);
	f = open_memstream(&printed, &size);
	conf_print(&c, f);
	conf_doc(table, f);
	fclose(f);
	CHECK(strstr(printed, "shards.one.from: 3 # f.yaml:1"));
	CHECK(strstr(printed, "| `count.from` | `--count-from N` | `SLUICE_COUNT_FROM` |"));
	CHECK(strstr(printed, "With `engine: count` also:"));
	free(printed);
	faults_release(&faults);
	conf_release(&c);
}

TEST(a_setting_of_another_engine_is_a_fault)
{
	static const struct engine_ops *const table[] = { &engine_count, &engine_memory, NULL };
	static const char *const argv[] = { "sluiced", "--config", "f.yaml", "--engine", "count" };
	struct conf_faults faults = { 0 };
	struct conf c;

	put_file("f.yaml", "shards: {one: {from: 3, engine: memory}, two: {engine: log}}\n");
	CHECK_EQ(SLU_EINVAL, conf_load(&c, table, COUNT(argv), (char **)argv, &faults));
	CHECK_EQ(2, faults.n);
	CHECK(strstr(faults.items[0], "f.yaml:1: shards.one.from: a shard with engine memory has no setting from"));
	CHECK(strstr(faults.items[1], "invalid engine \"log\"; expected count, memory"));
	faults_release(&faults);
	conf_release(&c);
}
