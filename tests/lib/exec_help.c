#include "exec_help.h"

#include "base/log.h"
#include "exec/executor.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

/* What no longer fits is left out. */
static void
append(struct rig *r, char *to, size_t size, const char *between, const char *text)
{
	size_t used;

	pthread_mutex_lock(&r->mtx);
	used = strlen(to);
	(void)snprintf(to + used, size - used, "%s%s", used ? between : "", text);
	pthread_mutex_unlock(&r->mtx);
}

static void
keep_line(void *arg, enum slu_log_level level, const char *line, size_t n)
{
	struct rig *r = arg;

	(void)level;
	(void)n;
	append(r, r->lines, sizeof r->lines, "", line);
}

static void
note_error(const struct slu_run *run, int rc, void *arg)
{
	struct rig *r = arg;

	pthread_mutex_lock(&r->mtx);
	r->told = (struct told){
		.shard = run->shard,
		.id = run->id,
		.attempt = run->attempt,
		.rc = rc,
		.err = run->err,
	};
	memcpy(r->told.key, run->key, strlen(run->key) + 1);
	pthread_mutex_unlock(&r->mtx);
	atomic_fetch_add(&r->errors, 1);
}

/* --- a clock that counts who looks at it --- */

static _Thread_local bool looks_are_counted;

void
rig_count_looks(void)
{
	looks_are_counted = true;
}

static slu_time
count_mono(struct clock *c)
{
	struct rig *r = (struct rig *)c;
	const slu_time now = r->clock_ops->mono(c);

	if (looks_are_counted)
		atomic_fetch_add(&r->looks, 1);
	return now;
}

static slu_time
count_wall(struct clock *c)
{
	return ((struct rig *)c)->clock_ops->wall(c);
}

static void
count_wait(struct clock *c, pthread_cond_t *cond, pthread_mutex_t *mtx, slu_time until)
{
	((struct rig *)c)->clock_ops->wait(c, cond, mtx, until);
}

static const struct clock_ops count_ops = {
	.mono = count_mono,
	.wall = count_wall,
	.wait = count_wait,
};

/* --- begin and end --- */

void
rig_start(struct rig *r, struct slu_executor_config config)
{
	struct slu_err err = { 0 };

	memset(r, 0, sizeof *r);
	pthread_mutex_init(&r->mtx, NULL);
	fakeclock_init(&r->clock, 1000 * SLU_SEC, 1700000000 * SLU_SEC);
	r->clock_ops = r->clock.clock.ops;
	r->clock.clock.ops = &count_ops;
	r->log = slu_log_new(SLU_LOG_DEBUG, SLU_LOG_LOGFMT, keep_line, r);
	log_set_clock(r->log, &r->clock.clock);
	config.struct_size = sizeof config;
	config.log = r->log;
	if (!config.on_error) {
		config.on_error = note_error;
		config.on_error_arg = r;
	}
	if (executor_start_on(&r->ex, &config, &r->clock.clock, &err))
		test_fail(__FILE__, __LINE__, "start: %s", err.text);
	r->shards = rig_stats(r).shards;
}

void
rig_release(struct rig *r)
{
	struct slu_executor_stats s;

	rig_open_gate(r);
	CHECK_EQ(0, slu_executor_stop(r->ex, 0));
	s = rig_stats(r);
	CHECK_EQ(s.submitted, s.finished);
	CHECK_EQ(0, s.queued + s.waiting + s.running);
	CHECK_EQ(0, r->late);
	CHECK_EQ(0, slu_executor_close(r->ex));
	slu_log_free(r->log);
	fakeclock_release(&r->clock);
	pthread_mutex_destroy(&r->mtx);
}

/* --- tasks --------------------------------------------------------------------- */

static void
note_entry(struct rig *r)
{
	const int inside = atomic_fetch_add(&r->inside, 1) + 1;
	int most = atomic_load(&r->most);

	while (inside > most && !atomic_compare_exchange_weak(&r->most, &most, inside))
		continue;
	atomic_fetch_add(&r->runs, 1);
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
	struct rig *r = p->rig;
	const int n = atomic_fetch_add(&p->runs, 1) + 1;

	note_entry(r);
	atomic_fetch_add(&r->late, atomic_load(&p->reports) > 0);
	atomic_store(&p->id, run->id);
	append(r, r->trace, sizeof r->trace, " ", p->name);
	if (p->waits)
		WAIT_UNTIL(atomic_load(&r->gate));
	atomic_fetch_sub(&r->inside, 1);
	return p->fails < 0 || n <= p->fails ? fail_as_told(p, &run->err) : 0;
}

static void
end_probe(const struct slu_run *run, void *arg, int rc)
{
	struct probe *p = arg;
	struct rig *r = p->rig;
	char text[64];

	(void)snprintf(text, sizeof text, "%s:%s", p->name, slu_err_row(rc)->flat_name);
	append(r, r->ends, sizeof r->ends, " ", text);
	atomic_store(&p->result, rc);
	atomic_store(&p->attempt, run->attempt);
	atomic_store(&p->id, run->id);
	atomic_fetch_add(&p->reports, 1);
	atomic_fetch_add(&r->reports, 1);
}

struct slu_task
rig_task(struct rig *r, struct probe *p)
{
	p->rig = r;
	return (struct slu_task){ SLU_OPTIONS_INIT(struct slu_task), run_probe, p, end_probe };
}

int
rig_try(struct rig *r, const char *key, struct probe *p, const struct slu_submit *opts,
	struct slu_err *err)
{
	const struct slu_task task = rig_task(r, p);

	return slu_executor_submit(r->ex, key, &task, opts, NULL, err);
}

uint64_t
rig_submit(struct rig *r, const char *key, struct probe *p)
{
	const struct slu_task task = rig_task(r, p);
	uint64_t id = 0;

	CHECK_EQ(0, slu_executor_submit(r->ex, key, &task, NULL, &id, NULL));
	return id;
}

void
rig_block(struct rig *r, const char *key, struct probe *p)
{
	p->waits = true;
	rig_submit(r, key, p);
	WAIT_UNTIL(atomic_load(&p->runs) == 1);
}

void
rig_open_gate(struct rig *r)
{
	atomic_store(&r->gate, true);
}

/* --- time ------------------------------------------------------------------------ */

/* A worker that was signalled counts as a sleeper until it runs: then something is still
 * queued. */
static bool
is_settled(struct rig *r)
{
	const struct slu_executor_stats s = rig_stats(r);

	return s.queued == 0 && s.running == 0 &&
	       fakeclock_sleepers(&r->clock) == (int)r->shards;
}

void
rig_settle(struct rig *r)
{
	WAIT_UNTIL(is_settled(r));
}

slu_time
rig_wait(struct rig *r)
{
	return fakeclock_until(&r->clock) - clock_mono(&r->clock.clock);
}

void
rig_next_retry(struct rig *r)
{
	rig_settle(r);
	CHECK(fakeclock_until(&r->clock) != SLU_NEVER);
	fakeclock_advance(&r->clock, rig_wait(r));
	rig_settle(r);
}

/* --- what happened ---------------------------------------------------------------- */

static const char *
show(struct rig *r, const char *text)
{
	pthread_mutex_lock(&r->mtx);
	memcpy(r->shown, text, strlen(text) + 1);
	pthread_mutex_unlock(&r->mtx);
	return r->shown;
}

const char *
rig_trace(struct rig *r)
{
	return show(r, r->trace);
}

const char *
rig_ends(struct rig *r)
{
	return show(r, r->ends);
}

const char *
rig_lines(struct rig *r)
{
	return show(r, r->lines);
}

int
rig_count_lines(struct rig *r, const char *part)
{
	int n = 0;

	for (const char *at = strstr(rig_lines(r), part); at; at = strstr(at + 1, part))
		n++;
	return n;
}

struct told
rig_told(struct rig *r)
{
	struct told told;

	pthread_mutex_lock(&r->mtx);
	told = r->told;
	pthread_mutex_unlock(&r->mtx);
	return told;
}

struct slu_executor_stats
rig_stats(struct rig *r)
{
	struct slu_executor_stats s;

	CHECK_EQ(0, slu_executor_snapshot(r->ex, SLU_ALL_SHARDS, &s));
	return s;
}

struct slu_task_status
rig_status(struct rig *r, uint64_t id)
{
	struct slu_task_status status;

	CHECK_EQ(0, slu_executor_status(r->ex, id, &status));
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
