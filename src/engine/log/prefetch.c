/*
 * prefetch.c - brings payload files into the folder before a consumer claims their messages (LOGENGINE-14).
 *
 *      a claim of a queue ──> its next messages, in the order of claims ──> files that the folder may lack
 *                                                                             │ waiting, pinned
 *                             the next claims read them in the folder  <──────┘ thread: fetch
 *
 * The ledger alone decides which message is next. A message that becomes urgent later is claimed first, whether its
 * payload is here or not.
 */
#include "engine/log/logengine_private.h"

enum {
	SCANS = 8 /* claims of a run that look for files */
};

/* ---- The thread ---- */

/* Under mtx: takes the first file that waits. */
static struct logengine_file *
take(struct logengine_prefetch *p)
{
	struct logengine_file *const f = p->waiting[0];

	memmove(p->waiting, p->waiting + 1, --p->n * sizeof p->waiting[0]);
	return f;
}

/* A file that cannot be fetched now is left to its reader, which reports the reason. */
static void *
fetch_files(void *arg)
{
	struct logengine_prefetch *const p = arg;
	struct slu_err err;

	pthread_mutex_lock(&p->mtx);
	while (!p->stopping) {
		struct logengine_file *f;

		if (p->n == 0) {
			pthread_cond_wait(&p->cond, &p->mtx);
			continue;
		}
		f = take(p);
		pthread_mutex_unlock(&p->mtx);
		(void)logengine_file_bring(f, &err);
		logengine_file_unpin(f);
		pthread_mutex_lock(&p->mtx);
	}
	pthread_mutex_unlock(&p->mtx);
	return NULL;
}

/* ---- The shard's thread ---- */

static void
release(struct logengine_prefetch *p)
{
	pthread_cond_destroy(&p->cond);
	pthread_mutex_destroy(&p->mtx);
	mem_free(p->waiting);
	*p = (struct logengine_prefetch){ 0 };
}

int
logengine_prefetch_start(struct logengine *l, const struct engine_conf *conf, struct slu_err *err)
{
	const struct logengine_options *const own = conf->options;
	struct logengine_prefetch *const p = &l->prefetch;

	if (!l->files.store || !own || own->prefetch_batch == 0)
		return 0;
	*p = (struct logengine_prefetch){ .batch = own->prefetch_batch, .bytes = own->prefetch_bytes };
	pthread_mutex_init(&p->mtx, NULL); /* these cannot fail without attributes */
	pthread_cond_init(&p->cond, NULL);
	p->waiting = mem_array(p->batch, sizeof p->waiting[0]);
	p->started = p->waiting && pthread_create(&p->thread, NULL, fetch_files, p) == 0;
	if (p->started)
		return 0;
	release(p);
	return slu_fail(err, SLU_ENOMEM, "no memory to fetch payloads ahead");
}

/* The thread ends after the file that it fetches now. */
void
logengine_prefetch_end(struct logengine *l)
{
	struct logengine_prefetch *const p = &l->prefetch;

	if (!p->started)
		return;
	pthread_mutex_lock(&p->mtx);
	p->stopping = true;
	for (; p->n > 0; p->n--)
		logengine_file_unpin(p->waiting[p->n - 1]);
	pthread_cond_signal(&p->cond);
	pthread_mutex_unlock(&p->mtx);
}

void
logengine_prefetch_stop(struct logengine *l)
{
	struct logengine_prefetch *const p = &l->prefetch;

	if (!p->started)
		return;
	logengine_prefetch_end(l);
	pthread_join(p->thread, NULL);
	release(p);
}

/* Takes the pin. */
static void
add(struct logengine_prefetch *p, struct logengine_file *f)
{
	bool known = false;

	pthread_mutex_lock(&p->mtx);
	for (uint32_t i = 0; i < p->n && !known; i++)
		known = p->waiting[i] == f;
	if (known || p->stopping || p->n == p->batch) {
		logengine_file_unpin(f);
	} else {
		p->waiting[p->n++] = f;
		pthread_cond_signal(&p->cond);
	}
	pthread_mutex_unlock(&p->mtx);
}

/* The messages that a claim would take next, until their payload files have `bytes`. */
static void
look_ahead(struct logengine *l, const uint32_t *msgs, uint32_t n)
{
	struct logengine_prefetch *const p = &l->prefetch;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct logengine_file *f;
		struct ledger_view v;
		struct place place;

		ledger_get(l->ledger, msgs[i], &v);
		places_get(&l->places, v.where, &place);
		if (place.file == SLAB_NONE)
			continue;
		bytes += logengine_files_size(&l->files, place.file);
		if (bytes > p->bytes)
			return;
		f = logengine_files_pin(&l->files, place.file);
		if (logengine_file_is_here(f))
			logengine_file_unpin(f);
		else
			add(p, f);
	}
}

void
logengine_claimed(struct ledgerengine *k, uint32_t queue)
{
	struct logengine *const l = logengine_of(k);
	struct logengine_prefetch *const p = &l->prefetch;
	uint32_t msgs[LEDGER_PEEK_MAX], n = 0;

	if (!p->started || p->scans == SCANS || logengine_files_count(&l->files) == 0)
		return;
	p->scans++;
	if (ledger_peek(l->ledger, queue, msgs, p->batch, &n) == 0)
		look_ahead(l, msgs, n);
}
