/*
 * stats.c - stats, stats-job, stats-tube, list-tubes: YAML with the members that beanstalkd has.
 */
#include "beanstalk/beanstalk_private.h"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

enum {
	QUEUES_PAGE = 100
};

#define ULL(v) ((unsigned long long)(v))

static void
put_u64(struct buf *out, const char *name, uint64_t v)
{
	buf_printf(out, "%s: %llu\n", name, ULL(v));
}

static uint64_t
seconds_of(slu_time t)
{
	return t > 0 ? (uint64_t)(t / SLU_SEC) : 0;
}

/* The counts of jobs by state; held messages are ready for nobody yet, and shown as ready. */
static void
put_counts(struct buf *out, const uint64_t count[MSG_STATES])
{
	put_u64(out, "current-jobs-urgent", 0);
	put_u64(out, "current-jobs-ready", count[MSG_READY] + count[MSG_HELD]);
	put_u64(out, "current-jobs-reserved", count[MSG_LEASED]);
	put_u64(out, "current-jobs-delayed", count[MSG_DELAYED]);
	put_u64(out, "current-jobs-buried", count[MSG_DEAD]);
}

/* ---- All queues of the namespace, page by page ---- */

struct survey {
	struct op_queue queues[QUEUES_PAGE];
	void (*each)(struct apicall *a, const struct op_queue *q);
	void (*end)(struct apicall *a);
	uint64_t count[MSG_STATES];
	struct ledger_totals totals;
	uint64_t tubes;
	struct buf names; /* list-tubes: YAML */
};

static void next_queues(struct apicall *a, uint64_t cursor);

static void
have_queues(struct apicall *a)
{
	struct survey *const s = a->state;

	if (a->op.rc) {
		buf_release(&s->names);
		apicall_refuse_op(a, &a->op);
		return;
	}
	for (uint32_t i = 0; i < a->op.n_queues; i++)
		s->each(a, &s->queues[i]);
	if (a->op.cursor)
		next_queues(a, a->op.cursor);
	else
		s->end(a);
}

static void
next_queues(struct apicall *a, uint64_t cursor)
{
	struct survey *const s = a->state;

	apicall_op(a, &a->op, OP_QUEUES, bean_space(a->x), (struct slice){ 0 });
	a->op.queues = s->queues;
	a->op.max_queues = QUEUES_PAGE;
	a->op.cursor = cursor;
	apicall_run(a, have_queues);
}

static void
survey(struct apicall *a, void (*each)(struct apicall *a, const struct op_queue *q), void (*end)(struct apicall *a))
{
	struct survey *const s = apicall_state(a, sizeof *s);

	if (!s)
		return;
	s->each = each;
	s->end = end;
	buf_init(&s->names, 1 << 30);
	buf_puts(&s->names, "---\n");
	next_queues(a, 0);
}

/* ---- list-tubes ---- */

static bool
is_listed(const struct buf *names, const char *name)
{
	char line[NAME_TEXT + 8];
	const int n = snprintf(line, sizeof line, "\n- %s\n", name);

	return memmem(names->p, names->n, line, (size_t)n) != NULL;
}

static void
list_queue(struct apicall *a, const struct op_queue *q)
{
	struct survey *const s = a->state;

	if (q->name[0] != '.' && !is_listed(&s->names, q->name))
		buf_printf(&s->names, "- %s\n", q->name);
}

static void
list_tube(void *arg, const struct tube *tube)
{
	struct buf *const names = arg;

	if (!is_listed(names, tube->name))
		buf_printf(names, "- %s\n", tube->name);
}

static void
end_list(struct apicall *a)
{
	struct survey *const s = a->state;

	tubes_each(&bean_shared(a->x)->tubes, list_tube, &s->names);
	bean_answer_yaml(a->x, &s->names);
	buf_release(&s->names);
}

void
bean_list(struct apicall *a)
{
	survey(a, list_queue, end_list);
}

/* ---- stats ---- */

static void
add_queue(struct apicall *a, const struct op_queue *q)
{
	struct survey *const s = a->state;

	list_queue(a, q);
	if (q->name[0] == '.')
		return;
	for (unsigned i = 0; i < MSG_STATES; i++)
		s->count[i] += q->count[i];
	ledger_add_totals(&s->totals, &q->totals);
}

static void
put_commands(struct buf *out, struct bean_shared *shared)
{
	for (unsigned i = 0; i < BEAN_KINDS; i++)
		if (*bean_commands[i].stat)
			buf_printf(out, "cmd-%s: %llu\n", bean_commands[i].stat, ULL(atomic_load(&shared->commands[i])));
}

static void
put_usage(struct buf *out)
{
	struct rusage u = { 0 };

	(void)getrusage(RUSAGE_SELF, &u); /* zeros otherwise */
	buf_printf(out, "rusage-utime: %lld.%06ld\n", (long long)u.ru_utime.tv_sec, (long)u.ru_utime.tv_usec);
	buf_printf(out, "rusage-stime: %lld.%06ld\n", (long long)u.ru_stime.tv_sec, (long)u.ru_stime.tv_usec);
}

static void
put_connections(struct buf *out, struct bean_shared *shared)
{
	put_u64(out, "current-connections", atomic_load(&shared->current));
	put_u64(out, "current-producers", atomic_load(&shared->producers));
	put_u64(out, "current-workers", atomic_load(&shared->workers));
	put_u64(out, "current-waiting", atomic_load(&shared->waiting));
	put_u64(out, "total-connections", atomic_load(&shared->connections));
}

static void
put_machine(struct buf *out)
{
	struct utsname u = { 0 };

	(void)uname(&u); /* empty texts otherwise */
	buf_printf(out, "hostname: %s\nos: \"%s\"\nplatform: %s\n", u.nodename, u.version, u.machine);
}

static uint64_t
lines_of(const struct buf *names)
{
	uint64_t n = 0;

	for (size_t i = 0; i < names->n; i++)
		n += names->p[i] == '\n';
	return n - 1; /* without the first line */
}

static void
end_stats(struct apicall *a)
{
	struct survey *const s = a->state;
	struct bean_shared *const shared = bean_shared(a->x);
	struct buf out;

	tubes_each(&shared->tubes, list_tube, &s->names);
	buf_init(&out, 1 << 20);
	buf_puts(&out, "---\n");
	put_counts(&out, s->count);
	put_commands(&out, shared);
	put_u64(&out, "job-timeouts", s->totals.failed);
	put_u64(&out, "total-jobs", s->totals.accepted);
	put_u64(&out, "max-job-size", shared->conf.max_job);
	put_u64(&out, "current-tubes", lines_of(&s->names));
	put_connections(&out, shared);
	put_u64(&out, "pid", (uint64_t)getpid());
	buf_printf(&out, "version: \"%s\"\n", SLU_VERSION_TEXT);
	put_usage(&out);
	put_u64(&out, "uptime", seconds_of(clock_mono(a->api->clock) - shared->started));
	buf_puts(&out, "binlog-oldest-index: 0\nbinlog-current-index: 0\nbinlog-records-migrated: 0\n"
		       "binlog-records-written: 0\nbinlog-max-size: 0\n");
	buf_printf(&out, "draining: %s\n", atomic_load(&a->api->draining) ? "true" : "false");
	buf_printf(&out, "id: %s\n", shared->id);
	put_machine(&out);
	bean_answer_yaml(a->x, &out);
	buf_release(&out);
	buf_release(&s->names);
}

void
bean_stats(struct apicall *a)
{
	survey(a, add_queue, end_stats);
}

/* ---- stats-tube ---- */

struct tube_stats {
	struct op_queue queue;
	char name[NAME_TEXT];
};

static void
write_tube(struct apicall *a, const struct tube *t, struct buf *out)
{
	const struct tube_stats *const s = a->state;
	const bool has_queue = a->op.rc == 0;
	const slu_time left = has_queue && s->queue.held ? s->queue.held - clock_wall(a->api->clock) : 0;
	uint64_t count[MSG_STATES] = { 0 };

	for (unsigned i = 0; has_queue && i < MSG_STATES; i++)
		count[i] = s->queue.count[i];
	buf_printf(out, "---\nname: %s\n", s->name);
	put_counts(out, count);
	put_u64(out, "total-jobs", has_queue ? s->queue.totals.accepted : 0);
	put_u64(out, "current-using", t ? atomic_load(&t->using) : 0);
	put_u64(out, "current-watching", t ? atomic_load(&t->watching) : 0);
	put_u64(out, "current-waiting", t ? atomic_load(&t->waiting) : 0);
	put_u64(out, "cmd-delete", t ? atomic_load(&t->deletes) : 0);
	put_u64(out, "cmd-pause-tube", t ? atomic_load(&t->pauses) : 0);
	put_u64(out, "pause", left <= 0 ? 0 : t && atomic_load(&t->pause) ? atomic_load(&t->pause)
									  : seconds_of(left));
	put_u64(out, "pause-time-left", seconds_of(left));
}

static void
have_tube(struct apicall *a)
{
	const struct tube_stats *const s = a->state;
	struct tubes *const tubes = &bean_shared(a->x)->tubes;
	struct tube *const t = tubes_find(tubes, s->name);
	struct buf out;

	if (a->op.rc && !(a->op.rc == SLU_ENOTFOUND && t)) {
		tubes_close(tubes, t);
		apicall_refuse_op(a, &a->op);
		return;
	}
	buf_init(&out, 1 << 16);
	write_tube(a, t, &out);
	tubes_close(tubes, t);
	bean_answer_yaml(a->x, &out);
	buf_release(&out);
}

void
bean_stats_tube(struct apicall *a)
{
	struct tube_stats *const s = apicall_state(a, sizeof *s);
	struct slu_err err = { 0 };

	if (!s || apicall_refused(a, name_fold(bean_call(a->x)->line.tube, "tube", s->name, &err), err.text))
		return;
	apicall_op(a, &a->op, OP_STATS, bean_space(a->x), slice_of(s->name));
	a->op.queues = &s->queue;
	a->op.max_queues = 1;
	apicall_run(a, have_tube);
}

/* ---- stats-job ---- */

static const char *const states[MSG_STATES] = {
	[MSG_NONE] = "invalid",
	[MSG_READY] = "ready",
	[MSG_DELAYED] = "delayed",
	[MSG_LEASED] = "reserved",
	[MSG_HELD] = "ready",
	[MSG_DEAD] = "buried",
	[MSG_DAMAGED] = "buried",
};

static void
write_job(struct apicall *a, struct buf *out)
{
	const struct bean_find *const s = a->state;
	const struct op_row *const row = &s->row;
	const struct bean_record *const r = &s->reading.record;
	const slu_time now = clock_wall(a->api->clock);
	const bool leased = row->state == MSG_LEASED;
	const unsigned ends = row->failures + leased;
	const slu_time left = leased ? row->until - now : row->state == MSG_DELAYED ? row->due - now
										    : 0;

	buf_printf(out, "---\nid: %llu\ntube: %.*s\nstate: %s\n", ULL(bean_id_out(row->id)), (int)r->m.queue.n, r->m.queue.p,
		   states[row->state]);
	put_u64(out, "pri", r->has_prio && row->prio == INT32_MAX ? r->pri : (uint64_t)(row->prio > 0 ? row->prio : 0));
	put_u64(out, "age", seconds_of(now - r->m.accepted));
	put_u64(out, "delay", seconds_of(r->m.due - r->m.accepted));
	put_u64(out, "ttr", seconds_of(r->ttr ? r->ttr : leased ? row->until - row->claimed
								: 0));
	put_u64(out, "time-left", seconds_of(left));
	put_u64(out, "file", 0);
	put_u64(out, "reserves", row->attempts);
	put_u64(out, "timeouts", row->failures);
	put_u64(out, "releases", row->attempts > ends ? row->attempts - ends : 0);
	put_u64(out, "buries", row->state == MSG_DEAD);
	put_u64(out, "kicks", 0);
}

static void
found_job(struct apicall *a)
{
	struct buf out;

	buf_init(&out, 1 << 16);
	write_job(a, &out);
	bean_answer_yaml(a->x, &out);
	buf_release(&out);
}

void
bean_stats_job(struct apicall *a)
{
	if (apicall_state(a, sizeof(struct bean_find)))
		bean_find(a, bean_call(a->x)->line.numbers[0], found_job);
}
