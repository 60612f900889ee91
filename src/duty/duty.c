#include "duty/duty.h"

#include "base/log.h"
#include "base/mem.h"

#include <string.h>

#define RETRY SLU_SEC        /* DUTY-2 */
#define AGAIN (30 * SLU_SEC) /* DUTY-1 */

enum {
	NAME_ROOM = 320, /* of a document, in the log */
	LACKING = 10     /* DUTY-3 */
};

slu_time
duty_mono(void)
{
	return clock_mono(&clock_system);
}

struct duty_row *
duty_row(const struct duty *d, uint32_t i)
{
	return (struct duty_row *)(void *)(d->rows + i * d->kind->row_size);
}

void
duty_count(struct duty *d, unsigned metric, uint64_t n)
{
	metrics_add(&d->metrics, metric, 0, n);
}

void
duty_notify(struct duty *d, struct slice queue)
{
	if (!d || (queue.n && !slice_eq(queue, slice_of(d->kind->queue))))
		return;
	pthread_mutex_lock(&d->mtx);
	d->changes++;
	pthread_cond_broadcast(&d->wake);
	pthread_mutex_unlock(&d->mtx);
}

/* ---- Ops ---- */

void
duty_op(struct duty *d, struct op *op, enum op_verb verb, struct slice space)
{
	opwait_op(&d->wait, op, verb, space, slice_of(d->kind->queue));
	op->route.local = true;
}

int
duty_run(struct duty *d, struct op *ops, uint32_t n, struct slu_err *err)
{
	const int rc = opwait_run(&d->wait, d->broker, ops, n);

	if (rc && err) {
		*err = ops[0].err;
		if (!err->code)
			(void)slu_fail(err, (enum slu_code)rc, "%s", slu_err_row(rc)->text);
	}
	return rc;
}

int
duty_store(struct duty *d, struct duty_row *row, struct op_put *puts, uint32_t n, struct slu_err *err)
{
	struct op_item item = { .id = row->id, .number = row->number, .remove = n == 0 };
	struct op op;
	int rc;

	duty_op(d, &op, OP_SCHEDULE, slice_of(row->space));
	op.items = &item;
	op.n_items = 1;
	op.puts = puts;
	op.n_puts = n;
	rc = duty_run(d, &op, 1, err);
	if (rc)
		return rc;
	d->expected++;
	if (n)
		row->number = puts[0].m.number;
	return 0;
}

/* ---- The thread ---- */

/* DUTY-2 */
static void
note_failure(struct duty *d, const struct duty_row *row, const struct slu_err *err)
{
	char name[NAME_ROOM];

	duty_count(d, DUTY_FAILURES, 1);
	if (!d->failing)
		log_warn(d->log, d->kind->waits, F_STR("namespace", row ? row->space : ""),
			 F_STR(d->kind->noun, row ? d->kind->name(row, name, sizeof name) : ""), F_STR("why", err->text));
	d->failing = true;
}

static void
load_if_stale(struct duty *d)
{
	struct slu_err err = { 0 };
	uint64_t changes;

	pthread_mutex_lock(&d->mtx);
	changes = d->changes;
	pthread_mutex_unlock(&d->mtx);
	if (!d->stale && changes == d->expected && duty_mono() - d->loaded < AGAIN)
		return;
	if (changes != d->expected)
		d->lacked = 0;
	d->expected = changes;
	d->loaded = duty_mono();
	d->stale = duty_load(d, &err) != 0;
	if (d->stale)
		note_failure(d, NULL, &err);
	d->lacked = d->lacks ? d->lacked + 1 : 0;
	if (d->lacks && d->lacked <= LACKING)
		d->stale = true;
}

static bool
is_stopping(struct duty *d)
{
	bool stops;

	pthread_mutex_lock(&d->mtx);
	stops = d->stops;
	pthread_mutex_unlock(&d->mtx);
	return stops;
}

/* Until the row is due, and may be tried again. */
static slu_time
pause_of(const struct duty *d, const struct duty_row *row)
{
	const slu_time now = duty_mono(), pause = d->kind->pause(row);
	const slu_time rest = row->resume > now ? row->resume - now : 0;

	return pause > rest ? pause : rest;
}

/* Each row that is due, once. */
static void
act_all(struct duty *d)
{
	bool failed = d->stale;

	for (uint32_t i = 0; i < d->n && !is_stopping(d); i++) {
		struct duty_row *const row = duty_row(d, i);
		struct slu_err err = { 0 };
		int rc;

		if (pause_of(d, row) > 0)
			continue;
		rc = d->kind->act(d, row, &err);
		if (rc == SLU_ECONFLICT || rc == SLU_ENOTFOUND || rc == SLU_EMOVED) {
			d->stale = true;
		} else if (rc) {
			failed = true;
			row->resume = duty_mono() + RETRY;
			note_failure(d, row, &err);
		}
	}
	d->failing = failed;
}

/* When the thread has to look again, by the monotonic clock. */
static slu_time
next_look(const struct duty *d)
{
	slu_time first = d->stale ? RETRY : AGAIN;

	for (uint32_t i = 0; i < d->n; i++) {
		const slu_time pause = pause_of(d, duty_row(d, i));

		first = pause < first ? pause : first;
	}
	return duty_mono() + first;
}

/* Returns false if the thread has to end. */
static bool
rest(struct duty *d)
{
	const slu_time until = next_look(d);
	bool stops;

	pthread_mutex_lock(&d->mtx);
	while (!d->stops && d->changes == d->expected && duty_mono() < until)
		clock_wait(&clock_system, &d->wake, &d->mtx, until);
	stops = d->stops;
	pthread_mutex_unlock(&d->mtx);
	return !stops;
}

static void *
run(void *arg)
{
	struct duty *const d = arg;

	do {
		load_if_stale(d);
		act_all(d);
	} while (rest(d));
	if (d->kind->end)
		d->kind->end(d);
	return NULL;
}

/* ---- Open and close ---- */

int
duty_new(struct duty **out, const struct duty_kind *kind, struct slu_log *log, struct slu_err *err)
{
	struct duty *const d = mem_zalloc(kind->size);

	*out = NULL;
	if (!d)
		return slu_fail(err, SLU_ENOMEM, "no memory for the thread of %s", kind->queue);
	d->kind = kind;
	d->log = log;
	d->stale = true;
	pthread_mutex_init(&d->mtx, NULL); /* these cannot fail without attributes */
	pthread_cond_init(&d->wake, NULL);
	opwait_init(&d->wait);
	d->fresh = mem_zalloc(kind->row_size);
	if (!d->fresh || metrics_init(&d->metrics, "sluice_", kind->metrics, kind->n_metrics, NULL, 1)) {
		duty_free(d);
		return slu_fail(err, SLU_ENOMEM, "no memory for the thread of %s", kind->queue);
	}
	*out = d;
	return 0;
}

int
duty_start(struct duty *d, struct broker *b, struct slu_err *err)
{
	d->broker = b;
	if (pthread_create(&d->thread, NULL, run, d))
		return slu_fail(err, SLU_EDOWN, "cannot start a thread for %s", d->kind->queue);
	d->runs = true;
	return 0;
}

void
duty_stop(struct duty *d)
{
	if (!d || !d->runs)
		return;
	pthread_mutex_lock(&d->mtx);
	d->stops = true;
	pthread_cond_broadcast(&d->wake);
	pthread_mutex_unlock(&d->mtx);
	pthread_join(d->thread, NULL);
	d->runs = false;
}

void
duty_free(struct duty *d)
{
	if (!d)
		return;
	duty_stop(d);
	duty_unload(d);
	if (d->kind->release)
		d->kind->release(d);
	mem_free(d->rows);
	mem_free(d->fresh);
	metrics_release(&d->metrics);
	opwait_release(&d->wait);
	pthread_cond_destroy(&d->wake);
	pthread_mutex_destroy(&d->mtx);
	mem_free(d);
}

void
duty_metrics(const struct duty *d, struct buf *out)
{
	if (d)
		metrics_write(&d->metrics, out);
}
