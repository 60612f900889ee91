#include "test.h"

#include "conf/reload.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* What the log said, and what the parts were asked, in order. */
static struct {
	struct conf conf;
	struct slu_log *log;
	struct reload *reload;
	char said[16384];
	char asked[1024];
	slu_time old, next, now; /* drain, as the last part saw it */
	bool refuse;
	bool refuse_check;
} fx;

static void
listen_to(void *arg, enum slu_log_level level, const char *line, size_t n)
{
	(void)arg;
	(void)level;
	CHECK(strlen(fx.said) + n < sizeof fx.said);
	strncat(fx.said, line, n);
}

static int
prepare(void *arg, const struct conf *old, const struct conf *next, struct slu_err *err)
{
	const char *const name = arg;

	strcat(strcat(fx.asked, "prepare "), name);
	strcat(fx.asked, "; ");
	fx.old = old->drain;
	fx.next = next->drain;
	CHECK_EQ(old->shards, next->shards, "R2");
	if (fx.refuse && strcmp(name, "two") == 0)
		return slu_fail(err, SLU_EINVAL, "I do not like it");
	return 0;
}

static void
commit(void *arg, const struct conf *now)
{
	strcat(strcat(fx.asked, "commit "), arg);
	strcat(fx.asked, "; ");
	fx.now = now->drain;
}

static void
abandon(void *arg)
{
	strcat(strcat(fx.asked, "abandon "), arg);
	strcat(fx.asked, "; ");
}

static int
check(const struct conf *c, struct slu_err *err)
{
	(void)c;
	return fx.refuse_check ? slu_fail(err, SLU_EINVAL, "no such server") : 0;
}

static void
put_file(const char *text)
{
	const int fd = open("c.yaml", O_WRONLY | O_CREAT | O_TRUNC, 0600);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static char *argv[] = { (char *)"sluiced", (char *)"--config=c.yaml", NULL };

static void
start(const char *text)
{
	static const char *const names[] = { "one", "two", "three" };
	struct conf_faults faults = { 0 };

	put_file(text);
	CHECK_EQ(0, conf_load(&fx.conf, engine_rows, 2, argv, &faults));
	fx.log = slu_log_new(SLU_LOG_DEBUG, SLU_LOG_LOGFMT, listen_to, NULL);
	CHECK_EQ(0, reload_open(&fx.reload, &fx.conf, 2, argv, check, fx.log, NULL));
	EACH(i, names)
		reload_add(fx.reload, &(struct reload_part){ names[i], prepare, commit, abandon,
							     (void *)names[i] });
}

static void
stop(void)
{
	reload_close(fx.reload);
	slu_log_free(fx.log);
	conf_release(&fx.conf);
}

FIXTURE(NULL, stop);

static int
reload(const char *text, struct slu_err *err)
{
	put_file(text);
	fx.said[0] = fx.asked[0] = '\0';
	return reload_now(fx.reload, err);
}

TEST(all_prepare_before_any_commits)
{
	start("drain: 1s\n");
	CHECK_EQ(0, reload("drain: 2s\n", NULL));
	CHECK_STR("prepare one; prepare two; prepare three; "
		  "commit one; commit two; commit three; ",
		  fx.asked);
	CHECK_EQ(SLU_SEC, fx.old);
	CHECK_EQ(2 * SLU_SEC, fx.next);
	CHECK_EQ(2 * SLU_SEC, fx.now);
	CHECK_EQ(2 * SLU_SEC, fx.conf.drain);
	CHECK_CONTAINS("key=drain old=1s new=2s from=c.yaml:1", fx.said);
	CHECK_CONTAINS("event=reloaded changed=1", fx.said);
}

TEST(a_quiet_log_hides_no_more_than_lines)
{
	start("drain: 1s\n");
	slu_log_set_level(fx.log, SLU_LOG_OFF);
	CHECK_EQ(0, reload("drain: 2s\n", NULL));
	CHECK_EQ(2 * SLU_SEC, fx.conf.drain);
	CHECK_CONTAINS("commit three", fx.asked);
	CHECK_STR("", fx.said);
}

/* RELOAD-1 */
TEST(one_that_refuses_keeps_the_old_for_all)
{
	struct slu_err err;

	start("drain: 1s\n");
	fx.refuse = true;
	CHECK_EQ(SLU_EINVAL, reload("drain: 2s\n", &err));
	CHECK_STR("two: I do not like it", err.text);
	CHECK_STR("prepare one; prepare two; abandon one; ", fx.asked);
	CHECK_EQ(SLU_SEC, fx.conf.drain);
	CHECK_CONTAINS("reload failed", fx.said);
	CHECK(!strstr(fx.said, "setting changed"));
}

TEST(settings_that_make_no_server_are_refused)
{
	struct slu_err err;

	start("drain: 1s\n");
	fx.refuse_check = true;
	CHECK_EQ(SLU_EINVAL, reload("drain: 2s\n", &err));
	CHECK_STR("no such server", err.text);
	CHECK_STR("", fx.asked);
	CHECK_EQ(SLU_SEC, fx.conf.drain);
}

/* RELOAD-2, RELOAD-4: the text itself stays where it was. */
TEST(what_needs_a_restart_keeps_its_value)
{
	const char *data;

	start("data: /one\nshards: 2\n");
	data = fx.conf.data;
	CHECK_EQ(0, reload("data: /two\nshards: 3\ndrain: 7s\n", NULL));
	CHECK(fx.conf.data == data);
	CHECK_STR("/one", data);
	CHECK_EQ(2, fx.conf.shards);
	CHECK_EQ(7 * SLU_SEC, fx.conf.drain);
	CHECK_CONTAINS("level=warn event=\"setting needs a restart\" key=data old=/one new=/two",
		       fx.said);
}

/* RELOAD-5 */
TEST(parts_are_called_when_nothing_has_changed)
{
	start("drain: 1s\n");
	CHECK_EQ(0, reload("drain: 1s\n", NULL));
	CHECK_CONTAINS("commit three", fx.asked);
	CHECK_CONTAINS("changed=0", fx.said);
}

TEST(faults_are_logged_one_by_one)
{
	struct slu_err err;

	start("drain: 1s\n");
	CHECK_EQ(SLU_EINVAL, reload("drian: 2s\nshards: x\n", &err));
	CHECK_CONTAINS("2 faults, the first: c.yaml:1: unknown key drian", err.text);
	CHECK_CONTAINS("event=\"setting refused\" why=\"c.yaml:1", fx.said);
	CHECK_CONTAINS("event=\"setting refused\" why=\"c.yaml:2", fx.said);
	CHECK_STR("", fx.asked);
}

TEST(one_value_is_set_until_the_next_reload)
{
	struct slu_err err;
	struct buf json;

	start("drain: 1s\nlisten: [a, b]\n");
	CHECK_EQ(0, reload_set(fx.reload, "log.level", "debug", "admin", NULL));
	CHECK_EQ(SLU_LOG_DEBUG, fx.conf.log_level);
	CHECK_EQ(2, fx.conf.listen.n);
	buf_init(&json, CONF_JSON_MAX);
	reload_show(fx.reload, &json);
	CHECK_CONTAINS("\"log.level\":{\"value\":\"debug\",\"from\":\"admin\"", buf_str(&json));
	buf_release(&json);
	CHECK_EQ(SLU_EINVAL, reload_set(fx.reload, "log.level", "loud", "admin", &err));
	CHECK_CONTAINS("log.level: invalid value", err.text);
	CHECK_EQ(SLU_EINVAL, reload_set(fx.reload, "log.levle", "debug", "admin", &err));
	CHECK_CONTAINS("did you mean log.level", err.text);
	CHECK_EQ(SLU_EINVAL, reload_set(fx.reload, "shards", "2", "admin", &err));
	CHECK_STR("shards needs a restart", err.text);
	CHECK_EQ(0, reload("drain: 1s\n", NULL));
	CHECK_EQ(SLU_LOG_INFO, fx.conf.log_level);
}

static void
look(void *arg, const struct conf *now)
{
	struct buf *const json = arg;

	(void)now;
	reload_show(fx.reload, json);
}

/* A network thread may look while a reload waits for the network threads. */
TEST(a_lookup_does_not_wait_for_a_reload)
{
	struct buf json;

	buf_init(&json, CONF_JSON_MAX);
	start("drain: 1s\n");
	reload_add(fx.reload, &(struct reload_part){ "look", NULL, look, NULL, &json });
	CHECK_EQ(0, reload("drain: 2s\n", NULL));
	CHECK_CONTAINS("\"drain\":{\"value\":\"2s\"", buf_str(&json));
	buf_release(&json);
}

TEST(the_line_of_a_setting_moves_with_it)
{
	start("drain: 1s\nshards: 2\n");
	CHECK_EQ(0, reload("\n\nshards: 2\n\ndrain: 1s\n", NULL));
	CHECK_STR("c.yaml:5", conf_origin(&fx.conf, "drain"));
	CHECK_STR("c.yaml:3", conf_origin(&fx.conf, "shards"));
}

TORTURE(a_reload_survives_any_lack_of_memory)
{
	struct conf_faults faults = { 0 };
	struct reload *r = NULL;
	struct conf c;
	int rc;

	put_file("drain: 1s\nshards: 2\n");
	rc = conf_load(&c, engine_rows, 2, argv, &faults);
	if (!rc)
		rc = reload_open(&r, &c, 2, argv, NULL, NULL, NULL);
	if (!rc) {
		put_file("drain: 2s\nshards: 3\nlisten: [x, y]\n");
		rc = reload_now(r, NULL);
		CHECK_EQ(rc ? SLU_SEC : 2 * SLU_SEC, c.drain);
		CHECK_EQ(2, c.shards);
		CHECK_EQ(1, c.listen.n);
	}
	reload_close(r);
	faults_release(&faults);
	conf_release(&c);
}
