#include "handover/handover_private.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/backoff.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#define LOOK  (5 * SLU_MS)   /* between two looks while items come */
#define BUSY  (100 * SLU_MS) /* so long after the last item the inbox sleeps */
#define REST  SLU_SEC        /* a queue that is full is left out for so long */
#define FIRST (100 * SLU_MS) /* the pause after a first failure */
#define MOST  (5 * SLU_SEC)  /* the longest pause after failures */

static const struct slu_backoff backoff = { .kind = SLU_BACKOFF_EXPONENTIAL, .jitter = SLU_JITTER_FULL, .base = FIRST, .max = MOST };

const struct handover_ops *const handover_drivers[] = { &handover_postgres, &handover_file, &handover_s3, &handover_azure, NULL };

/* ---- Items ---- */

struct handover_item *
handover_items_add(struct handover_items *items)
{
	if (!mem_room(&items->p, &items->max, items->n + 1, sizeof *items->p))
		return NULL;
	items->p[items->n] = (struct handover_item){ 0 };
	return &items->p[items->n++];
}

static void
item_release(struct handover_item *item)
{
	mem_free(item->name);
	mem_free(item->space);
	mem_free(item->queue);
	mem_free(item->tag);
	mem_free(item->options);
	mem_free(item->payload);
	mem_free(item->shard);
}

void
handover_items_release(struct handover_items *items)
{
	for (uint32_t i = 0; i < items->n; i++)
		item_release(&items->p[i]);
	mem_free(items->p);
	*items = (struct handover_items){ 0 };
}

void
handover_items_cut(struct handover_items *items, uint32_t i)
{
	item_release(&items->p[i]);
	memmove(&items->p[i], &items->p[i + 1], (items->n - i - 1) * sizeof *items->p);
	items->n--;
}

int
handover_new_uuid(char out[static HANDOVER_UUID], struct slu_err *err)
{
	uint8_t b[16];
	const int rc = hash_random(b, sizeof b, err);

	if (rc)
		return rc;
	(void)snprintf(out, HANDOVER_UUID, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2], b[3], b[4],
		       b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
	return 0;
}

/* Moves an item to another list. Returns false if memory is out. */
static bool
pass(struct handover_items *to, struct handover_item *item)
{
	struct handover_item *const there = handover_items_add(to);

	if (!there)
		return false;
	*there = *item;
	*item = (struct handover_item){ 0 };
	return true;
}

/* ---- Batches on their way ---- */

static void
batch_free(struct handover_batch *b)
{
	handover_items_release(&b->items);
	mem_free(b);
}

static void
drop_batch(struct handover *in, uint32_t i)
{
	batch_free(in->batches[i]);
	in->batches[i] = in->batches[--in->n_batches];
}

static void
drop_batches(struct handover *in)
{
	while (in->n_batches > 0)
		drop_batch(in, in->n_batches - 1);
}

static struct handover_batch *
add_batch(struct handover *in, const char *shard, uint64_t number)
{
	struct handover_batch *const b = mem_zalloc(sizeof *b);

	if (!b || !mem_room(&in->batches, &in->max_batches, in->n_batches + 1, sizeof(struct handover_batch *))) {
		mem_free(b);
		return NULL;
	}
	(void)snprintf(b->shard, sizeof b->shard, "%s", shard);
	b->number = number;
	in->batches[in->n_batches++] = b;
	return b;
}

static bool
is_on_its_way(const struct handover *in, const char *shard)
{
	for (uint32_t i = 0; i < in->n_batches; i++)
		if (strcmp(in->batches[i]->shard, shard) == 0)
			return true;
	return false;
}

/* ---- Queues that are left out ---- */

static struct handover_queue *
find_queue(struct handover *in, const struct handover_item *item)
{
	char name[HANDOVER_QUEUE];

	(void)snprintf(name, sizeof name, "%.200s/%.200s", item->space, item->queue);
	for (uint32_t i = 0; i < in->n_queues; i++)
		if (strcmp(in->queues[i].name, name) == 0)
			return &in->queues[i];
	if (!mem_room(&in->queues, &in->max_queues, in->n_queues + 1, sizeof *in->queues))
		return NULL;
	in->queues[in->n_queues] = (struct handover_queue){ 0 };
	memcpy(in->queues[in->n_queues].name, name, sizeof name);
	return &in->queues[in->n_queues++];
}

static bool
is_same_queue(const struct handover_item *a, const struct handover_item *b)
{
	return strcmp(a->queue, b->queue) == 0 && strcmp(a->space, b->space) == 0;
}

/* The queue had room for the items before this one: they go alone next time. Without room the queue rests. */
static void
rest_queue(struct handover *in, const struct handover_batch *b, uint32_t failed)
{
	const struct handover_item *const item = &b->items.p[failed];
	struct handover_queue *const q = find_queue(in, item);

	if (!q)
		return;
	q->limit = 0;
	for (uint32_t i = 0; i < failed; i++)
		q->limit += is_same_queue(&b->items.p[i], item);
	if (q->limit == 0)
		q->rests = clock_mono(&clock_system) + REST;
}

/* failed: the item that the server named; without one all queues of the batch rest. */
static void
rest_queues(struct handover *in, const struct handover_batch *b, int64_t failed)
{
	if (failed >= 0 && failed < b->items.n) {
		rest_queue(in, b, (uint32_t)failed);
		return;
	}
	for (uint32_t i = 0; i < b->items.n; i++) {
		struct handover_queue *const q = find_queue(in, &b->items.p[i]);

		if (q)
			q->rests = clock_mono(&clock_system) + REST;
	}
}

/* The queues that rest, and those whose shard has a batch on its way (HANDOVER-2). */
static uint32_t
list_skipped(struct handover *in, slu_time now)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < in->n_queues && n < HANDOVER_SKIP; i++)
		if (in->queues[i].rests > now || (in->queues[i].shard[0] && is_on_its_way(in, in->queues[i].shard)))
			in->skip[n++] = in->queues[i].name;
	return n;
}

/* ---- The outcome of a batch ---- */

/* HANDOVER-5 */
static int
refuse(struct handover *in, struct handover_batch *b, uint32_t i, const char *why, struct slu_err *err)
{
	const struct handover_item *const item = &b->items.p[i];
	const int rc = in->ops->refuse(in->place, item, why, err);

	if (rc)
		return rc;
	log_warn(in->log, "message refused", F_STR("namespace", item->space), F_STR("queue", item->queue), F_STR("why", why));
	in->counts->refused++;
	handover_items_cut(&b->items, i);
	return 0;
}

static int
accepted(struct handover *in, const struct handover_batch *b, struct slu_err *err)
{
	in->counts->accepted += b->items.n;
	in->counts->batches++;
	return in->ops->end(in->place, b, err);
}

/* HANDOVER-4: uses the number of the batch up, unless the batch was accepted. */
static enum handover_fate
void_batch(struct handover *in, struct handover_batch *b, struct slu_err *err)
{
	struct handover_answer a = { 0 };
	const int rc = handover_send(in, b, false, &a, err);

	if (rc)
		return HANDOVER_LATER;
	return a.accepted || (a.last == b->number && a.messages == 0) ? HANDOVER_RELEASED : HANDOVER_ACCEPTED;
}

static void
put_off(struct handover *in, struct handover_batch *b, const struct slu_err *why)
{
	if (b->failures++ == 0)
		log_warn(in->log, "batch put off", F_STR("shard", b->shard), F_U64("batch", b->number), F_STR("why", why->text));
	b->again = clock_mono(&clock_system) + backoff_delay(&backoff, b->failures, hash_next_random(&in->random));
}

/* HANDOVER-6: the answer of a batch that the server knows. */
static enum handover_fate
judge_known(const struct handover_batch *b, const struct handover_answer *a)
{
	if (a->last > b->number)
		return HANDOVER_BEHIND;
	return a->messages == 0 ? HANDOVER_RELEASED : HANDOVER_ACCEPTED;
}

static enum handover_fate
judge(struct handover *in, struct handover_batch *b, int rc, const struct handover_answer *a, struct slu_err *err)
{
	const enum handover_fate fate = handover_fate(rc, a->index);

	if (!rc)
		return a->accepted ? HANDOVER_ACCEPTED : judge_known(b, a);
	if (fate == HANDOVER_RESTS)
		rest_queues(in, b, a->index);
	if (fate == HANDOVER_MOVED)
		in->n_queues = 0; /* asks again where queues live */
	if (fate == HANDOVER_RESTS || fate == HANDOVER_MOVED)
		return void_batch(in, b, err);
	return fate;
}

/* Sends a batch and does what its outcome asks for. Sets *ended if the batch is no longer on its way. */
static int
try_batch(struct handover *in, struct handover_batch *b, bool *ended, struct slu_err *err)
{
	struct handover_answer a = { .index = -1 };
	struct slu_err why = { 0 };
	const int rc = handover_send(in, b, true, &a, &why);
	const enum handover_fate fate = judge(in, b, rc, &a, &why);

	*ended = true;
	switch (fate) {
	case HANDOVER_ACCEPTED:
		return accepted(in, b, err);
	case HANDOVER_RELEASED:
		return in->ops->release(in->place, b, err);
	case HANDOVER_BEHIND:
		log_warn(in->log, "server is ahead", F_STR("shard", b->shard), F_U64("batch", b->number), F_U64("last", a.last));
		if (in->ops->raise(in->place, a.last, err))
			return SLU_EDOWN;
		return in->ops->release(in->place, b, err);
	case HANDOVER_REFUSED:
		*ended = false;
		return refuse(in, b, (uint32_t)a.index, why.text, err);
	case HANDOVER_FATAL:
		*err = why;
		in->fatal = true;
		return rc;
	default:
		*ended = false;
		put_off(in, b, &why);
		return 0;
	}
}

/* Sends the batches whose time has come. */
static int
send_batches(struct handover *in, struct slu_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < in->n_batches && !rc;) {
		bool ended = false;

		if (in->batches[i]->again > clock_mono(&clock_system)) {
			i++;
			continue;
		}
		in->active = clock_mono(&clock_system);
		rc = try_batch(in, in->batches[i], &ended, err);
		if (!rc && ended)
			drop_batch(in, i);
		else
			i += in->batches[i]->again > 0;
	}
	return rc;
}

/* ---- New items ---- */

static int
check_sizes(struct handover *in, struct handover_items *items, struct slu_err *err)
{
	char why[HANDOVER_WHY];
	int rc = 0;

	for (uint32_t i = 0; i < items->n && !rc;) {
		if (items->p[i].size <= HANDOVER_PAYLOAD_MAX) {
			i++;
			continue;
		}
		(void)snprintf(why, sizeof why, "payload of %zu bytes; expected at most %d", items->p[i].size, HANDOVER_PAYLOAD_MAX);
		rc = in->ops->refuse(in->place, &items->p[i], why, err);
		in->counts->refused += !rc;
		handover_items_cut(items, i);
	}
	return rc;
}

static bool
is_left_out(struct handover *in, const struct handover_item *item)
{
	struct handover_queue *const q = find_queue(in, item);

	if (q)
		q->seen++;
	return is_on_its_way(in, item->shard) || (q && q->limit && q->seen > q->limit);
}

/* Leaves out items whose shard has a batch on its way (HANDOVER-2), and those that their queue has no room for. */
static void
leave_out(struct handover *in, struct handover_items *items)
{
	for (uint32_t i = 0; i < items->n;)
		if (is_left_out(in, &items->p[i]))
			handover_items_cut(items, i);
		else
			i++;
	for (uint32_t i = 0; i < in->n_queues; i++) {
		in->queues[i].limit = in->queues[i].seen > 0 ? 0 : in->queues[i].limit;
		in->queues[i].seen = 0;
	}
}

/* Marks the items that go to the shard of the first one, and sends them. */
static int
mark_shard(struct handover *in, struct handover_items *items, struct slu_err *err)
{
	struct handover_items same = { 0 }, rest = { 0 };
	char shard[HANDOVER_SHARD];
	struct handover_batch *b = NULL;
	bool fits = true;
	int rc;

	memcpy(shard, items->p[0].shard, strlen(items->p[0].shard) + 1);
	for (uint32_t i = 0; i < items->n; i++)
		fits = pass(strcmp(items->p[i].shard, shard) == 0 ? &same : &rest, &items->p[i]) && fits;
	handover_items_release(items);
	*items = rest;
	rc = fits ? in->ops->mark(in->place, shard, &same, err) : slu_fail(err, SLU_ENOMEM, "out of memory");
	for (uint32_t i = 0; i < same.n && !rc;)
		if (same.p[i].batch)
			i++;
		else
			handover_items_cut(&same, i);
	if (!rc && same.n > 0)
		b = add_batch(in, shard, same.p[0].batch);
	if (b)
		b->items = same;
	else
		handover_items_release(&same);
	return rc || b || same.n == 0 ? rc : slu_fail(err, SLU_ENOMEM, "out of memory");
}

static int
take_new(struct handover *in, struct slu_err *err)
{
	struct handover_items items = { 0 };
	const slu_time now = clock_mono(&clock_system);
	const uint32_t skipped = list_skipped(in, now);
	int rc = in->ops->find(in->place, in->skip, skipped, &items, err);

	in->looked = now;
	in->found = items.n;
	if (!rc)
		rc = check_sizes(in, &items, err);
	if (!rc && items.n > 0)
		rc = handover_find_shards(in, &items, err);
	if (!rc)
		leave_out(in, &items);
	if (!rc && items.n > 0)
		in->active = clock_mono(&clock_system);
	while (!rc && items.n > 0)
		rc = mark_shard(in, &items, err);
	handover_items_release(&items);
	return rc;
}

struct handover_queue *
handover_queue_of(struct handover *in, const struct handover_item *item)
{
	return find_queue(in, item);
}

/* ---- The loop ---- */

/* HANDOVER-3 */
static int
begin(struct handover *in, struct slu_err *err)
{
	struct handover_items marked = { 0 };
	struct handover_batch *b = NULL;
	int rc;

	drop_batches(in);
	rc = in->ops->begin(in->place, in->source, &marked, err);
	for (uint32_t i = 0; i < marked.n && !rc; i++) {
		struct handover_item *const item = &marked.p[i];

		if (!b || b->number != item->batch || strcmp(b->shard, item->shard) != 0)
			b = add_batch(in, item->shard, item->batch);
		if (!b || !pass(&b->items, item))
			rc = slu_fail(err, SLU_ENOMEM, "out of memory");
	}
	handover_items_release(&marked);
	return rc;
}

static bool
is_stopped(int stop_fd, int fd, slu_time wait)
{
	struct pollfd p[2] = { { .fd = stop_fd, .events = POLLIN }, { .fd = fd, .events = POLLIN } };
	const int ms = (int)((wait + SLU_MS - 1) / SLU_MS);

	return poll(p, 2, ms < 0 ? 0 : ms) > 0 && p[0].revents;
}

/* How long until a batch is sent again, at most `most`. */
static slu_time
until_again(const struct handover *in, slu_time most)
{
	const slu_time now = clock_mono(&clock_system);

	for (uint32_t i = 0; i < in->n_batches; i++)
		if (in->batches[i]->again - now < most)
			most = in->batches[i]->again - now;
	return most > 0 ? most : 0;
}

static bool
rests(struct handover *in, int stop_fd)
{
	slu_time wait = LOOK;
	int fd = -1;

	if (clock_mono(&clock_system) - in->active > BUSY)
		wait = in->ops->sleep(in->place, &fd);
	return is_stopped(stop_fd, fd, until_again(in, wait));
}

/* HANDOVER-7 */
static bool
paces(const struct handover *in, int stop_fd)
{
	const slu_time wait = in->looked + LOOK - clock_mono(&clock_system);

	return in->found < HANDOVER_BATCH && wait > 0 && is_stopped(stop_fd, -1, wait);
}

/* One round. Returns a code if the place failed. */
static int
work(struct handover *in, struct slu_err *err)
{
	int rc = 0;

	if (!in->begun) {
		rc = begin(in, err);
		if (rc)
			return rc;
		if (in->failures > 0)
			log_info(in->log, "inbox works again");
		in->begun = true;
		in->counts->works = true;
		in->failures = 0;
	}
	rc = send_batches(in, err);
	if (!rc)
		rc = take_new(in, err);
	return rc ? rc : send_batches(in, err);
}

static bool
is_final(const struct handover *in, int rc)
{
	return in->fatal || rc == SLU_EINVAL || rc == SLU_ENOTFOUND || rc == SLU_EFORBIDDEN || rc == SLU_EAUTH;
}

static bool
is_empty(const struct handover *in, slu_time before)
{
	return in->n_batches == 0 && in->active == before && !(in->ops->waits && in->ops->waits(in->place));
}

int
handover_run(struct handover *in, int stop_fd, bool once, struct slu_err *err)
{
	while (!is_stopped(stop_fd, -1, 0)) {
		const slu_time before = in->active;
		const int rc = work(in, err);

		if (rc && is_final(in, rc))
			return rc;
		if (rc) {
			in->begun = false;
			in->counts->works = false;
			if (in->failures++ == 0)
				log_warn(in->log, "inbox waits", F_STR("why", err->text));
			if (is_stopped(stop_fd, -1, backoff_delay(&backoff, in->failures, hash_next_random(&in->random))))
				break;
			continue;
		}
		if (once && is_empty(in, before))
			break;
		if (!once && (in->active == before ? rests(in, stop_fd) : paces(in, stop_fd)))
			break;
		if (once && in->active == before && is_stopped(stop_fd, -1, until_again(in, LOOK)))
			break;
	}
	return 0;
}

/* ---- Opening ---- */

const struct handover_ops *
handover_driver(const char *url)
{
	for (const struct handover_ops *const *d = handover_drivers; *d; d++) {
		const size_t n = strlen((*d)->scheme);

		if (strncmp(url, (*d)->scheme, n) == 0 && strncmp(url + n, "://", 3) == 0)
			return *d;
	}
	return NULL;
}

int
handover_open(struct handover **out, const struct handover_conf *conf, const struct handover_server *server, struct slu_err *err)
{
	const struct handover_ops *const ops = handover_driver(conf->url);
	struct handover *in;
	int rc;

	if (!ops)
		return slu_fail(err, SLU_EINVAL, "invalid place: %.100s; expected postgres://HOST/DATABASE, file:///FOLDER, s3://BUCKET or azure://ACCOUNT/CONTAINER", conf->url);
	in = mem_zalloc(sizeof *in);
	if (!in)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	in->ops = ops;
	in->server = *server;
	in->log = conf->log;
	in->counts = conf->counts ? conf->counts : &in->own_counts;
	buf_init(&in->body, HANDOVER_BODY);
	rc = hash_random(&in->random, sizeof in->random, err);
	in->random |= 1;
	if (!rc)
		rc = ops->open(&in->place, conf, err);
	if (rc)
		handover_close(in);
	else
		*out = in;
	return rc;
}

void
handover_close(struct handover *in)
{
	if (!in)
		return;
	in->counts->works = false;
	if (in->place)
		in->ops->close(in->place);
	drop_batches(in);
	mem_free(in->batches);
	mem_free(in->queues);
	buf_release(&in->body);
	mem_free(in);
}

const struct handover_counts *
handover_counts(const struct handover *in)
{
	return in->counts;
}
