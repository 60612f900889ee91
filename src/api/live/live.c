#include "api/live/live.h"

#include "api/api.h"
#include "api/flat/view.h"
#include "api/queuestats.h"
#include "base/mem.h"
#include "duty/opwait.h"

enum {
	PAGE = 256,       /* queues of an op */
	WARNINGS_MAX = 16 /* of a lane */
};

struct live {
	struct api *api;
	pthread_t thread;
	bool runs;

	/* Of the thread: where the look is. */
	struct opwait wait;
	struct op_queue *page;
	uint32_t lane;
	uint64_t cursor; /* 0: the lane's first page is next */
	bool whole;      /* every lane of this look has answered */
	bool names_shards;

	/* Shared. */
	pthread_mutex_t mtx;
	pthread_cond_t wake;
	bool stops;
	unsigned readers;
	struct list waiting;
	struct live_rows rows;
	uint32_t looked;  /* the number of the last look that has ended */
	uint32_t awaited; /* the look that the newest reader awaits; 0: none */
	uint64_t round;
	uint64_t told; /* the version of the last round */
	slu_time beat; /* of the last round, by the monotonic clock */
	slu_time at;   /* the same, on the wall clock */
	unsigned problems, last_problems;
};

static slu_time
mono(void)
{
	return clock_mono(&clock_system);
}

/* --- a look ------------------------------------------------------------------- */

static void
next_lane(struct live *l)
{
	l->lane++;
	l->cursor = 0;
}

/* Returns how many queues the page had. */
static uint32_t
take_page(struct live *l, const struct op *op)
{
	struct broker *const b = l->api->broker;
	const char *const shard = l->names_shards ? broker_shard_name(b, l->lane) : NULL;
	const uint64_t cursor = op->rc ? 0 : op->cursor;

	for (uint32_t i = 0; !op->rc && i < op->n_queues; i++)
		queuestats_crew(l->api, &op->queues[i]);
	pthread_mutex_lock(&l->mtx);
	for (uint32_t i = 0; !op->rc && i < op->n_queues; i++)
		live_rows_note(&l->rows, &op->queues[i], l->lane, shard);
	pthread_mutex_unlock(&l->mtx);
	l->whole = l->whole && (!op->rc || op->rc == SLU_ENOTFOUND);
	l->cursor = cursor;
	if (!cursor || cursor >> BROKER_CURSOR_BITS != l->lane)
		next_lane(l);
	return op->rc ? 0 : op->n_queues;
}

static uint32_t
look_at_page(struct live *l)
{
	struct op op;

	opwait_op(&l->wait, &op, OP_QUEUES, (struct slice){ 0 }, (struct slice){ 0 });
	op.cursor = l->cursor ? l->cursor : (uint64_t)l->lane << BROKER_CURSOR_BITS;
	op.queues = l->page;
	op.max_queues = PAGE;
	op.wait = atomic_load(&l->api->stats_timeout);
	(void)opwait_run(&l->wait, l->api->broker, &op, 1); /* op has the code */
	return take_page(l, &op);
}

/* Shards that take no work, and warnings. */
static unsigned
count_problems(const struct broker *b)
{
	struct engine_warning found[WARNINGS_MAX];
	struct slu_err err;
	unsigned n = 0;

	for (uint32_t i = 0; i < broker_lanes(b); i++) {
		const int rc = broker_health(b, i, &err);

		n += rc && rc != SLU_EMOVED ? 1 : broker_warnings(b, i, found, WARNINGS_MAX);
	}
	return n;
}

static bool
is_stopping(struct live *l)
{
	bool stops;

	pthread_mutex_lock(&l->mtx);
	stops = l->stops;
	pthread_mutex_unlock(&l->mtx);
	return stops;
}

static void
begin(struct live *l)
{
	l->whole = true;
	pthread_mutex_lock(&l->mtx);
	live_rows_begin(&l->rows);
	pthread_mutex_unlock(&l->mtx);
}

static void
end(struct live *l)
{
	const unsigned problems = count_problems(l->api->broker);

	l->lane = 0;
	pthread_mutex_lock(&l->mtx);
	live_rows_end(&l->rows, l->whole);
	l->looked = l->rows.pass;
	l->at = clock_wall(l->api->clock);
	l->problems = problems;
	pthread_mutex_unlock(&l->mtx);
}

/* LIVE-2 */
static void
look(struct live *l)
{
	const uint32_t lanes = broker_lanes(l->api->broker);
	uint32_t left = l->rows.filled ? LIVE_LOOK : UINT32_MAX;

	if (l->lane == 0 && l->cursor == 0)
		begin(l);
	while (l->lane < lanes && left > 0 && !is_stopping(l)) {
		const uint32_t n = look_at_page(l);

		left -= n < left ? n : left;
	}
	if (l->lane == lanes)
		end(l);
}

/* --- rounds ------------------------------------------------------------------- */

static void
wake_all(struct live *l)
{
	LIST_EACH_SAFE(n, &l->waiting) {
		struct live_reader *const r = CONTAINER(n, struct live_reader, node);

		list_remove(n);
		r->waits = false;
		loop_post(r->loop, &r->woken);
	}
}

/* LIVE-4. Under mtx. */
static void
publish(struct live *l)
{
	const slu_time now = mono();
	const bool changed = l->told != l->rows.version || l->problems != l->last_problems;
	const bool awaited = l->awaited && l->looked >= l->awaited;

	if (!l->rows.filled || (!changed && !awaited && now - l->beat < LIVE_BEAT))
		return;
	if (awaited)
		l->awaited = 0;
	l->told = l->rows.version;
	l->last_problems = l->problems;
	l->beat = now;
	l->at = clock_wall(l->api->clock);
	l->round++;
	wake_all(l);
}

/* LIVE-1. Under mtx; no memory is needed to be empty. */
static void
forget(struct live *l)
{
	live_rows_release(&l->rows);
	(void)live_rows_init(&l->rows); /* it succeeded before: the kernel has random bytes */
	l->lane = 0;
	l->cursor = 0;
	l->looked = 0;
	l->awaited = 0;
	l->round = 0;
	l->told = 0;
}

/* Under mtx: until there is a reader, or until then. */
static void
rest_without_readers(struct live *l, slu_time until)
{
	while (!l->stops && l->readers == 0 && mono() < until)
		clock_wait(&clock_system, &l->wake, &l->mtx, until);
}

/* Under mtx: LIVE_EVERY, or LIVE_SOON if a new reader waits for its first line. */
static void
rest(struct live *l)
{
	const slu_time now = mono();
	slu_time until;

	do {
		until = now + (l->awaited ? LIVE_SOON : LIVE_EVERY);
		if (!l->stops && mono() < until)
			clock_wait(&clock_system, &l->wake, &l->mtx, until);
	} while (!l->stops && mono() < until);
}

static void *
run(void *arg)
{
	struct live *const l = arg;

	pthread_mutex_lock(&l->mtx);
	while (!l->stops) {
		if (l->readers == 0)
			rest_without_readers(l, mono() + LIVE_LINGER);
		if (l->readers == 0) {
			forget(l);
			rest_without_readers(l, SLU_NEVER);
			continue;
		}
		pthread_mutex_unlock(&l->mtx);
		look(l);
		pthread_mutex_lock(&l->mtx);
		publish(l);
		rest(l);
	}
	pthread_mutex_unlock(&l->mtx);
	return NULL;
}

/* --- open and close ------------------------------------------------------------- */

/* The lanes of a shard follow each other. */
static bool
has_shards(const struct broker *b)
{
	return strcmp(broker_shard_name(b, 0), broker_shard_name(b, broker_lanes(b) - 1)) != 0;
}

int
live_start(struct api *api, struct slu_err *err)
{
	struct live *const l = mem_zalloc(sizeof *l);

	api->live = l;
	if (!l)
		return slu_fail(err, SLU_ENOMEM, "no memory for live updates");
	l->api = api;
	l->names_shards = has_shards(api->broker);
	pthread_mutex_init(&l->mtx, NULL); /* these cannot fail without attributes */
	pthread_cond_init(&l->wake, NULL);
	list_init(&l->waiting);
	opwait_init(&l->wait);
	l->page = mem_array(PAGE, sizeof *l->page);
	if (!l->page || live_rows_init(&l->rows))
		return slu_fail(err, SLU_ENOMEM, "no memory for live updates");
	return 0;
}

void
live_stop(struct live *l)
{
	if (!l)
		return;
	pthread_mutex_lock(&l->mtx);
	l->stops = true;
	wake_all(l);
	pthread_cond_broadcast(&l->wake);
	pthread_mutex_unlock(&l->mtx);
	if (l->runs)
		pthread_join(l->thread, NULL);
	l->runs = false;
}

void
live_free(struct live *l)
{
	if (!l)
		return;
	live_stop(l);
	live_rows_release(&l->rows);
	mem_free(l->page);
	opwait_release(&l->wait);
	pthread_cond_destroy(&l->wake);
	pthread_mutex_destroy(&l->mtx);
	mem_free(l);
}

/* --- readers ------------------------------------------------------------------ */

/* LIVE-1. The caller has the mutex. */
static int
begin_thread(struct live *l, struct slu_err *err)
{
	if (!l->runs && pthread_create(&l->thread, NULL, run, l))
		return slu_fail(err, SLU_ENOMEM, "no memory for a thread");
	l->runs = true;
	return 0;
}

int
live_join(struct live *l, struct live_reader *r, struct slu_err *err)
{
	int rc = 0;

	list_init(&r->node);
	pthread_mutex_lock(&l->mtx);
	if (l->stops)
		rc = slu_fail(err, SLU_ECLOSED, "stopping, accepts no new work");
	else if (l->readers == LIVE_READERS)
		rc = slu_fail(err, SLU_EBUSY, "%d readers follow the live updates already", LIVE_READERS);
	else
		rc = begin_thread(l, err);
	r->joined = rc == 0;
	r->look = l->rows.pass + 1;
	l->awaited = r->joined ? r->look : l->awaited;
	l->readers += r->joined;
	if (r->joined)
		pthread_cond_broadcast(&l->wake);
	pthread_mutex_unlock(&l->mtx);
	return rc;
}

void
live_leave(struct live *l, struct live_reader *r)
{
	if (!r->joined)
		return;
	pthread_mutex_lock(&l->mtx);
	l->readers--;
	pthread_mutex_unlock(&l->mtx);
	r->joined = false;
}

static void
write_totals(struct json_out *w, const struct live *l)
{
	const struct live_counts *const t = &l->rows.totals;
	const struct ledger_totals *const since = &t->totals;
	struct op_queue q;

	memset(&q, 0, sizeof q);
	memcpy(q.count, t->count, sizeof q.count);
	json_out_object(w, "totals");
	json_out_u64(w, "queues", l->rows.last_queues);
	flat_view_counts(w, &q);
	flat_view_since(w, since);
	json_out_close(w);
	json_out_u64(w, "problems", l->problems);
}

/* Writes the rows behind the version of the reader. Returns false if they are too many, or some may be missing. */
static bool
write_rows(struct json_out *w, const struct live *l, const struct live_reader *r, const struct live_row *first)
{
	unsigned n = 0;

	if ((r->begun && r->version < l->rows.floor) || l->rows.last_over)
		return false;
	for (const struct live_row *row = first; row; row = live_rows_next(&l->rows, row))
		if (++n > LIVE_LINE)
			return false;
	for (const struct live_row *row = first; row; row = live_rows_next(&l->rows, row))
		if (r->sees(r, (struct slice){ row->key, row->space_n }))
			json_out_raw(w, NULL, row->text);
	return true;
}

static void
write_line(const struct live *l, struct live_reader *r, struct buf *out)
{
	const struct live_row *const first = r->begun ? live_rows_after(&l->rows, r->version) : NULL;
	struct json_out w;
	bool all;

	json_out_open(&w, out);
	json_out_time(&w, "at", l->at);
	json_out_array(&w, "queues");
	all = write_rows(&w, l, r, first);
	json_out_close(&w);
	json_out_bool(&w, "more", !all);
	if (r->whole)
		write_totals(&w, l);
	json_out_close(&w);
	buf_putc(out, '\n');
}

/* LIVE-5. Under mtx. */
static bool
has_line(const struct live *l, const struct live_reader *r)
{
	return r->begun ? r->round != l->round : l->looked >= r->look;
}

enum live_got
live_take(struct live *l, struct live_reader *r, struct buf *out)
{
	enum live_got got = LIVE_NOTHING;

	pthread_mutex_lock(&l->mtx);
	if (l->stops) {
		got = LIVE_ENDED;
	} else if (has_line(l, r)) {
		write_line(l, r, out);
		r->begun = true;
		r->version = l->told;
		r->round = l->round;
		got = LIVE_GOT;
	}
	pthread_mutex_unlock(&l->mtx);
	return got;
}

bool
live_wait(struct live *l, struct live_reader *r)
{
	bool waits;

	pthread_mutex_lock(&l->mtx);
	r->waits = waits = !l->stops && !has_line(l, r);
	if (waits)
		list_append(&l->waiting, &r->node);
	pthread_mutex_unlock(&l->mtx);
	return waits;
}

bool
live_forget(struct live *l, struct live_reader *r)
{
	bool waited;

	pthread_mutex_lock(&l->mtx);
	waited = r->waits;
	r->waits = false;
	list_remove(&r->node);
	pthread_mutex_unlock(&l->mtx);
	return waited;
}
