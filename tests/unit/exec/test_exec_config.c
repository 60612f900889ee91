/* Settings: defaults, the environment, what code sets, what makes no sense. */
#include "exec_help.h"

#include "base/mem.h"
#include "exec/executor.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static struct slu_executor_config
in_force(const struct slu_executor_config *config)
{
	struct slu_executor_config got = { SLU_OPTIONS_INIT(struct slu_executor_config) };
	struct slu_executor *ex;

	CHECK_EQ(0, slu_executor_start(&ex, config, NULL));
	CHECK_EQ(0, slu_executor_config_get(ex, &got, NULL));
	CHECK_EQ(0, slu_executor_close(ex));
	return got;
}

static void
check_defaults(const struct slu_executor_config *c)
{
	CHECK_EQ(4, c->shards);
	CHECK_EQ(128, c->queue_size);
	CHECK_EQ(100 * SLU_MS, c->enqueue_timeout);
	CHECK_EQ(8, c->max_attempts);
	CHECK_EQ(100 * SLU_MS, c->base_backoff);
	CHECK_EQ(20 * SLU_SEC, c->max_interval);
	CHECK_EQ(SLU_BACKOFF_EXPONENTIAL, c->backoff);
	CHECK_EQ(SLU_JITTER_NONE, c->jitter);
	CHECK(c->on_error == NULL);
}

TEST(zeros_take_the_defaults)
{
	const struct slu_executor_config zeros = { SLU_OPTIONS_INIT(struct slu_executor_config) };
	struct slu_executor_config got = in_force(&zeros);

	check_defaults(&got); /* SQ-07 */
	got = in_force(NULL);
	check_defaults(&got); /* SQ-07 */
}

/* --- the environment --- */

static struct slu_executor_config
load(void)
{
	struct slu_executor_config config;
	struct slu_err err;

	memset(&config, 0xff, sizeof config);
	config.struct_size = sizeof config;
	if (slu_executor_config_env(&config, &err))
		test_fail(__FILE__, __LINE__, "%s", err.text);
	return config;
}

TEST(every_variable_sets_its_own_field)
{
	struct slu_executor_config c;

	setenv("SQ_SHARDS", "8", 1);
	setenv("SQ_QUEUE_SIZE", "256", 1);
	setenv("SQ_ENQUEUE_TIMEOUT", "250ms", 1);
	setenv("SQ_MAX_ATTEMPTS", "5", 1);
	setenv("SQ_BASE_BACKOFF", "50ms", 1);
	setenv("SQ_MAX_INTERVAL", "5s", 1);
	c = load();
	CHECK_EQ(8, c.shards);                     /* SQ-43, SQ-50 */
	CHECK_EQ(256, c.queue_size);               /* SQ-44, SQ-50 */
	CHECK_EQ(250 * SLU_MS, c.enqueue_timeout); /* SQ-45, SQ-50 */
	CHECK_EQ(5, c.max_attempts);               /* SQ-46, SQ-50 */
	CHECK_EQ(50 * SLU_MS, c.base_backoff);     /* SQ-47, SQ-50 */
	CHECK_EQ(5 * SLU_SEC, c.max_interval);     /* SQ-48, SQ-50 */
	c = in_force(&c);
	CHECK_EQ(8, c.shards);
	CHECK_EQ(5 * SLU_SEC, c.max_interval);
}

TEST(what_is_not_set_becomes_the_default)
{
	struct slu_executor_config c = load();

	CHECK_EQ(0, c.shards);
	c = in_force(&c);
	check_defaults(&c);
}

TEST(the_loaded_number_of_shards_is_the_number_of_workers)
{
	const int before = count_threads();
	struct slu_executor_config c;
	struct slu_executor *ex;
	char *text;

	setenv("SQ_SHARDS", "8", 1);
	c = load();
	CHECK_EQ(0, slu_executor_start(&ex, &c, NULL));
	CHECK_EQ(before + 8, count_threads()); /* SQ-43: eight workers */
	CHECK_EQ(0, slu_executor_metrics(ex, &text));
	CHECK_CONTAINS("queue_depth{shard=\"0\"}", text); /* SQ-43: shards 0 ... */
	CHECK_CONTAINS("queue_depth{shard=\"7\"}", text); /* SQ-43: ... to 7 */
	CHECK(!strstr(text, "shard=\"8\""));
	slu_free(text);
	CHECK_EQ(0, slu_executor_close(ex));
}

TEST(a_bad_value_is_an_error_that_names_the_variable)
{
	static const struct {
		const char *variable, *value;
	} cases[] = {
		{ "SQ_SHARDS", "many" },
		{ "SQ_SHARDS", "" },
		{ "SQ_SHARDS", "-1" },
		{ "SQ_SHARDS", "65536" },
		{ "SQ_SHARDS", "4x" },
		{ "SQ_QUEUE_SIZE", "1.5" },
		{ "SQ_QUEUE_SIZE", "99999999999999999999" },
		{ "SQ_ENQUEUE_TIMEOUT", "100" },
		{ "SQ_ENQUEUE_TIMEOUT", "-5ms" },
		{ "SQ_MAX_ATTEMPTS", "4294967296" },
		{ "SQ_BASE_BACKOFF", "fast" },
		{ "SQ_MAX_INTERVAL", "20 parsecs" },
	};
	const struct slu_executor_config untouched = { SLU_OPTIONS_INIT(struct slu_executor_config), .shards = 77 };

	EACH(i, cases) {
		struct slu_executor_config c = untouched;
		struct slu_err err;

		setenv(cases[i].variable, cases[i].value, 1);
		CHECK_EQ(SLU_EINVAL, slu_executor_config_env(&c, &err), "SQ-50");
		CHECK_CONTAINS(cases[i].variable, err.text); /* SQ-50 */
		CHECK_EQ(77, c.shards);
		unsetenv(cases[i].variable);
	}
}

static void
ignore_error(const struct slu_run *run, int rc, void *arg)
{
	(void)run;
	(void)rc;
	(void)arg;
}

TEST(the_error_handler_is_set_in_code_alone)
{
	static const char *const tries[] = {
		"SQ_ERROR_HANDLER", "SQ_ERRORHANDLER", "SQ_ON_ERROR"
	};
	struct slu_executor_config c;

	EACH(i, tries)
		setenv(tries[i], "12345", 1);
	c = load();
	CHECK(c.on_error == NULL); /* SQ-49 */
	CHECK(c.on_error_arg == NULL);
	c.on_error = ignore_error;
	c = in_force(&c);
	CHECK(c.on_error == ignore_error); /* SQ-49 */
}

TEST(what_code_sets_after_the_load_wins)
{
	struct slu_executor_config c;

	setenv("SQ_SHARDS", "8", 1);
	setenv("SQ_MAX_ATTEMPTS", "3", 1);
	c = load();
	c.shards = 2;
	c = in_force(&c);
	CHECK_EQ(2, c.shards); /* SQ-51 */
	CHECK_EQ(3, c.max_attempts);
}

TEST(start_alone_does_not_look_at_the_environment)
{
	struct slu_executor_config c;

	setenv("SQ_SHARDS", "9", 1);
	c = in_force(NULL);
	CHECK_EQ(4, c.shards);
}

/* --- the config is copied --- */

TEST(changing_the_struct_after_start_has_no_effect)
{
	char name[] = "mine";
	struct slu_executor_config c = {
		SLU_OPTIONS_INIT(struct slu_executor_config),
		.shards = 1, .max_attempts = 2, .metrics_namespace = name
	};
	static struct probe a = PROBE("a", .fails = -1);
	struct slu_executor_config got = { SLU_OPTIONS_INIT(struct slu_executor_config) };
	char *text;

	rig_start(c);
	CHECK_EQ(0, slu_executor_close(rig.ex));
	CHECK_EQ(0, executor_start_on(&rig.ex, &c, &rig.clock.clock, NULL));
	c.max_attempts = 100;
	c.shards = 50;
	c.backoff = SLU_BACKOFF_NONE;
	c.on_error = ignore_error;
	memcpy(name, "gone", sizeof name);
	CHECK_EQ(0, slu_executor_config_get(rig.ex, &got, NULL));
	CHECK_EQ(2, got.max_attempts); /* SQ-52 */
	CHECK_EQ(1, got.shards);
	CHECK(got.on_error == NULL);
	CHECK_STR("mine", got.metrics_namespace); /* SQ-52: what it points to, too */
	rig_submit("a", &a);
	rig_next_retry();
	CHECK_EQ(1, a.reports); /* SQ-52: after two attempts */
	CHECK_EQ(0, slu_executor_metrics(rig.ex, &text));
	CHECK_CONTAINS("mine_shardqueue_queue_depth", text);
	slu_free(text);
	got.max_attempts = 1; /* what config_get gave is a copy, too */
	CHECK_EQ(0, slu_executor_config_get(rig.ex, &got, NULL));
	CHECK_EQ(2, got.max_attempts);
}

TEST(settings_that_make_no_sense_are_refused)
{
	static const struct {
		const char *label;
		struct slu_executor_config config;
		const char *says;
	} cases[] = {
		{ "too many shards", { .shards = SLU_SHARDS_MAX + 1 }, "invalid shards: 65536" },
		{ "queue too large", { .queue_size = (1u << 28) + 1 }, "queue_size" },
		{ "negative timeout", { .enqueue_timeout = -1 }, "enqueue_timeout" },
		{ "negative backoff", { .base_backoff = -1 }, "base_backoff" },
		{ "negative interval", { .max_interval = -SLU_SEC }, "max_interval" },
		{ "no such policy", { .backoff = (enum slu_backoff_kind)99 }, "backoff 99" },
		{ "no such jitter", { .jitter = (enum slu_jitter)7 }, "jitter 7" },
		{ "function without one", { .backoff = SLU_BACKOFF_FUNCTION }, "backoff_fn" },
		{ "bad namespace", { .metrics_namespace = "no spaces" }, "no spaces" },
		{ "long namespace",
		  { .metrics_namespace = "a_namespace_that_goes_on_and_on_and_on_and_on_and_on" },
		  "too long" },
	};

	EACH(i, cases) {
		struct slu_executor_config config = cases[i].config;
		struct slu_executor *ex = NULL;
		struct slu_err err = { 0 };

		config.struct_size = sizeof config;
		CHECK_EQ(SLU_EINVAL, slu_executor_start(&ex, &config, &err),
			 cases[i].label);
		CHECK_CONTAINS(cases[i].says, err.text);
		CHECK(ex == NULL);
		CHECK_EQ(SLU_EINVAL, slu_executor_start(&ex, &config, NULL));
	}
}

/* --- when the machine has no more to give --- */

TEST(without_threads_start_fails_and_leaves_nothing)
{
	const struct slu_executor_config config = { SLU_OPTIONS_INIT(struct slu_executor_config), .shards = 200, .queue_size = 1 };
	const int before = count_threads();
	struct slu_executor *ex = NULL;
	struct slu_err err = { 0 };
	struct rlimit limit;
	FILE *f;
	unsigned long pages;

	if (SANITIZED)
		test_skip("the sanitizers need the address space");
	f = fopen("/proc/self/statm", "r");
	CHECK(f && fscanf(f, "%lu", &pages) == 1);
	fclose(f);
	getrlimit(RLIMIT_AS, &limit);
	limit.rlim_cur = pages * 4096 + (128 << 20); /* stacks for a few of them */
	setrlimit(RLIMIT_AS, &limit);
	CHECK_EQ(SLU_EDOWN, slu_executor_start(&ex, &config, &err));
	CHECK_CONTAINS("thread", err.text);
	CHECK(ex == NULL);
	WAIT_UNTIL(count_threads() == before);
}

/* One life of an executor. Any of its calls may get no memory. */
TORTURE(out_of_memory_is_an_answer_everywhere)
{
	const struct slu_executor_config config = { SLU_OPTIONS_INIT(struct slu_executor_config), .shards = 2, .queue_size = 70 };
	const struct slu_task task = { SLU_OPTIONS_INIT(struct slu_task), .run = do_nothing };
	const struct slu_task three[] = { task, task, task };
	struct slu_executor *ex;
	struct slu_err err;
	char key[SLU_KEY_MAX + 1], *text = NULL;
	int rc;

	memset(key, 'k', SLU_KEY_MAX);
	key[SLU_KEY_MAX] = 0;
	rc = slu_executor_start(&ex, &config, &err);
	if (rc) {
		CHECK_EQ(SLU_ENOMEM, rc);
		CHECK_EQ(SLU_ENOMEM, err.code);
		return;
	}
	rc = slu_executor_submit(ex, key, &task, NULL, NULL, &err);
	CHECK(rc == 0 || (rc == SLU_ENOMEM && mem_failed()));
	rc = slu_executor_submit_batch(ex, key, three, 3, NULL, NULL, &err);
	CHECK(rc == 0 || (rc == SLU_ENOMEM && mem_failed()));
	rc = slu_executor_await(ex, key, 0, &err);
	CHECK(rc == 0 || (rc == SLU_ENOMEM && mem_failed()));
	rc = slu_executor_metrics(ex, &text);
	CHECK(rc == 0 || (rc == SLU_ENOMEM && mem_failed()));
	slu_free(text);
	CHECK_EQ(0, slu_executor_submit(ex, "short", &task, NULL, NULL, &err));
	CHECK_EQ(0, slu_executor_close(ex));
}
