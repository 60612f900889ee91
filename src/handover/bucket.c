/*
 * bucket.c - an inbox in a bucket of S3 or a container of Azure, found by polling.
 *
 *      inbox/NAMESPACE/QUEUE/NAME         a message; NAME.json beside it has its options
 *      taken/00000000000000000007         batch 7 (parcel.h); empty: it has ended
 *      refused/NAMESPACE/QUEUE/NAME       a message that the server has refused; NAME.why has the reason
 *      state/source                       uuid of the place
 *      state/holder                       uuid of the inbox that works, and a number that rises
 *
 *  BUCKET-1  One list finds the messages of all queues.
 *  BUCKET-2  A batch is put under the next number if that name is absent, with the bytes of its messages. So two inboxes
 *      never use one number for two batches. The newest batch is emptied and not removed: a name that was
 *      once taken stays taken, as in LINE-2. After the put the names are listed once more: a higher number means that
 *      this inbox has an old view, and it begins anew.
 *  BUCKET-3  Name, ETag and time of a message are remembered in its batch until the bucket confirms that the message is
 *      removed. It is removed only with that ETag, if the bucket compares it: an object that was written again is another message.
 *  BUCKET-4  state/holder keeps a second inbox from working at the same time. It is a courtesy: BUCKET-2 is the safety.
 */
#include "handover/handover_private.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "handover/parcel.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEAT (3 * SLU_SEC)  /* between two writes of state/holder */
#define HOLD (10 * SLU_SEC) /* a holder that does not rise for so long has ended */

enum {
	OPTIONS_MAX = 256 << 10, /* bytes of a .json */
	PARCEL_MAX = 48 << 20,
	DIGITS = 20
};

/* A message in a batch, or one whose removal is not confirmed. */
struct bucket_taken {
	char *name;
	char *tag;
};

struct handover_place {
	struct store *store;
	struct slu_log *log;
	struct handover_conf conf;
	char source[HANDOVER_UUID];
	char holder[HANDOVER_UUID];
	uint64_t beat;
	slu_time beat_at;              /* when state/holder is written again */
	char seen[HANDOVER_UUID + 32]; /* another holder, as it was last read */
	slu_time seen_at;
	uint64_t number; /* the highest that is known */
	uint64_t ended;  /* an emptied batch that may go; 0: none */
	slu_time look;   /* when to list again */
	uint64_t random;
	struct bucket_taken *taken;
	uint32_t n_taken, max_taken;
};

static int
fail(struct slu_err *err, const struct slu_err *why)
{
	return slu_fail(err, why->code ? why->code : SLU_EDOWN, "%.200s", why->text);
}

/* ---- Objects ---- */

/* Sets *out to a text of at most `most` bytes, with a NUL behind. Returns SLU_ENOTFOUND, SLU_ETOOBIG. */
static int
get_text(const struct handover_place *p, const char *name, size_t most, char **out, size_t *n, struct slu_err *err)
{
	struct slu_err why = { 0 };
	enum store_result r;
	struct buf b;
	int rc = 0;

	buf_init(&b, most + 1);
	r = store_get(p->store, name, 0, SIZE_MAX, &b, NULL, &why);
	if (r == STORE_ABSENT)
		rc = slu_fail(err, SLU_ENOTFOUND, "%.100s: absent", name);
	else if (r != STORE_OK)
		rc = fail(err, &why);
	*n = b.n;
	*out = rc ? NULL : mem_alloc(b.n + 1);
	if (*out) {
		memcpy(*out, b.n ? b.p : "", b.n);
		(*out)[b.n] = '\0';
	} else if (!rc) {
		rc = slu_fail(err, SLU_ENOMEM, "out of memory");
	}
	buf_release(&b);
	return rc;
}

/* Returns 0, SLU_EEXISTS if the name is taken, or the code of the store. */
static int
put_object(const struct handover_place *p, const char *name, struct slice bytes, enum store_mode mode, struct slu_err *err)
{
	struct slu_err why = { 0 };
	const enum store_result r = store_put(p->store, name, bytes, mode, &why);

	if (r == STORE_EXISTS)
		return slu_fail(err, SLU_EEXISTS, "%.100s: exists", name);
	return r == STORE_OK ? 0 : fail(err, &why);
}

static int
remove_object(const struct handover_place *p, const char *name, const char *tag, struct slu_err *err)
{
	struct slu_err why = { 0 };
	const enum store_result r = tag ? store_remove_if(p->store, name, tag, &why) : store_remove(p->store, name, &why);

	return r == STORE_FAILED || r == STORE_REFUSED ? fail(err, &why) : 0;
}

static void
name_batch(uint64_t number, char out[static STORE_NAME_MAX])
{
	(void)snprintf(out, STORE_NAME_MAX, "taken/%0*" PRIu64, DIGITS, number);
}

/* inbox/NAMESPACE/QUEUE/NAME, with another folder and an ending. Returns false if that is too long. */
static bool
name_item(const char *folder, const struct handover_item *item, const char *ending, char out[static STORE_NAME_MAX])
{
	const int n = snprintf(out, STORE_NAME_MAX, "%s/%s/%s/%s%s", folder, item->space, item->queue, item->name, ending);

	return n > 0 && n < STORE_NAME_MAX;
}

/* ---- What is taken ---- */

static bool
is_taken(const struct handover_place *p, const char *name, const char *tag)
{
	for (uint32_t i = 0; i < p->n_taken; i++)
		if (strcmp(p->taken[i].name, name) == 0 && strcmp(p->taken[i].tag, tag) == 0)
			return true;
	return false;
}

static void
forget(struct handover_place *p, uint32_t i)
{
	mem_free(p->taken[i].name);
	mem_free(p->taken[i].tag);
	p->taken[i] = p->taken[--p->n_taken];
}

static void
forget_item(struct handover_place *p, const struct handover_item *item)
{
	char name[STORE_NAME_MAX];

	(void)name_item("inbox", item, "", name);
	for (uint32_t i = 0; i < p->n_taken; i++)
		if (strcmp(p->taken[i].name, name) == 0 && strcmp(p->taken[i].tag, item->tag) == 0)
			forget(p, i--);
}

static int
remember(struct handover_place *p, const struct handover_item *item, struct slu_err *err)
{
	char name[STORE_NAME_MAX];
	struct bucket_taken t = { 0 };

	(void)name_item("inbox", item, "", name);
	if (mem_room(&p->taken, &p->max_taken, p->n_taken + 1, sizeof *p->taken)) {
		t.name = mem_strdup(name);
		t.tag = mem_strdup(item->tag);
	}
	if (t.name && t.tag) {
		p->taken[p->n_taken++] = t;
		return 0;
	}
	mem_free(t.name);
	mem_free(t.tag);
	return slu_fail(err, SLU_ENOMEM, "out of memory");
}

/* ---- Holding the place (BUCKET-4) ---- */

static int
write_holder(struct handover_place *p, struct slu_err *err)
{
	char text[HANDOVER_UUID + 32];

	(void)snprintf(text, sizeof text, "%s %" PRIu64 "\n", p->holder, ++p->beat);
	p->beat_at = clock_mono(&clock_system) + BEAT;
	return put_object(p, "state/holder", slice_of(text), STORE_REPLACE, err);
}

/* Sets *other to whether another inbox holds the place, as far as this one knows. */
static int
read_holder(struct handover_place *p, bool *other, struct slu_err *err)
{
	const slu_time now = clock_mono(&clock_system);
	char *text = NULL;
	size_t n;
	const int rc = get_text(p, "state/holder", sizeof p->seen - 1, &text, &n, err);

	*other = false;
	if (rc == SLU_ENOTFOUND)
		return 0;
	if (rc)
		return rc;
	*other = n > 1 && strncmp(text, p->holder, HANDOVER_UUID - 1) != 0;
	if (*other && strcmp(text, p->seen) != 0) {
		(void)snprintf(p->seen, sizeof p->seen, "%s", text);
		p->seen_at = now;
	} else if (*other && now - p->seen_at > HOLD) {
		*other = false;
	}
	mem_free(text);
	return 0;
}

static int
hold(struct handover_place *p, struct slu_err *err)
{
	bool other;
	int rc = read_holder(p, &other, err);

	if (!rc && other)
		rc = slu_fail(err, SLU_EBUSY, "another inbox is at work on this bucket");
	return rc ? rc : write_holder(p, err);
}

static int
beat(struct handover_place *p, struct slu_err *err)
{
	bool other;
	int rc;

	if (clock_mono(&clock_system) < p->beat_at)
		return 0;
	rc = read_holder(p, &other, err);
	if (!rc && other)
		rc = slu_fail(err, SLU_ELEASE, "another inbox has taken the bucket");
	return rc ? rc : write_holder(p, err);
}

/* ---- Begin ---- */

static int
load_source(struct handover_place *p, struct slu_err *err)
{
	char fresh[HANDOVER_UUID], *text = NULL;
	size_t n = 0;
	int rc = get_text(p, "state/source", HANDOVER_UUID, &text, &n, err);

	if (rc == SLU_ENOTFOUND) {
		rc = handover_new_uuid(fresh, err);
		if (!rc)
			rc = put_object(p, "state/source", slice_of(fresh), STORE_IF_ABSENT, err);
		if (!rc || rc == SLU_EEXISTS)
			rc = get_text(p, "state/source", HANDOVER_UUID, &text, &n, err);
	}
	if (!rc && n != HANDOVER_UUID - 1)
		rc = slu_fail(err, SLU_ECORRUPT, "state/source: damaged");
	if (!rc)
		memcpy(p->source, text, HANDOVER_UUID);
	mem_free(text);
	return rc;
}

static int
load_batch(struct handover_place *p, uint64_t number, struct handover_items *marked, struct slu_err *err)
{
	const uint32_t before = marked->n;
	char name[STORE_NAME_MAX], *text = NULL;
	size_t n;
	int rc;

	name_batch(number, name);
	rc = get_text(p, name, PARCEL_MAX, &text, &n, err);
	if (!rc)
		rc = parcel_read((struct slice){ text, n }, number, marked, err);
	for (uint32_t i = before; !rc && i < marked->n; i++)
		rc = remember(p, &marked->p[i], err);
	mem_free(text);
	return rc == SLU_ENOTFOUND ? 0 : rc; /* it has ended meanwhile */
}

/* Lists the batches behind `after`. */
static int
list_batches(const struct handover_place *p, const char *after, struct store_names *out, struct slu_err *err)
{
	struct slu_err why = { 0 };

	return store_list(p->store, "taken/", after, STORE_PAGE_MAX, out, &why) == STORE_OK ? 0 : fail(err, &why);
}

static int
load_batches(struct handover_place *p, struct handover_items *marked, struct slu_err *err)
{
	char after[STORE_NAME_MAX] = "";
	struct store_names names = { 0 };
	int rc;

	p->ended = 0;
	do {
		rc = list_batches(p, after, &names, err);
		for (uint32_t i = 0; !rc && i < names.n; i++) {
			p->number = strtoull(names.names[i] + strlen("taken/"), NULL, 10);
			(void)snprintf(after, sizeof after, "%s", names.names[i]);
			rc = load_batch(p, p->number, marked, err);
		}
	} while (!rc && names.more);
	store_names_release(&names);
	return rc;
}

static int
begin(struct handover_place *p, char source[static HANDOVER_UUID], struct handover_items *marked, struct slu_err *err)
{
	int rc = hold(p, err);

	while (p->n_taken > 0)
		forget(p, p->n_taken - 1);
	p->look = 0;
	if (!rc)
		rc = load_source(p, err);
	if (!rc)
		rc = load_batches(p, marked, err);
	memcpy(source, p->source, HANDOVER_UUID);
	return rc;
}

/* ---- New items ---- */

/* Splits inbox/NAMESPACE/QUEUE/NAME. Returns false if the name has another form. */
static bool
split_name(const char *name, struct handover_item *item)
{
	struct slice rest = slice_of(name), part[3];

	for (unsigned i = 0; i < COUNT(part); i++)
		if (!slice_cut(&rest, '/', &part[i]) || part[i].n == 0)
			return false;
	if (rest.n == 0 || !handover_is_message(strrchr(name, '/') + 1))
		return false;
	item->space = mem_alloc(part[1].n + 1);
	item->queue = mem_alloc(part[2].n + 1);
	item->name = mem_strdup(rest.p);
	if (item->space)
		(void)snprintf(item->space, part[1].n + 1, "%.*s", (int)part[1].n, part[1].p);
	if (item->queue)
		(void)snprintf(item->queue, part[2].n + 1, "%.*s", (int)part[2].n, part[2].p);
	return true;
}

static bool
is_skipped(const struct handover_item *item, const char *const *skip, uint32_t n)
{
	char name[HANDOVER_QUEUE];

	(void)snprintf(name, sizeof name, "%.200s/%.200s", item->space, item->queue);
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(skip[i], name) == 0)
			return true;
	return false;
}

/* Whether the page has the options of the message, or the next page may have them. */
static bool
may_have_options(const struct store_names *page, const char *options)
{
	for (uint32_t i = 0; i < page->n; i++)
		if (strcmp(page->names[i], options) == 0)
			return true;
	return page->more && page->n > 0 && strcmp(page->names[page->n - 1], options) < 0;
}

static int
load_options(const struct handover_place *p, const struct store_names *page, struct handover_item *item, struct slu_err *err)
{
	char name[STORE_NAME_MAX];
	size_t n;
	int rc;

	if (!name_item("inbox", item, ".json", name) || !may_have_options(page, name))
		return 0;
	rc = get_text(p, name, OPTIONS_MAX, &item->options, &n, err);
	if (rc == SLU_ETOOBIG)
		item->options = mem_strdup("too large");
	handover_check_options(item);
	return rc == SLU_ENOTFOUND || rc == SLU_ETOOBIG ? 0 : rc;
}

/* Loads a message. SLU_ENOTFOUND: it has gone. */
static int
load_item(const struct handover_place *p, const struct store_names *page, const char *name, struct handover_item *item,
	  struct slu_err *err)
{
	int rc = get_text(p, name, HANDOVER_PAYLOAD_MAX, &item->payload, &item->size, err);

	if (rc == SLU_ETOOBIG) {
		item->size = HANDOVER_PAYLOAD_MAX + 1;
		return 0;
	}
	return rc ? rc : load_options(p, page, item, err);
}

static int
take_name(const struct handover_place *p, const struct store_names *page, uint32_t at, const char *const *skip, uint32_t n,
	  struct handover_items *out, struct slu_err *err)
{
	struct handover_item *const item = handover_items_add(out);
	int rc;

	if (!item)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	if (is_taken(p, page->names[at], page->tags[at]) || !split_name(page->names[at], item)) {
		handover_items_cut(out, out->n - 1);
		return 0;
	}
	item->tag = mem_strdup(page->tags[at]);
	rc = item->space && item->queue && item->name && item->tag ? 0 : slu_fail(err, SLU_ENOMEM, "out of memory");
	if (!rc && is_skipped(item, skip, n))
		rc = SLU_ENOTFOUND;
	if (!rc)
		rc = load_item(p, page, page->names[at], item, err);
	if (rc)
		handover_items_cut(out, out->n - 1);
	return rc == SLU_ENOTFOUND ? 0 : rc;
}

static bool
is_full(const struct handover_items *items)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < items->n; i++)
		bytes += items->p[i].size;
	return items->n >= HANDOVER_BATCH || bytes >= HANDOVER_BATCH_BYTES;
}

/* BUCKET-1 */
static int
look(const struct handover_place *p, const char *const *skip, uint32_t n, struct handover_items *out, struct slu_err *err)
{
	char after[STORE_NAME_MAX] = "";
	struct store_names page = { .with_tags = true };
	struct slu_err why = { 0 };
	int rc = 0;

	do {
		if (store_list(p->store, "inbox/", after, STORE_PAGE_MAX, &page, &why) != STORE_OK)
			rc = fail(err, &why);
		for (uint32_t i = 0; !rc && i < page.n && !is_full(out); i++)
			rc = take_name(p, &page, i, skip, n, out, err);
		if (!rc && page.n > 0)
			(void)snprintf(after, sizeof after, "%s", page.names[page.n - 1]);
	} while (!rc && page.more && !is_full(out));
	store_names_release(&page);
	return rc;
}

static int
find(struct handover_place *p, const char *const *skip, uint32_t n, struct handover_items *out, struct slu_err *err)
{
	const slu_time now = clock_mono(&clock_system);
	const slu_time jitter = p->conf.poll_jitter;
	int rc = beat(p, err);

	if (rc || now < p->look)
		return rc;
	rc = look(p, skip, n, out, err);
	p->look = out->n > 0 ? 0 : now + p->conf.poll_interval;
	if (p->look && jitter)
		p->look += (slu_time)(hash_next_random(&p->random) % (uint64_t)jitter);
	return rc;
}

static slu_time
sleep_until_look(struct handover_place *p, int *fd)
{
	const slu_time now = clock_mono(&clock_system);
	const slu_time due = p->look < p->beat_at ? p->look : p->beat_at;

	*fd = -1;
	return due > now ? due - now : 0;
}

/* ---- Batches ---- */

/* BUCKET-2: this inbox has an old view if a higher number is there. */
static int
check_newest(const struct handover_place *p, const char *mine, struct slu_err *err)
{
	struct store_names names = { 0 };
	int rc = list_batches(p, mine, &names, err);

	if (!rc && names.n > 0) {
		rc = remove_object(p, mine, NULL, err);
		if (!rc)
			rc = slu_fail(err, SLU_ELEASE, "another inbox has taken the bucket");
	}
	store_names_release(&names);
	return rc;
}

static int
mark(struct handover_place *p, const char *shard, struct handover_items *items, struct slu_err *err)
{
	char name[STORE_NAME_MAX], old[STORE_NAME_MAX];
	struct buf b;
	int rc;

	name_batch(p->number + 1, name);
	buf_init(&b, PARCEL_MAX);
	parcel_write(&b, shard, items);
	rc = b.failed ? slu_fail(err, SLU_ENOMEM, "out of memory") : put_object(p, name, buf_slice(&b), STORE_IF_ABSENT, err);
	buf_release(&b);
	if (rc == SLU_EEXISTS)
		return slu_fail(err, SLU_ELEASE, "another inbox has taken the bucket");
	if (!rc)
		rc = check_newest(p, name, err);
	if (rc)
		return rc;
	p->number++;
	for (uint32_t i = 0; !rc && i < items->n; i++) {
		items->p[i].batch = p->number;
		rc = remember(p, &items->p[i], err);
	}
	if (!rc && p->ended) {
		name_batch(p->ended, old);
		p->ended = 0;
		rc = remove_object(p, old, NULL, err);
	}
	return rc;
}

/* BUCKET-2: the newest batch is emptied, another one goes. */
static int
drop_batch(struct handover_place *p, uint64_t number, struct slu_err *err)
{
	char name[STORE_NAME_MAX];

	name_batch(number, name);
	if (number != p->number)
		return remove_object(p, name, NULL, err);
	p->ended = number;
	return put_object(p, name, (struct slice){ 0 }, STORE_REPLACE, err);
}

/* BUCKET-3. The options go first: without the message they are nothing. */
static int
remove_item(struct handover_place *p, const struct handover_item *item, struct slu_err *err)
{
	char name[STORE_NAME_MAX];
	int rc = 0;

	if (item->options && name_item("inbox", item, ".json", name))
		rc = remove_object(p, name, NULL, err);
	(void)name_item("inbox", item, "", name);
	if (!rc)
		rc = remove_object(p, name, item->tag, err);
	if (!rc)
		forget_item(p, item);
	return rc;
}

static int
end(struct handover_place *p, const struct handover_batch *b, struct slu_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < b->items.n; i++)
		rc = remove_item(p, &b->items.p[i], err);
	return rc ? SLU_EDOWN : drop_batch(p, b->number, err);
}

static int
release(struct handover_place *p, const struct handover_batch *b, struct slu_err *err)
{
	const int rc = drop_batch(p, b->number, err);

	for (uint32_t i = 0; !rc && i < b->items.n; i++)
		forget_item(p, &b->items.p[i]);
	p->look = 0;
	return rc;
}

static int
refuse(struct handover_place *p, const struct handover_item *item, const char *why, struct slu_err *err)
{
	char name[STORE_NAME_MAX], reason[STORE_NAME_MAX];
	int rc;

	if (!name_item("refused", item, "", name) || !name_item("refused", item, ".why", reason))
		return slu_fail(err, SLU_EINVAL, "the name is too long: %.100s", item->name);
	rc = put_object(p, reason, slice_of(why), STORE_REPLACE, err);
	if (!rc && item->payload)
		rc = put_object(p, name, (struct slice){ item->payload, item->size }, STORE_IF_ABSENT, err);
	if (rc && rc != SLU_EEXISTS)
		return rc;
	return item->payload ? remove_item(p, item, err) : remember(p, item, err);
}

static int
raise_number(struct handover_place *p, uint64_t above, struct slu_err *err)
{
	(void)err; /* the next batch makes it durable */
	p->number = above > p->number ? above : p->number;
	return 0;
}

/* ---- Opening ---- */

static void
close_place(struct handover_place *p)
{
	struct slu_err err = { 0 };

	if (p->store && p->beat > 0)
		(void)put_object(p, "state/holder", SLICE("-"), STORE_REPLACE, &err); /* another one may begin at once */
	while (p->n_taken > 0)
		forget(p, p->n_taken - 1);
	mem_free(p->taken);
	store_close(p->store);
	mem_free(p);
}

static int
open_place(struct handover_place **out, const struct handover_conf *conf, struct slu_err *err)
{
	const struct store_conf sc = { .url = conf->url, .log = conf->log };
	struct handover_place *const p = mem_zalloc(sizeof *p);
	int rc = p ? handover_new_uuid(p->holder, err) : slu_fail(err, SLU_ENOMEM, "out of memory");

	if (!p)
		return rc;
	p->conf = *conf;
	p->log = conf->log;
	if (!rc)
		rc = hash_random(&p->random, sizeof p->random, err);
	p->random |= 1;
	if (!rc && store_open(&p->store, store_rows, &sc, err) != STORE_OK)
		rc = err->code ? (int)err->code : SLU_EDOWN;
	if (rc)
		close_place(p);
	else
		*out = p;
	return rc;
}

#define BUCKET(name)                       \
	{                                  \
		.scheme = name,            \
		.open = open_place,        \
		.close = close_place,      \
		.begin = begin,            \
		.find = find,              \
		.mark = mark,              \
		.end = end,                \
		.release = release,        \
		.refuse = refuse,          \
		.raise = raise_number,     \
		.sleep = sleep_until_look, \
	}

const struct handover_ops handover_s3 = BUCKET("s3");
const struct handover_ops handover_azure = BUCKET("azure");
