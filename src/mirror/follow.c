#include "mirror/follow.h"

#include "base/mem.h"
#include "mirror/mirror_private.h"
#include "wal/folder.h"
#include "wal/segment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum {
	PIECE = 4 << 20, /* bytes of a span that one request brings */
	PEEK = 64 << 10  /* bytes of a span: its head, if it has less than 8,000 groups */
};

struct follower {
	const struct follow_conf *conf;
	struct disk *disk;
	int folder, lock; /* -1 = not open */
	struct cache cache;
	struct heads heads;
	char boot[CACHE_BOOT];
	uint64_t brought; /* bytes of the last request */
	struct buf object;

	/* The line. */
	uint64_t *spans; /* the first group of each span, rising */
	uint32_t n, max;
	uint64_t begin, last; /* where the log begins; its newest group */

	/* What is fetched. */
	uint64_t next;           /* the next group that the folder takes */
	uint64_t from;           /* the first group of an empty folder; 0 = the folder is not empty */
	struct line_mark before; /* of the group before; without a meaning if next == from */
	struct follow_facts facts;
};

/* ---- The folder ---- */

static int
take_lock(struct follower *f, struct slu_err *err)
{
	int rc;

	f->lock = f->disk->ops->open(f->disk, f->folder, "lock");
	if (f->lock == -ENOENT)
		f->lock = f->disk->ops->create(f->disk, f->folder, "lock");
	if (f->lock < 0)
		return disk_fail(f->lock, "open", "lock", err);
	rc = f->disk->ops->lock(f->disk, f->lock);
	if (rc == -EWOULDBLOCK)
		return slu_fail(err, SLU_EBUSY, "%s is in use", f->conf->folder);
	return rc ? disk_fail(rc, "lock", f->conf->folder, err) : 0;
}

static int
open_folder(struct follower *f, struct slu_err *err)
{
	f->folder = f->disk->ops->folder(f->disk, f->conf->folder);
	return f->folder < 0 ? disk_fail(f->folder, "open", f->conf->folder, err) : take_lock(f, err);
}

static int
open_cache(struct follower *f, struct slu_err *err)
{
	struct cache_conf cc = {
		.disk = f->disk,
		.folder = f->folder,
		.path = f->conf->folder,
		.log = f->conf->log,
		.shard = f->conf->shard,
		.boot = f->boot,
	};
	int rc;

	if (frontfolder_is_log(f->disk, f->folder))
		return slu_fail(err, SLU_ECORRUPT, "%s is a front folder: it may have more than the store", f->conf->folder);
	memcpy(cc.uuid, f->conf->uuid, sizeof cc.uuid);
	if (f->conf->boot)
		(void)snprintf(f->boot, sizeof f->boot, "%s", f->conf->boot);
	else
		mirror_boot(f->boot);
	rc = cache_open(&f->cache, &cc, err);
	return rc ? rc : heads_open(&f->heads, f->disk, f->folder, err);
}

static void
init(struct follower *f, const struct follow_conf *conf)
{
	*f = (struct follower){
		.conf = conf,
		.disk = conf->disk ? conf->disk : &disk_posix,
		.folder = -1,
		.lock = -1,
	};
	buf_init(&f->object, STORE_OBJECT_MAX);
}

static void
release(struct follower *f)
{
	cache_close(&f->cache);
	heads_close(&f->heads);
	if (f->lock >= 0)
		f->disk->ops->close(f->disk, f->lock);
	if (f->folder >= 0)
		f->disk->ops->close(f->disk, f->folder);
	buf_release(&f->object);
	mem_free(f->spans);
}

/* ---- The store ---- */

static int
may_ask(struct follower *f, struct slu_err *err)
{
	const uint64_t bytes = f->brought;

	f->brought = 0;
	if (!f->conf->goes_on || f->conf->goes_on(f->conf->arg, bytes))
		return 0;
	return slu_fail(err, SLU_ECANCELED, "the folder is wanted");
}

/* Appends at most max bytes of the object to f->object. */
static int
get(struct follower *f, const char *name, uint64_t at, size_t max, uint64_t *size, struct slu_err *err)
{
	const size_t had = f->object.n;
	enum store_result r;
	int rc = may_ask(f, err);

	if (rc)
		return rc;
	r = store_get(f->conf->store, name, at, max, &f->object, size, err);
	f->brought = f->object.n - had;
	if (r == STORE_ABSENT)
		return slu_fail(err, SLU_EBUSY, "%s is gone: the line has changed", name);
	return r == STORE_OK ? 0 : (int)err->code;
}

/* Reads a whole object, in pieces, so that the caller can end the call meanwhile. */
static int
get_all(struct follower *f, const char *name, struct slu_err *err)
{
	uint64_t size = 1;
	int rc = 0;

	buf_clear(&f->object);
	while (!rc && f->object.n < size) {
		const size_t had = f->object.n;

		rc = get(f, name, had, PIECE, &size, err);
		if (!rc && f->object.n == had)
			break;
	}
	return rc;
}

static int
get_head(struct follower *f, const char *name, uint64_t at, struct line_group *out, struct slu_err *err)
{
	int rc;

	buf_clear(&f->object);
	rc = get(f, name, at, LINE_GROUP_HEAD, NULL, err);
	return rc ? rc : line_group_peek(out, buf_slice(&f->object), err);
}

/* Calls fn with the number of each object of a kind behind the number `after`. */
static int
list(struct follower *f, enum line_kind kind, uint64_t after, int (*fn)(struct follower *f, uint64_t number),
     struct slu_err *err)
{
	char prefix[LINE_NAME_MAX], behind[LINE_NAME_MAX];
	struct store_names names = { .more = true };
	int rc = 0;

	line_prefix(prefix, f->conf->shard, kind);
	line_name(behind, f->conf->shard, kind, after);
	while (!rc && names.more) {
		rc = may_ask(f, err);
		if (!rc && store_list(f->conf->store, prefix, behind, STORE_PAGE_MAX, &names, err) != STORE_OK)
			rc = (int)err->code;
		for (uint32_t i = 0; !rc && i < names.n; i++) {
			const uint64_t number = line_number(names.names[i], f->conf->shard, kind);

			if (number && fn(f, number))
				rc = slu_fail(err, SLU_ENOMEM, "out of memory");
		}
		if (!rc && names.n)
			(void)snprintf(behind, sizeof behind, "%s", names.names[names.n - 1]);
		names.more = names.more && names.n;
	}
	store_names_release(&names);
	return rc;
}

static int
note_span(struct follower *f, uint64_t first)
{
	if (!mem_room(&f->spans, &f->max, f->n + 1, sizeof *f->spans))
		return SLU_ENOMEM;
	f->spans[f->n++] = first;
	return 0;
}

static int
note_group(struct follower *f, uint64_t number)
{
	f->last = number;
	return 0;
}

/* Finds the spans, the newest group, and where the log begins. */
static int
look(struct follower *f, struct slu_err *err)
{
	char name[LINE_NAME_MAX];
	struct line_group newest;
	int rc = list(f, LINE_GROUP, f->n ? f->spans[f->n - 1] - 1 : 0, note_group, err);

	if (rc || f->last == 0)
		return rc;
	line_name(name, f->conf->shard, LINE_GROUP, f->last);
	rc = get_head(f, name, 0, &newest, err);
	if (!rc)
		f->begin = newest.begin;
	return rc;
}

/* The index of the span that would hold the group; n = the group is before all spans. */
static uint32_t
span_of(const struct follower *f, uint64_t number)
{
	uint32_t i = f->n;

	while (i > 0 && f->spans[i - 1] > number)
		i--;
	return i > 0 ? i - 1 : f->n;
}

/* ---- MIRRORFOLLOW-1 ---- */

/* Reads the head of a span; *out points into f->object. */
static int
peek(struct follower *f, uint64_t first, struct line_span *out, struct slu_err *err)
{
	char name[LINE_NAME_MAX];
	int rc;

	line_name(name, f->conf->shard, LINE_SPAN, first);
	buf_clear(&f->object);
	rc = get(f, name, 0, PEEK, NULL, err);
	if (!rc && line_span_peek(out, buf_slice(&f->object), NULL))
		rc = get_all(f, name, err); /* the head is longer */
	return rc ? rc : line_span_peek(out, buf_slice(&f->object), err);
}

/* Sets *out to the head of the group if the span has it; out->number is 0 if not. */
static int
look_in_span(struct follower *f, uint64_t first, uint64_t number, struct line_group *out, struct slu_err *err)
{
	char name[LINE_NAME_MAX];
	struct line_span s;
	uint64_t at;
	int rc = peek(f, first, &s, err);

	out->number = 0;
	line_name(name, f->conf->shard, LINE_SPAN, first);
	if (rc || number > line_span_last(&s))
		return rc;
	line_span_place(&s, number, &at);
	return get_head(f, name, at, out, err);
}

/* A group object may be a stray opening (LINE-3), so spans count first. */
static int
find_group(struct follower *f, uint64_t number, struct line_group *out, struct slu_err *err)
{
	const uint32_t i = span_of(f, number);
	char name[LINE_NAME_MAX];
	int rc = 0;

	out->number = 0;
	if (i < f->n)
		rc = look_in_span(f, f->spans[i], number, out, err);
	if (rc || out->number)
		return rc;
	line_name(name, f->conf->shard, LINE_GROUP, number);
	return get_head(f, name, 0, out, err);
}

static int
refuse(const struct follower *f, struct slu_err *err)
{
	return slu_fail(err, SLU_ECORRUPT,
			"%.100s is kept: the store went back, it does not have group %" PRIu64
			" as it had confirmed it",
			f->conf->folder, f->cache.seen.number);
}

static int
check_seen(struct follower *f, struct slu_err *err)
{
	const struct line_known *const seen = &f->cache.seen;
	struct line_group g;
	int rc;

	if (seen->number == 0 || seen->number < f->begin)
		return 0;
	if (seen->number > f->last)
		return refuse(f, err);
	rc = find_group(f, seen->number, &g, err);
	if (rc)
		return rc;
	return line_mark_eq(g.mark, seen->mark) ? 0 : refuse(f, err);
}

/* ---- Fetching ---- */

static int
take_group(struct follower *f, struct slice object, struct slu_err *err)
{
	struct line_group g;
	int rc = line_group_decode(&g, object, err);

	if (rc)
		return rc;
	if (g.number != f->next || (f->next != f->from && !line_mark_eq(g.before, f->before)))
		return slu_fail(err, SLU_ECORRUPT, "group %" PRIu64 " does not continue the group before", f->next);
	rc = cache_take(&f->cache, &g, g.number == f->from, err);
	if (!rc)
		rc = heads_add(&f->heads, g.number, object, err);
	if (rc)
		return rc;
	if (g.number == f->from && g.body.n == 0)
		f->from++; /* an opening of line_reopen has the number for which a piece was written */
	f->before = g.mark;
	f->next++;
	f->facts.groups++;
	return 0;
}

/* MIRRORFOLLOW-4. Forgets old segments, and returns the number of the first one that stays. */
static uint32_t
forget_old(struct follower *f)
{
	struct cache *const c = &f->cache;

	while (c->n > 1 && c->segments[1].first <= f->begin)
		cache_recycled(c, c->segments[0].number);
	return c->n ? c->segments[0].number : 0;
}

/* The file `mirror` names the new groups, and not the old segments. */
static int
save(struct follower *f, struct slu_err *err)
{
	const struct line_known known = { f->next - 1, f->before };
	const uint32_t oldest = f->cache.n ? f->cache.segments[0].number : 0;
	const uint32_t stays = forget_old(f);
	char name[SEGMENT_NAME];
	int rc = heads_flush(&f->heads, err);

	if (!rc)
		rc = cache_save(&f->cache, &known, err);
	for (uint32_t i = oldest; !rc && i < stays; i++) {
		segment_name(i, name);
		(void)f->disk->ops->remove(f->disk, f->folder, name); /* costs room only */
	}
	(void)heads_begin(&f->heads, f->begin, NULL); /* the same */
	return rc;
}

static int
take_span(struct follower *f, uint64_t first, struct slu_err *err)
{
	const uint64_t next = f->next;
	char name[LINE_NAME_MAX];
	struct line_span s;
	struct slice group;
	int rc;

	line_name(name, f->conf->shard, LINE_SPAN, first);
	rc = get_all(f, name, err);
	if (!rc)
		rc = line_span_decode(&s, buf_slice(&f->object), err);
	if (!rc && s.first != first)
		rc = slu_fail(err, SLU_ECORRUPT, "%s begins with group %" PRIu64, name, s.first);
	if (rc)
		return rc;
	f->facts.bytes += f->object.n;
	for (uint64_t number = first; !rc && line_span_next(&s, &group); number++)
		if (number == f->next)
			rc = take_group(f, group, err);
	return rc || f->next == next ? rc : save(f, err);
}

/* Where fetching begins: behind what the folder has, or with an empty folder. */
static int
start(struct follower *f, struct slu_err *err)
{
	const struct line_known known = f->cache.known;
	int rc;

	f->next = known.number + 1;
	f->before = known.mark;
	if (known.number && f->next >= f->begin)
		return 0;
	rc = heads_wipe(&f->heads, err);
	f->next = f->from = f->begin;
	return rc ? rc : cache_wipe(&f->cache, err);
}

/* Sets *i to the first span with a group that the folder lacks. */
static int
first_span(struct follower *f, uint32_t *i, struct slu_err *err)
{
	struct line_span s;
	int rc;

	*i = span_of(f, f->next);
	if (*i == f->n || f->spans[*i] == f->next)
		return 0;
	rc = peek(f, f->spans[*i], &s, err);
	if (!rc && line_span_last(&s) < f->next)
		++*i;
	return rc;
}

static int
fetch(struct follower *f, struct slu_err *err)
{
	uint32_t i = 0;
	int rc = start(f, err);

	if (!rc)
		rc = first_span(f, &i, err);
	for (; !rc && i < f->n; i++)
		rc = take_span(f, f->spans[i], err);
	f->facts.last = f->cache.known.number;
	return rc;
}

int
follow_line(const struct follow_conf *conf, uint64_t seen, struct follow_facts *out, struct slu_err *err)
{
	struct follower f;
	int rc;

	init(&f, conf);
	rc = list(&f, LINE_SPAN, 0, note_span, err);
	f.facts.span = f.n ? f.spans[f.n - 1] : 0;
	if (!rc && f.n && f.facts.span != seen) {
		rc = open_folder(&f, err);
		if (!rc)
			rc = open_cache(&f, err);
		if (!rc)
			rc = look(&f, err);
		if (!rc)
			rc = check_seen(&f, err);
		if (!rc)
			rc = fetch(&f, err);
	}
	*out = f.facts;
	release(&f);
	return rc;
}

/* ---- Emptying ---- */

static int
remove_spares(struct follower *f, struct slu_err *err)
{
	struct folder files = { 0 };
	int rc = folder_read(&files, f->disk, f->folder, err);

	for (uint32_t i = 0; !rc && i < files.n; i++) {
		char spare[SEGMENT_NAME], name[SEGMENT_NAME + 4];

		if (files.at[i].kind == FOLDER_SEGMENT)
			continue;
		segment_spare_name(files.at[i].number, spare);
		(void)snprintf(name, sizeof name, "%s%s", spare, files.at[i].kind == FOLDER_TMP ? ".tmp" : "");
		(void)f->disk->ops->remove(f->disk, f->folder, name); /* costs room only */
	}
	folder_release(&files);
	return rc;
}

static int
empty(struct follower *f, struct slu_err *err)
{
	int rc = open_cache(f, err);

	if (!rc)
		rc = list(f, LINE_SPAN, 0, note_span, err);
	if (!rc)
		rc = look(f, err);
	if (!rc)
		rc = check_seen(f, err);
	if (!rc)
		rc = heads_wipe(&f->heads, err);
	if (!rc)
		rc = cache_wipe(&f->cache, err);
	if (!rc)
		rc = remove_spares(f, err);
	if (!rc && f->conf->emptied)
		f->conf->emptied(f->conf->arg, f->disk, f->folder);
	return rc;
}

int
follow_empty(const struct follow_conf *conf, struct slu_err *err)
{
	struct follower f;
	int rc;

	init(&f, conf);
	rc = open_folder(&f, err);
	if (!rc && cache_is_one(f.disk, f.folder))
		rc = empty(&f, err);
	release(&f);
	return rc;
}
