/*
 * NULL and nonsense are SLU_EINVAL, in every function of libsluice: one row a call.
 * tests/tools/test_examples.py sees to it that no function is missing. What has no code to
 * return does nothing, or answers as its header says.
 */
#include "test.h"

#include <sluice/batch.h>
#include <sluice/executor.h>
#include <sluice/policy.h>
#include <sluice/schedule.h>
#include <sluice/sluice.h>
#include <sluice/worker.h>

#include <sys/wait.h>
#include <unistd.h>

#define OPTIONS(tag, ...) (&(struct slu_##tag){ SLU_OPTIONS_INIT(struct slu_##tag), ##__VA_ARGS__ })

/* A call that has an err: it says why. */
#define REFUSED(call)                                               \
	do {                                                        \
		err.text[0] = 0;                                    \
		CHECK_EQ(SLU_EINVAL, (call), #call);                \
		if (!err.text[0])                                   \
			test_fail(__FILE__, __LINE__, "%s", #call); \
	} while (0)

#define REFUSED_SILENTLY(call) CHECK_EQ(SLU_EINVAL, (call), #call)

static struct slu_err err;

static int
run(struct slu_run *r, void *arg)
{
	(void)r;
	(void)arg;
	return 0;
}

static int
handle(const struct slu_job_item *job, void *session, void *arg, struct slu_err *why)
{
	(void)job;
	(void)session;
	(void)arg;
	(void)why;
	return 0;
}

TEST(the_broker_refuses_nonsense)
{
	struct slu_put put = { SLU_OPTIONS_INIT(struct slu_put), .payload = "x", .size = 1 };
	struct slu_queue_stats stats;
	struct slu_message m = { 0 };
	struct slu_broker *b;
	void *result;
	size_t n;

	CHECK_EQ(0, slu_open(&b, NULL, NULL, &err));
	REFUSED(slu_open(NULL, NULL, NULL, &err));
	REFUSED(slu_open(&(struct slu_broker *){ NULL }, NULL, OPTIONS(open_config, .sync_interval = -1), &err));
	REFUSED(slu_open(&(struct slu_broker *){ NULL }, NULL, OPTIONS(open_config, .durability = 7), &err));
	REFUSED(slu_open(&(struct slu_broker *){ NULL }, NULL, OPTIONS(open_config, .node = 5000), &err));
	REFUSED(slu_open(&(struct slu_broker *){ NULL }, NULL, &(struct slu_open_config){ 0 }, &err));
	REFUSED(slu_enqueue(NULL, "q", &put, 1, &err));
	REFUSED(slu_enqueue(b, NULL, &put, 1, &err));
	REFUSED(slu_enqueue(b, "q", NULL, 1, &err));
	REFUSED(slu_enqueue(b, "q", &put, 0, &err));
	REFUSED(slu_enqueue(b, "q", OPTIONS(put, .size = 1), 1, &err));
	REFUSED(slu_enqueue(b, "q", OPTIONS(put, .delay = -1), 1, &err));
	REFUSED(slu_enqueue(b, "q", OPTIONS(put, .due = -1), 1, &err));
	REFUSED(slu_enqueue(b, "q", OPTIONS(put, .ttl = -1), 1, &err));
	REFUSED(slu_enqueue(b, "q", OPTIONS(put, .keep_result = -1), 1, &err));
	REFUSED(slu_enqueue(b, "q", &(struct slu_put){ .payload = "x", .size = 1 }, 1, &err));
	REFUSED(slu_claim(NULL, "q", NULL, &m, 1, &n, &err));
	REFUSED(slu_claim(b, NULL, NULL, &m, 1, &n, &err));
	REFUSED(slu_claim(b, "q", NULL, NULL, 1, &n, &err));
	REFUSED(slu_claim(b, "q", NULL, &m, 0, &n, &err));
	REFUSED(slu_claim(b, "q", NULL, &m, 1, NULL, &err));
	REFUSED(slu_claim(b, "q", OPTIONS(claim_options, .lease = -1), &m, 1, &n, &err));
	REFUSED(slu_claim(b, "q", OPTIONS(claim_options, .lease = SLU_NEVER), &m, 1, &n, &err));
	REFUSED(slu_claim(b, "q", OPTIONS(claim_options, .wait = -1), &m, 1, &n, &err));
	REFUSED(slu_ack(NULL, &m, NULL, 0, &err));
	REFUSED(slu_ack(b, NULL, NULL, 0, &err));
	REFUSED(slu_ack(b, &m, NULL, 1, &err));
	REFUSED(slu_nack(NULL, &m, NULL, &err));
	REFUSED(slu_nack(b, NULL, NULL, &err));
	REFUSED(slu_nack(b, &m, OPTIONS(nack_options, .has_delay = true, .delay = -1), &err));
	REFUSED(slu_extend(NULL, &m, 0, &err));
	REFUSED(slu_extend(b, NULL, 0, &err));
	REFUSED(slu_extend(b, &m, -1, &err));
	REFUSED(slu_extend(b, &m, SLU_NEVER, &err));
	REFUSED(slu_read(NULL, &m, 0, NULL, 0, &err));
	REFUSED(slu_read(b, NULL, 0, NULL, 0, &err));
	REFUSED(slu_watch(NULL, "q", 0, &err));
	REFUSED(slu_watch(b, NULL, 0, &err));
	REFUSED(slu_watch(b, "q", -1, &err));
	REFUSED(slu_result(NULL, "q", 1, 0, &result, &n, &err));
	REFUSED(slu_result(b, NULL, 1, 0, &result, &n, &err));
	REFUSED(slu_result(b, "q", 1, -1, &result, &n, &err));
	REFUSED(slu_result(b, "q", 1, 0, NULL, &n, &err));
	REFUSED(slu_result(b, "q", 1, 0, &result, NULL, &err));
	REFUSED(slu_stats(NULL, "q", &stats, &err));
	REFUSED(slu_stats(b, NULL, &stats, &err));
	REFUSED(slu_stats(b, "q", NULL, &err));
	REFUSED(slu_stop(NULL, &err));
	slu_message_release(NULL);
	slu_close(b);
	slu_close(NULL);
}

TEST(a_checkpoint_of_nothing_is_refused)
{
	struct slu_message m = { 0 };
	struct slu_broker *b;

	CHECK_EQ(0, slu_open(&b, NULL, NULL, &err));
	REFUSED(slu_checkpoint(NULL, &m, 0, "1", &err));
	REFUSED(slu_checkpoint(b, NULL, 0, "1", &err));
	REFUSED(slu_checkpoint(b, &m, 0, NULL, &err));
	REFUSED(slu_checkpoint(b, &m, -1, "1", &err));
	slu_close(b);
}

TEST(the_broker_refuses_nonsense_about_a_message)
{
	struct slu_why_answer why;
	struct slu_broker *b;

	CHECK_EQ(0, slu_open(&b, NULL, NULL, &err));
	REFUSED(slu_why(NULL, "q", 1, &why, &err));
	REFUSED(slu_why(b, NULL, 1, &why, &err));
	REFUSED(slu_why(b, "q", 1, NULL, &err));
	slu_close(b);
}

TEST(the_broker_refuses_nonsense_about_a_queue)
{
	struct slu_message m = { 0 };
	struct slu_use use;
	struct slu_broker *b;
	size_t n;

	CHECK_EQ(0, slu_open(&b, NULL, NULL, &err));
	REFUSED(slu_policy_set(NULL, "q", OPTIONS(policy), &err));
	REFUSED(slu_policy_set(b, NULL, OPTIONS(policy), &err));
	REFUSED(slu_policy_set(b, "q", NULL, &err));
	REFUSED(slu_policy_set(b, "q", &(struct slu_policy){ 0 }, &err));
	REFUSED(slu_policy_get(NULL, "q", OPTIONS(policy), &err));
	REFUSED(slu_policy_get(b, NULL, OPTIONS(policy), &err));
	REFUSED(slu_policy_get(b, "q", NULL, &err));
	REFUSED(slu_policy_get(b, "q", &(struct slu_policy){ 0 }, &err));
	REFUSED(slu_hold(NULL, "q", OPTIONS(hold_options), &err));
	REFUSED(slu_hold(b, NULL, OPTIONS(hold_options), &err));
	REFUSED(slu_hold(b, "q", NULL, &err));
	REFUSED(slu_hold(b, "q", OPTIONS(hold_options, .hold = -1), &err));
	REFUSED(slu_hold(b, "q", OPTIONS(hold_options, .scope = "key"), &err));
	REFUSED(slu_hold(b, "q", OPTIONS(hold_options, .name = "x"), &err));
	REFUSED(slu_limits(NULL, "q", NULL, &use, 1, &n, &err));
	REFUSED(slu_limits(b, NULL, NULL, &use, 1, &n, &err));
	REFUSED(slu_limits(b, "q", NULL, NULL, 1, &n, &err));
	REFUSED(slu_limits(b, "q", NULL, &use, 0, &n, &err));
	REFUSED(slu_limits(b, "q", NULL, &use, 1, NULL, &err));
	REFUSED(slu_finish(NULL, &m, NULL, &err));
	REFUSED(slu_finish(b, NULL, NULL, &err));
	REFUSED(slu_finish(b, &m, OPTIONS(finish_options, .n = 1), &err));
	REFUSED(slu_finish(b, &m, OPTIONS(finish_options, .result_size = 1), &err));
	slu_close(b);
}

TEST(the_broker_refuses_nonsense_about_schedules_and_batches)
{
	struct slu_schedule_info info;
	struct slu_broker *b;
	struct slu_batch batch;
	uint64_t id = 0;
	size_t n;

	CHECK_EQ(0, slu_open(&b, NULL, NULL, &err));
	REFUSED(slu_schedule_set(NULL, OPTIONS(schedule), &err));
	REFUSED(slu_schedule_set(b, NULL, &err));
	REFUSED(slu_schedule_set(b, OPTIONS(schedule), &err));
	REFUSED(slu_schedule_get(NULL, "s", &info, &err));
	REFUSED(slu_schedule_get(b, NULL, &info, &err));
	REFUSED(slu_schedule_get(b, "s", NULL, &err));
	REFUSED(slu_schedule_list(NULL, &id, &info, 1, &n, &err));
	REFUSED(slu_schedule_list(b, NULL, &info, 1, &n, &err));
	REFUSED(slu_schedule_list(b, &id, NULL, 1, &n, &err));
	REFUSED(slu_schedule_list(b, &id, &info, 0, &n, &err));
	REFUSED(slu_schedule_list(b, &id, &info, 1, NULL, &err));
	REFUSED(slu_schedule_pause(NULL, "s", true, &err));
	REFUSED(slu_schedule_pause(b, NULL, true, &err));
	REFUSED(slu_schedule_delete(NULL, "s", &err));
	REFUSED(slu_schedule_delete(b, NULL, &err));
	REFUSED(slu_schedule_run(NULL, "s", NULL, &err));
	REFUSED(slu_schedule_run(b, NULL, NULL, &err));
	REFUSED(slu_batch_create(NULL, NULL, &id, &err));
	REFUSED(slu_batch_create(b, NULL, NULL, &err));
	REFUSED(slu_batch_create(b, OPTIONS(batch_options, .timeout = -1), &id, &err));
	REFUSED(slu_batch_close(NULL, 1, &err));
	REFUSED(slu_batch_get(NULL, 1, &batch, &err));
	REFUSED(slu_batch_get(b, 1, NULL, &err));
	slu_close(b);
}

TEST(the_executor_refuses_nonsense)
{
	struct slu_task task = { SLU_OPTIONS_INIT(struct slu_task), .run = run };
	struct slu_executor_config config = { SLU_OPTIONS_INIT(struct slu_executor_config) };
	struct slu_executor_stats stats;
	struct slu_task_status status;
	struct slu_executor *ex;
	char *text;

	CHECK_EQ(0, slu_executor_start(&ex, NULL, &err));
	REFUSED(slu_executor_start(NULL, NULL, &err));
	REFUSED(slu_executor_start(&(struct slu_executor *){ NULL }, OPTIONS(executor_config, .enqueue_timeout = -1), &err));
	REFUSED(slu_executor_config_env(NULL, &err));
	REFUSED(slu_executor_config_env(&(struct slu_executor_config){ 0 }, &err));
	REFUSED(slu_executor_config_get(NULL, &config, &err));
	REFUSED(slu_executor_config_get(ex, NULL, &err));
	REFUSED(slu_executor_submit(NULL, "k", &task, NULL, NULL, &err));
	REFUSED(slu_executor_submit(ex, NULL, &task, NULL, NULL, &err));
	REFUSED(slu_executor_submit(ex, "k", NULL, NULL, NULL, &err));
	REFUSED(slu_executor_submit(ex, "k", OPTIONS(task), NULL, NULL, &err));
	REFUSED(slu_executor_submit(ex, "k", &(struct slu_task){ .run = run }, NULL, NULL, &err));
	REFUSED(slu_executor_submit(ex, "k", &task, OPTIONS(submit, .timeout = -2), NULL, &err));
	REFUSED(slu_executor_submit(ex, "k", &task, OPTIONS(submit, .expire = -1), NULL, &err));
	REFUSED(slu_executor_submit_batch(NULL, "k", &task, 1, NULL, NULL, &err));
	REFUSED(slu_executor_submit_batch(ex, "k", NULL, 1, NULL, NULL, &err));
	REFUSED(slu_executor_submit_batch(ex, "k", &task, 0, NULL, NULL, &err));
	REFUSED(slu_executor_await(NULL, "k", 0, &err));
	REFUSED(slu_executor_await(ex, NULL, 0, &err));
	REFUSED(slu_executor_await(ex, "k", -1, &err));
	REFUSED_SILENTLY(slu_executor_status(NULL, 1, &status));
	REFUSED_SILENTLY(slu_executor_status(ex, 1, NULL));
	REFUSED_SILENTLY(slu_executor_snapshot(NULL, 0, &stats));
	REFUSED_SILENTLY(slu_executor_snapshot(ex, 0, NULL));
	REFUSED_SILENTLY(slu_executor_snapshot(ex, 99, &stats));
	REFUSED_SILENTLY(slu_executor_metrics(NULL, &text));
	REFUSED_SILENTLY(slu_executor_metrics(ex, NULL));
	REFUSED_SILENTLY(slu_executor_stop(NULL, 0));
	REFUSED_SILENTLY(slu_executor_stop(ex, -2));
	CHECK_EQ(SLU_ALL_SHARDS, slu_executor_shard_of(NULL, "k"));
	CHECK_EQ(SLU_ALL_SHARDS, slu_executor_shard_of(ex, NULL));
	CHECK_EQ(0, slu_executor_close(ex));
	CHECK_EQ(0, slu_executor_close(NULL));
}

TEST(the_queue_and_its_worker_refuse_nonsense)
{
	struct slu_worker_config config = { SLU_OPTIONS_INIT(struct slu_worker_config), .handler = handle };
	struct slu_pqueue_stats stats;
	struct slu_worker_stats counts;
	struct slu_failure failure;
	struct slu_job_item item;
	struct slu_worker *w;
	struct slu_pqueue *q;
	char *text;

	CHECK_EQ(0, slu_pqueue_new(&q, NULL, &err));
	config.queue = q;
	CHECK_EQ(0, slu_worker_new(&w, &config, &err));
	REFUSED(slu_pqueue_new(NULL, NULL, &err));
	REFUSED(slu_pqueue_new(&(struct slu_pqueue *){ NULL }, OPTIONS(pqueue_config, .max_wait = -1), &err));
	REFUSED(slu_pqueue_enqueue(NULL, OPTIONS(job), NULL, &err));
	REFUSED(slu_pqueue_enqueue(q, NULL, NULL, &err));
	REFUSED(slu_pqueue_enqueue(q, &(struct slu_job){ 0 }, NULL, &err));
	REFUSED(slu_pqueue_enqueue(q, OPTIONS(job, .delay = -1), NULL, &err));
	REFUSED_SILENTLY(slu_pqueue_dequeue(NULL, 0, &item));
	REFUSED_SILENTLY(slu_pqueue_dequeue(q, 0, NULL));
	REFUSED_SILENTLY(slu_pqueue_dequeue(q, -1, &item));
	REFUSED_SILENTLY(slu_pqueue_stop(NULL, SLU_STOP_NOW, 0));
	REFUSED_SILENTLY(slu_pqueue_stop(q, (enum slu_stop_mode)9, 0));
	REFUSED_SILENTLY(slu_pqueue_stop(q, SLU_STOP_NOW, -2));
	REFUSED_SILENTLY(slu_pqueue_metrics(NULL, &text));
	REFUSED_SILENTLY(slu_pqueue_metrics(q, NULL));
	REFUSED(slu_worker_new(NULL, &config, &err));
	REFUSED(slu_worker_new(&(struct slu_worker *){ NULL }, NULL, &err));
	REFUSED(slu_worker_new(&(struct slu_worker *){ NULL }, OPTIONS(worker_config, .queue = q), &err));
	REFUSED(slu_worker_new(&(struct slu_worker *){ NULL }, OPTIONS(worker_config, .handler = handle), &err));
	REFUSED(slu_worker_start(NULL, &err));
	REFUSED_SILENTLY(slu_worker_stop(NULL, SLU_STOP_NOW, 0));
	REFUSED_SILENTLY(slu_worker_stop(w, (enum slu_stop_mode)9, 0));
	REFUSED_SILENTLY(slu_worker_stop(w, SLU_STOP_NOW, -2));
	REFUSED_SILENTLY(slu_worker_metrics(NULL, &text));
	REFUSED_SILENTLY(slu_worker_metrics(w, NULL));
	slu_pqueue_snapshot(NULL, &stats);
	slu_pqueue_snapshot(q, NULL);
	CHECK_EQ(0, slu_pqueue_peek(NULL, &item, 1));
	CHECK_EQ(0, slu_pqueue_peek(q, NULL, 1));
	CHECK_EQ(0, slu_pqueue_purge(NULL, NULL));
	CHECK_EQ(0, slu_worker_failures(NULL, &failure, 1));
	CHECK_EQ(0, slu_worker_failures(w, NULL, 1));
	slu_worker_snapshot(NULL, &counts);
	slu_worker_snapshot(w, NULL);
	REFUSED_SILENTLY(slu_job_defer(SLU_SEC)); /* there is no job here */
	slu_worker_free(w);
	slu_worker_free(NULL);
	slu_pqueue_free(q, NULL);
	slu_pqueue_free(NULL, NULL);
}

TEST(the_rest_refuses_nonsense)
{
	struct slu_breakers *set;
	slu_time again;
	char *text;

	CHECK_EQ(0, slu_breakers_new(&set, NULL, &err));
	REFUSED(slu_breakers_new(NULL, NULL, &err));
	REFUSED(slu_breakers_new(&(struct slu_breakers *){ NULL }, OPTIONS(breaker_config, .open_cooldown = -1), &err));
	CHECK(!slu_breaker_get(NULL, "a"));
	CHECK(!slu_breaker_get(set, NULL));
	REFUSED_SILENTLY(slu_breaker_allow(NULL, &again));
	slu_breaker_report(NULL, true);
	CHECK_EQ(SLU_BREAKER_CLOSED, slu_breaker_state(NULL));
	REFUSED_SILENTLY(slu_breakers_metrics(NULL, &text));
	REFUSED_SILENTLY(slu_breakers_metrics(set, NULL));
	slu_breakers_free(set);
	slu_breakers_free(NULL);
	REFUSED(slu_guard(NULL, NULL, &err));
	slu_cancel_fire(NULL, "x");
	CHECK(!slu_cancel_fired(NULL));
	slu_cancel_free(NULL);
	slu_cancel_free(slu_cancel_new());
	slu_log_set_level(NULL, SLU_LOG_OFF);
	slu_log_free(NULL);
	slu_free(NULL);
}

/* In the child: each call fails and says why, each end returns. */
static int
try_in_child(struct slu_executor *ex, struct slu_pqueue *q, struct slu_worker *w,
	     struct slu_broker *b)
{
	const struct slu_task task = { SLU_OPTIONS_INIT(struct slu_task), .run = run };
	struct slu_put put = { SLU_OPTIONS_INIT(struct slu_put) };
	int failed = 0;

	failed |= slu_executor_submit(ex, "k", &task, NULL, NULL, &err) != SLU_EINVAL;
	failed |= strstr(err.text, "fork()") == NULL;
	failed |= slu_executor_await(ex, "k", 0, &err) != SLU_EINVAL;
	failed |= slu_executor_stop(ex, 0) != SLU_EINVAL;
	failed |= slu_executor_close(ex) != 0;
	failed |= slu_worker_stop(w, SLU_STOP_READY, 0) != SLU_EINVAL;
	slu_worker_free(w);
	failed |= slu_pqueue_stop(q, SLU_STOP_ALL, 0) != SLU_EINVAL;
	slu_pqueue_free(q, NULL);
	failed |= slu_enqueue(b, "q", &put, 1, &err) != SLU_EINVAL;
	failed |= strstr(err.text, "fork()") == NULL;
	slu_close(b);
	failed |= slu_executor_start(&ex, NULL, &err) != 0; /* its own */
	failed |= slu_executor_submit(ex, "k", &task, NULL, NULL, &err) != 0;
	failed |= slu_executor_close(ex) != 0;
	return failed;
}

TEST(after_a_fork_the_child_is_refused_and_the_parent_goes_on)
{
	struct slu_worker_config config = { SLU_OPTIONS_INIT(struct slu_worker_config), .handler = handle };
	struct slu_put put = { SLU_OPTIONS_INIT(struct slu_put) };
	struct slu_executor *ex;
	struct slu_broker *b;
	struct slu_worker *w;
	int status = -1;
	pid_t pid;

#ifdef __SANITIZE_ADDRESS__
	test_skip("the allocator of the address sanitizer may be locked for ever in a child of a process with threads");
#endif
	CHECK_EQ(0, slu_executor_start(&ex, NULL, &err));
	CHECK_EQ(0, slu_pqueue_new(&config.queue, NULL, &err));
	CHECK_EQ(0, slu_worker_new(&w, &config, &err));
	CHECK_EQ(0, slu_worker_start(w, &err));
	CHECK_EQ(0, slu_open(&b, "folder", NULL, &err));
	pid = fork();
	if (pid == 0)
		_exit(try_in_child(ex, config.queue, w, b));
	CHECK_EQ(pid, waitpid(pid, &status, 0));
	CHECK_EQ(0, status);
	CHECK_EQ(0, slu_enqueue(b, "q", &put, 1, &err));
	slu_close(b);
	CHECK_EQ(0, slu_worker_stop(w, SLU_STOP_NOW, 0));
	slu_worker_free(w);
	slu_pqueue_free(config.queue, NULL);
	CHECK_EQ(0, slu_executor_close(ex));
}
