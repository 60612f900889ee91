#include "exec_help.h"

#include "base/log.h"
#include "exec/executor.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

struct exec_rig rig;

/* What no longer fits is left out. */
static void
append(char *to, size_t size, const char *between, const char *text)
{
	size_t used;

	pthread_mutex_lock(&rig.mtx);
	used = strlen(to);
	(void)snprintf(to + used, size - used, "%s%s", used ? between : "", text);
	pthread_mutex_unlock(&rig.mtx);
}

static void
keep_line(void *arg, enum slu_log_level level, const char *line, size_t n)
{
	(void)arg;
	(void)level;
	(void)n;
	append(rig.lines, sizeof rig.lines, "", line);
}

static void
note_error(const struct slu_run *run, int rc, void *arg)
{
	(void)arg;
	pthread_mutex_lock(&rig.mtx);
	rig.told = (struct told){
		.shard = run->shard,
		.id = run->id,
		.attempt = run->attempt,
		.rc = rc,
		.err = run->err,
	};
	memcpy(rig.told.key, run->key, strlen(run->key) + 1);
	pthread_mutex_unlock(&rig.mtx);
	atomic_fetch_add(&rig.errors, 1);
}

/* --- a clock that counts how often it is read --- */

static _Thread_local bool looks_are_counted;

void
rig_count_looks(void)
{
	looks_are_counted = true;
}

static slu_time
count_mono(struct clock *c)
{
	const slu_time now = rig.clock_ops->mono(c);

	if (looks_are_counted)
		atomic_fetch_add(&rig.looks, 1);
	return now;
}

static slu_time
count_wall(struct clock *c)
{
	return rig.clock_ops->wall(c);
}

static void
count_wait(struct clock *c, pthread_cond_t *cond, pthread_mutex_t *mtx, slu_time until)
{
	rig.clock_ops->wait(c, cond, mtx, until);
}

static const struct clock_ops count_ops = {
	.mono = count_mono,
	.wall = count_wall,
	.wait = count_wait,
};

/* --- begin and end --- */

void
rig_start(struct slu_executor_config config)
{
	struct slu_err err = { 0 };

	rig_release();
	memset(&rig, 0, sizeof rig);
	pthread_mutex_init(&rig.mtx, NULL);
	fakeclock_init(&rig.clock, 1000 * SLU_SEC, 1700000000 * SLU_SEC);
	rig.clock_ops = rig.clock.clock.ops;
	rig.clock.clock.ops = &count_ops;
	rig.log = slu_log_new(SLU_LOG_DEBUG, SLU_LOG_LOGFMT, keep_line, NULL);
	log_set_clock(rig.log, &rig.clock.clock);
	config.struct_size = sizeof config;
	config.log = rig.log;
	if (!config.on_error)
		config.on_error = note_error;
	if (executor_start_on(&rig.ex, &config, &rig.clock.clock, &err))
		test_fail(__FILE__, __LINE__, "start: %s", err.text);
	rig.shards = rig_stats().shards;
}

void
rig_begin(void)
{
	rig_start((struct slu_executor_config){ .shards = 1 });
}

void
rig_release(void)
{
	struct slu_executor_stats s;

	if (!rig.ex)
		return;
	rig_open_gate();
	CHECK_EQ(0, slu_executor_stop(rig.ex, 0));
	s = rig_stats();
	CHECK_EQ(s.submitted, s.finished);
	CHECK_EQ(0, s.queued + s.waiting + s.running);
	CHECK_EQ(0, rig.late);
	CHECK_EQ(0, slu_executor_close(rig.ex));
	slu_log_free(rig.log);
	fakeclock_release(&rig.clock);
	pthread_mutex_destroy(&rig.mtx);
	rig.ex = NULL;
}

/* --- tasks --------------------------------------------------------------------- */

static void
note_entry(void)
{
	const int inside = atomic_fetch_add(&rig.inside, 1) + 1;
	int most = atomic_load(&rig.most);

	while (inside > most && !atomic_compare_exchange_weak(&rig.most, &most, inside))
		continue;
	atomic_fetch_add(&rig.runs, 1);
}

static int
fail_as_told(const struct probe *p, struct slu_err *err)
{
	const int rc = p->rc ? p->rc : SLU_EFAILED;

	if (p->panic)
		slu_panic("%s", p->panic);
	return p->text ? slu_fail(err, (enum slu_code)rc, "%s", p->text) : rc;
}

static int
run_probe(struct slu_run *run, void *arg)
{
	struct probe *p = arg;
	const int n = atomic_fetch_add(&p->runs, 1) + 1;

	note_entry();
	atomic_fetch_add(&rig.late, atomic_load(&p->reports) > 0);
	atomic_store(&p->id, run->id);
	append(rig.trace, sizeof rig.trace, " ", p->name);
	if (p->waits)
		WAIT_UNTIL(atomic_load(&rig.gate));
	atomic_fetch_sub(&rig.inside, 1);
	return p->fails < 0 || n <= p->fails ? fail_as_told(p, &run->err) : 0;
}

static void
end_probe(const struct slu_run *run, void *arg, int rc)
{
	struct probe *p = arg;
	char text[64];

	(void)snprintf(text, sizeof text, "%s:%s", p->name, slu_err_row(rc)->flat_name);
	append(rig.ends, sizeof rig.ends, " ", text);
	atomic_store(&p->result, rc);
	atomic_store(&p->attempt, run->attempt);
	atomic_store(&p->id, run->id);
	atomic_fetch_add(&p->reports, 1);
	atomic_fetch_add(&rig.reports, 1);
}

struct slu_task
rig_task(struct probe *p)
{
	return (struct slu_task){ SLU_OPTIONS_INIT(struct slu_task), run_probe, p, end_probe };
}

int
rig_try(const char *key, struct probe *p, const struct slu_submit *opts,
	struct slu_err *err)
{
	const struct slu_task task = rig_task(p);

	return slu_executor_submit(rig.ex, key, &task, opts, NULL, err);
}

uint64_t
rig_submit(const char *key, struct probe *p)
{
	const struct slu_task task = rig_task(p);
	uint64_t id = 0;

	CHECK_EQ(0, slu_executor_submit(rig.ex, key, &task, NULL, &id, NULL));
	return id;
}

static void *
run_submitter(void *arg)
{
	struct room_waiter *s = arg;

	rig_count_looks();
	atomic_store(&s->rc, rig_try("a", s->probe, &s->opts, &s->err));
	return NULL;
}

void
rig_wait_for_room(struct room_waiter *s, struct probe *p, struct slu_submit opts)
{
	opts.struct_size = sizeof opts;
	*s = (struct room_waiter){ .probe = p, .opts = opts, .rc = -1 };
	CHECK_EQ(0, pthread_create(&s->thread, NULL, run_submitter, s));
}

int
do_nothing(struct slu_run *run, void *arg)
{
	(void)run;
	(void)arg;
	return 0;
}

void
rig_block(const char *key, struct probe *p)
{
	p->waits = true;
	rig_submit(key, p);
	WAIT_UNTIL(atomic_load(&p->runs) == 1);
}

void
rig_open_gate(void)
{
	atomic_store(&rig.gate, true);
}

/* --- time ------------------------------------------------------------------------ */

/* A worker that was signalled counts as a sleeper until it runs: then something is still
 * queued. */
static bool
is_settled(void)
{
	const struct slu_executor_stats s = rig_stats();

	return s.queued == 0 && s.running == 0 &&
	       fakeclock_sleepers(&rig.clock) == (int)rig.shards;
}

void
rig_settle(void)
{
	WAIT_UNTIL(is_settled());
}

slu_time
rig_wait(void)
{
	return fakeclock_until(&rig.clock) - clock_mono(&rig.clock.clock);
}

void
rig_next_retry(void)
{
	rig_settle();
	CHECK(fakeclock_until(&rig.clock) != SLU_NEVER);
	fakeclock_advance(&rig.clock, rig_wait());
	rig_settle();
}

/* --- what happened ---------------------------------------------------------------- */

static const char *
show(const char *text)
{
	pthread_mutex_lock(&rig.mtx);
	memcpy(rig.shown, text, strlen(text) + 1);
	pthread_mutex_unlock(&rig.mtx);
	return rig.shown;
}

const char *
rig_trace(void)
{
	return show(rig.trace);
}

const char *
rig_ends(void)
{
	return show(rig.ends);
}

const char *
rig_lines(void)
{
	return show(rig.lines);
}

int
rig_count_lines(const char *part)
{
	int n = 0;

	for (const char *at = strstr(rig_lines(), part); at; at = strstr(at + 1, part))
		n++;
	return n;
}

struct told
rig_told(void)
{
	struct told told;

	pthread_mutex_lock(&rig.mtx);
	told = rig.told;
	pthread_mutex_unlock(&rig.mtx);
	return told;
}

struct slu_executor_stats
rig_stats(void)
{
	struct slu_executor_stats s;

	CHECK_EQ(0, slu_executor_snapshot(rig.ex, SLU_ALL_SHARDS, &s));
	return s;
}

struct slu_task_status
rig_status(uint64_t id)
{
	struct slu_task_status status;

	CHECK_EQ(0, slu_executor_status(rig.ex, id, &status));
	return status;
}

const char *
rig_key(const struct slu_executor *ex, uint32_t shard, int n, char *buf)
{
	for (int i = 0;; i++) {
		(void)snprintf(buf, 32, "key-%d", i);
		if (slu_executor_shard_of(ex, buf) == shard && n-- == 0)
			return buf;
	}
}

uint64_t
submit_fn(struct slu_executor *ex, const char *key, slu_task_fn *run, void *arg)
{
	const struct slu_task task = { SLU_OPTIONS_INIT(struct slu_task), .run = run, .arg = arg };
	const struct slu_submit patient = { SLU_OPTIONS_INIT(struct slu_submit), .timeout = SLU_NEVER };
	uint64_t id = 0;

	CHECK_EQ(0, slu_executor_submit(ex, key, &task, &patient, &id, NULL));
	return id;
}

/* --- the process ------------------------------------------------------------------ */

static void *
tell_tid(void *arg)
{
	*(pid_t *)arg = gettid();
	return NULL;
}

/* The thread sanitizer starts a thread of its own with the first of ours: have that
 * behind us. A thread that was joined may still be listed for a moment. */
static void
start_helpers(void)
{
	char path[64];
	pthread_t thread;
	pid_t tid;

	CHECK_EQ(0, pthread_create(&thread, NULL, tell_tid, &tid));
	pthread_join(thread, NULL);
	(void)snprintf(path, sizeof path, "/proc/self/task/%d", (int)tid);
	WAIT_UNTIL(access(path, F_OK) != 0);
}

int
count_threads(void)
{
	static bool counted_before;
	int n = 0;
	DIR *d;

	if (!counted_before)
		start_helpers();
	counted_before = true;
	d = opendir("/proc/self/task");
	CHECK(d != NULL);
	for (const struct dirent *e = readdir(d); e; e = readdir(d))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

size_t
resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	CHECK(f != NULL);
	CHECK_EQ(1, fscanf(f, "%*u %lu", &pages));
	fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}
