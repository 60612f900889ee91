#include "test.h"

#include "base/mem.h"
#include "conf/options.h"
#include "conf/show.h"

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

struct fixture {
	struct values v;
	char *origins[COUNT(rows)];
	struct option_set set;
	struct conf_faults faults;
};

static void
load(struct fixture *fx, const char *const *args)
{
	char *argv[16] = { (char *)"prog" };
	int argc = 1;

	*fx = (struct fixture){ 0 };
	fx->set = (struct option_set){ rows, COUNT(rows), &fx->v, fx->origins };
	for (; args && *args; args++)
		argv[argc++] = (char *)*args;
	load_options(&(struct load){ &fx->set, actions, NULL, &fx->faults }, argc, argv);
}

#define LOAD(fx, ...) load(fx, (const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

static void
release(struct fixture *fx)
{
	option_set_release(&fx->set);
	faults_release(&fx->faults);
}

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
fault(const struct fixture *fx)
{
	if (fx->faults.n != 1)
		test_fail(__FILE__, __LINE__, "%u faults, the first: %s", fx->faults.n,
			  fx->faults.n ? fx->faults.items[0] : "none");
	return fx->faults.items[0];
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
	struct fixture fx;

	put_file("c.yaml", yaml);
	LOAD(&fx, "--config", "c.yaml");
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
	release(&fx);

	setenv("SLUICE_COUNT", "4", 1);
	LOAD(&fx, "--config=c.yaml", "--word=one", "--yes=false", "--ask");
	CHECK_EQ(4, fx.v.count);
	CHECK_STR("env SLUICE_COUNT", fx.origins[5]);
	CHECK_EQ(0, fx.v.word);
	CHECK(!fx.v.yes && fx.v.asked);
	CHECK_STR("flag --word", fx.origins[9]);
	release(&fx);

	LOAD(&fx, "--config=c.yaml", "--count=5");
	CHECK_EQ(5, fx.v.count);
	CHECK_STR("flag --count", fx.origins[5]);
	release(&fx);
}

TEST(what_need_not_be_set_can_be_unset)
{
	struct fixture fx;

	put_file("c.yaml", "a.text: t\nlist: [x]\n");
	LOAD(&fx, "--config", "c.yaml", "--a-text=", "--list=");
	CHECK_EQ(0, fx.faults.n);
	CHECK(!fx.v.text && fx.v.list.n == 0);
	release(&fx);
}

TEST(bounds_are_held)
{
	static const struct {
		const char *flag, *says;
	} cases[] = {
		{ "--count=0", "--count: \"0\": expected a number from 1 to 9" },
		{ "--count=10", "from 1 to 9" },
		{ "--size=1", "--size: expected a size from 1K to 1G, not \"1\"" },
		{ "--size=2G", "from 1K to 1G" },
		{ "--size=x", "\"x\"" },
		{ "--bounded=1us", "--bounded: expected a time from 1ms to 1m, not \"1us\"" },
		{ "--bounded=2m", "from 1ms to 1m" },
		{ "--word=three", "--word: expected one|two, not \"three\"" },
		{ "--list=a,,b", "--list: expected a value" },
		{ "--list=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "at most 16" },
		{ "--count", "--count needs a value: N" },
	};

	EACH(i, cases) {
		struct fixture fx;

		LOAD(&fx, cases[i].flag);
		CHECK_CONTAINS(cases[i].says, fault(&fx));
		release(&fx);
	}
}

/* --- secrets ------------------------------------------------------------------- */

/* */
TEST(a_secret_comes_from_a_file)
{
	struct fixture fx;

	put_file("word", "open sesame\r\n\n");
	setenv("SLUICE_A_SECRET_WORD_FILE", "word", 1);
	LOAD(&fx);
	CHECK_STR("open sesame", fx.v.secret);
	CHECK_STR("env SLUICE_A_SECRET_WORD_FILE", fx.origins[2]);
	release(&fx);

	unsetenv("SLUICE_A_SECRET_WORD_FILE");
	LOAD(&fx, "--a-secret-word-file", "word");
	CHECK_STR("open sesame", fx.v.secret);
	CHECK_STR("flag --a-secret-word-file", fx.origins[2]);
	release(&fx);

	put_file("c.yaml", "a:\n  secret_word_file: word\n");
	LOAD(&fx, "--config", "c.yaml");
	CHECK_STR("open sesame", fx.v.secret);
	CHECK_STR("c.yaml:2", fx.origins[2]);
	release(&fx);

	setenv("SLUICE_A_SECRET_WORD", "as it is", 1);
	LOAD(&fx);
	CHECK_STR("as it is", fx.v.secret);
	release(&fx);
}

TEST(a_secret_that_cannot_be_read_is_named_and_not_shown)
{
	struct fixture fx;

	setenv("SLUICE_A_SECRET_WORD", "sesame", 1);
	setenv("SLUICE_A_SECRET_WORD_FILE", "word", 1);
	LOAD(&fx);
	CHECK_STR("SLUICE_A_SECRET_WORD and SLUICE_A_SECRET_WORD_FILE are both set: keep one",
		  fault(&fx));
	release(&fx);

	unsetenv("SLUICE_A_SECRET_WORD");
	LOAD(&fx);
	CHECK_STR("SLUICE_A_SECRET_WORD_FILE: word: No such file or directory", fault(&fx));
	release(&fx);

	write_file("word", "ses\0ame", 7);
	LOAD(&fx);
	CHECK_CONTAINS("there is a NUL in it", fault(&fx));
	release(&fx);

	unsetenv("SLUICE_A_SECRET_WORD_FILE");
	LOAD(&fx, "--a-secret-word=sesame");
	CHECK_CONTAINS("use --a-secret-word-file", fault(&fx));
	CHECK(!strstr(fault(&fx), "sesame"));
	release(&fx);
}

TEST(only_secrets_come_from_files)
{
	struct fixture fx;

	setenv("SLUICE_A_TEXT_FILE", "c.yaml", 1);
	put_file("c.yaml", "a.text_file: c.yaml\n");
	LOAD(&fx, "--config=c.yaml");
	CHECK_CONTAINS("there is no key a.text_file", fault(&fx));
	CHECK(!fx.v.text);
	release(&fx);
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
	struct fixture fx;

	setenv("SLUICE_A_SECRET_WORD", "sesame", 1);
	LOAD(&fx);
	show_all(&fx.set, out, sizeof out);
	CHECK(!strstr(out, "sesame"));
	CHECK_CONTAINS("a.secret_word: ***", out);
	CHECK_CONTAINS("\"a.secret_word\":{\"value\":\"***\"", out);
	CHECK_CONTAINS("--a-secret-word-file", out);
	CHECK_CONTAINS("SLUICE_A_SECRET_WORD_FILE", out);
	release(&fx);
}

TEST(a_secret_that_is_not_set_is_shown_as_that)
{
	static char out[64 * 1024];
	struct fixture fx;

	LOAD(&fx);
	show_all(&fx.set, out, sizeof out);
	CHECK(!strstr(out, "***"));
	CHECK_CONTAINS("\"a.secret_word\":{\"value\":null", out);
	release(&fx);
}

/* S1: nobody should run with the mask as a password. */
TEST(a_printed_secret_does_not_load)
{
	struct fixture fx;

	put_file("c.yaml", "a.secret_word: ***\n");
	LOAD(&fx, "--config=c.yaml");
	CHECK_CONTAINS("c.yaml:1: ", fault(&fx));
	CHECK(!fx.v.secret);
	release(&fx);
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
	rc = conf_load(&c, 4, argv, &faults);
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
