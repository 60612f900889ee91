/*
 * drop.c - files in the folders of queues.
 *
 *      FOLDER/inbox/NAMESPACE/QUEUE/FILE        a message; FILE.json beside it: key, priority, delay, ...
 *      FOLDER/taken/BATCH/NAMESPACE/QUEUE/FILE  a marked one; taken/BATCH/.list has the shard, and the order
 *      FOLDER/refused/NAMESPACE/QUEUE/FILE      a refused one; FILE.why has the reason
 *      FOLDER/.inbox.state                      uuid of the place, and the highest number that may have been given
 *      FOLDER/.inbox.lock                       locked by the inbox at work; its time is the clock of the file system
 *
 * A file that was moved in is whole. One that was created in place is taken when it is unchanged for the settle
 * time. Files that begin with a dot or end in .tmp or .part are left. Names that end in .json are never messages.
 */
#include "handover/drop_private.h"
#include "handover/handover_private.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/json/json.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	NUMBERS = 1000,          /* that the state reserves at a time */
	OPTIONS_MAX = 256 << 10, /* bytes of a .json */
	STATE = 100              /* bytes of the state file */
};

/* ---- Paths ---- */

/* FOLDER/inbox or FOLDER/taken/BATCH, of an item. */
static void
base_of(const struct handover_place *p, uint64_t batch, char out[static DROP_PATH])
{
	if (batch)
		(void)snprintf(out, DROP_PATH, "%s/taken/%" PRIu64, p->folder, batch);
	else
		(void)snprintf(out, DROP_PATH, "%s/inbox", p->folder);
}

static void
path_in(const char *base, const struct handover_item *item, const char *ending, char out[static DROP_PATH])
{
	if (snprintf(out, DROP_PATH, "%.1500s/%.255s/%.255s/%.255s%s", base, item->space, item->queue, item->name, ending) >= DROP_PATH)
		out[0] = '\0'; /* cannot happen: the parts are bounded */
}

/* Makes base/NAMESPACE/QUEUE. */
static int
make_folders(const char *base, const struct handover_item *item, struct slu_err *err)
{
	char path[DROP_PATH];

	(void)snprintf(path, sizeof path, "%.2000s/%.255s", base, item->space);
	if ((mkdir(base, 0777) && errno != EEXIST) || (mkdir(path, 0777) && errno != EEXIST))
		return drop_fail(err, path);
	(void)snprintf(path, sizeof path, "%.2000s/%.255s/%.255s", base, item->space, item->queue);
	return mkdir(path, 0777) && errno != EEXIST ? drop_fail(err, path) : 0;
}

/* Syncs base/NAMESPACE/QUEUE and the folders above it. */
static int
sync_folders(const char *base, const struct handover_item *item, struct slu_err *err)
{
	char path[DROP_PATH];
	int rc;

	(void)snprintf(path, sizeof path, "%.2000s/%.255s/%.255s", base, item->space, item->queue);
	rc = drop_sync_folder(path, err);
	(void)snprintf(path, sizeof path, "%.2000s/%.255s", base, item->space);
	if (!rc)
		rc = drop_sync_folder(path, err);
	return rc ? rc : drop_sync_folder(base, err);
}

/* ---- State ---- */

static int
save_state(struct handover_place *p, uint64_t ceiling, struct slu_err *err)
{
	char path[DROP_PATH], temp[DROP_PATH], text[STATE];
	int rc;

	(void)snprintf(path, sizeof path, "%s/.inbox.state", p->folder);
	(void)snprintf(temp, sizeof temp, "%s/.inbox.state.tmp", p->folder);
	(void)snprintf(text, sizeof text, "%s %" PRIu64 "\n", p->source, ceiling);
	rc = drop_write(temp, text, err);
	if (!rc && rename(temp, path))
		rc = drop_fail(err, path);
	if (!rc)
		rc = drop_sync_folder(p->folder, err);
	if (!rc)
		p->ceiling = ceiling;
	return rc;
}

static int
load_state(struct handover_place *p, struct slu_err *err)
{
	char path[DROP_PATH];
	char *text;
	size_t n;
	int rc;

	(void)snprintf(path, sizeof path, "%s/.inbox.state", p->folder);
	rc = drop_read(path, STATE, &text, &n, err);
	if (rc == SLU_ENOTFOUND) {
		rc = handover_new_uuid(p->source, err);
		return rc ? rc : save_state(p, 0, err);
	}
	if (rc)
		return rc;
	if (n < HANDOVER_UUID || text[HANDOVER_UUID - 1] != ' ')
		rc = slu_fail(err, SLU_ECORRUPT, "%.150s: damaged", path);
	else {
		memcpy(p->source, text, HANDOVER_UUID - 1);
		p->number = p->ceiling = strtoull(text + HANDOVER_UUID, NULL, 10);
	}
	mem_free(text);
	return rc;
}

static int
lock(struct handover_place *p, struct slu_err *err)
{
	char path[DROP_PATH];

	if (p->lock >= 0)
		return 0;
	(void)snprintf(path, sizeof path, "%s/.inbox.lock", p->folder);
	p->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (p->lock < 0)
		return drop_fail(err, path);
	if (flock(p->lock, LOCK_EX | LOCK_NB) == 0)
		return 0;
	close(p->lock);
	p->lock = -1;
	return errno == EWOULDBLOCK ? slu_fail(err, SLU_EBUSY, "another inbox is at work on this folder") : drop_fail(err, path);
}

/* ---- Reading items ---- */

/* Loads payload and options. A payload that is too large stays where it is. */
static int
load_item(const char *base, struct handover_item *item, struct slu_err *err)
{
	char path[DROP_PATH];
	size_t n;
	int rc;

	path_in(base, item, "", path);
	rc = drop_read(path, HANDOVER_PAYLOAD_MAX, &item->payload, &item->size, err);
	if (rc == SLU_ETOOBIG) {
		item->size = HANDOVER_PAYLOAD_MAX + 1;
		return 0;
	}
	if (rc)
		return rc;
	path_in(base, item, ".json", path);
	rc = drop_read(path, OPTIONS_MAX, &item->options, &n, err);
	if (rc == SLU_ENOTFOUND)
		return 0;
	if (rc == SLU_ETOOBIG)
		item->options = mem_strdup("{\"invalid .json\":0}");
	else if (rc)
		return rc;
	handover_check_options(item);
	return 0;
}

static struct handover_item *
add_item(struct handover_items *out, const char *space, const char *queue, const char *name, struct slu_err *err)
{
	struct handover_item *const item = handover_items_add(out);

	if (item) {
		item->space = mem_strdup(space);
		item->queue = mem_strdup(queue);
		item->name = mem_strdup(name);
	}
	if (item && item->space && item->queue && item->name)
		return item;
	slu_fail(err, SLU_ENOMEM, "out of memory");
	return NULL;
}

/* ---- New items ---- */

struct drop_found {
	char name[WATCH_NAME];
	struct timespec time;
};

static int
compare(const void *a, const void *b)
{
	const struct drop_found *const x = a, *const y = b;

	if (x->time.tv_sec != y->time.tv_sec)
		return x->time.tv_sec < y->time.tv_sec ? -1 : 1;
	if (x->time.tv_nsec != y->time.tv_nsec)
		return x->time.tv_nsec < y->time.tv_nsec ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* The clock of the file system. */
static slu_time
file_now(const struct handover_place *p)
{
	struct stat st;

	if (futimens(p->lock, NULL) || fstat(p->lock, &st))
		return clock_wall(&clock_system);
	return st.st_mtim.tv_sec * SLU_SEC + st.st_mtim.tv_nsec;
}

struct drop_look {
	struct drop_found *found;
	uint32_t n, max;
	slu_time unsettled; /* until the next file has settled */
};

static int
look_at_file(struct handover_place *p, const struct drop_queue *q, int folder, const char *name, slu_time now, struct drop_look *l,
	     struct slu_err *err)
{
	struct stat st;
	slu_time left;

	if (!handover_is_message(name) || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) || strlen(name) >= WATCH_NAME - 5)
		return 0;
	left = st.st_ctim.tv_sec * SLU_SEC + st.st_ctim.tv_nsec + p->conf.settle - now;
	if (left > 0 && !drop_was_moved(q, name)) {
		l->unsettled = left < l->unsettled ? left : l->unsettled;
		return 0;
	}
	if (!mem_room(&l->found, &l->max, l->n + 1, sizeof *l->found))
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	(void)snprintf(l->found[l->n].name, WATCH_NAME, "%s", name);
	l->found[l->n++].time = st.st_mtim;
	return 0;
}

static int
look_at_queue(struct handover_place *p, const struct drop_queue *q, struct drop_look *l, struct slu_err *err)
{
	const slu_time now = file_now(p);
	char path[DROP_PATH];
	const struct dirent *e;
	DIR *dir;
	int rc = 0;

	(void)snprintf(path, sizeof path, "%s/inbox/%s/%s", p->folder, q->space, q->queue);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? 0 : drop_fail(err, path);
	while (!rc && (e = readdir(dir)) != NULL)
		rc = look_at_file(p, q, dirfd(dir), e->d_name, now, l, err);
	closedir(dir);
	if (l->n > 1)
		qsort(l->found, l->n, sizeof *l->found, compare);
	return rc;
}

static int
take_found(struct handover_place *p, const struct drop_queue *q, const struct drop_look *l, uint64_t *bytes, struct handover_items *out,
	   struct slu_err *err)
{
	char base[DROP_PATH];
	int rc = 0;

	base_of(p, 0, base);
	for (uint32_t i = 0; i < l->n && !rc && out->n < HANDOVER_BATCH && *bytes < HANDOVER_BATCH_BYTES; i++) {
		struct handover_item *const item = add_item(out, q->space, q->queue, l->found[i].name, err);

		rc = item ? load_item(base, item, err) : SLU_ENOMEM;
		if (rc == SLU_ENOTFOUND) { /* it was taken away */
			handover_items_cut(out, out->n - 1);
			rc = 0;
		} else if (!rc) {
			*bytes += item->size;
		}
	}
	return rc;
}

static bool
is_skipped(const struct drop_queue *q, const char *const *skip, uint32_t n)
{
	char name[2 * WATCH_NAME];

	(void)snprintf(name, sizeof name, "%s/%s", q->space, q->queue);
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(name, skip[i]) == 0)
			return true;
	return false;
}

static int
find_in(struct handover_place *p, struct drop_queue *q, uint64_t *bytes, struct handover_items *out, struct slu_err *err)
{
	struct drop_look l = { .unsettled = SLU_NEVER };
	int rc = look_at_queue(p, q, &l, err);

	if (!rc)
		rc = take_found(p, q, &l, bytes, out, err);
	if (!rc && l.n == 0)
		drop_looked(p, q, l.unsettled);
	mem_free(l.found);
	return rc;
}

static int
find(struct handover_place *p, const char *const *skip, uint32_t n, struct handover_items *out, struct slu_err *err)
{
	uint64_t bytes = 0;
	int rc = drop_look_around(p, err);

	for (uint32_t i = 0; i < p->n_queues && !rc && out->n < HANDOVER_BATCH && bytes < HANDOVER_BATCH_BYTES; i++) {
		struct drop_queue *const q = &p->queues[i];

		if (q->queue[0] && q->look <= clock_mono(&clock_system) && !is_skipped(q, skip, n))
			rc = find_in(p, q, &bytes, out, err);
	}
	return rc;
}

/* ---- Marked items ---- */

/* taken/BATCH/.list: the shard, then the files in their order, each NAMESPACE/QUEUE/FILE. */
static void
list_path(const struct handover_place *p, uint64_t number, char out[static DROP_PATH])
{
	(void)snprintf(out, DROP_PATH, "%s/taken/%" PRIu64 "/.list", p->folder, number);
}

/* Cuts the next part off a text. */
static char *
next_part(char **text, char end)
{
	char *const part = *text;
	char *const at = strchr(part, end);

	if (at)
		*at = '\0';
	*text = at ? at + 1 : part + strlen(part);
	return part;
}

static int
read_line(struct handover_place *p, uint64_t number, const char *shard, char *line, struct handover_items *out, struct slu_err *err)
{
	const char *const space = next_part(&line, '/'), *const queue = next_part(&line, '/');
	struct handover_item *const item = add_item(out, space, queue, line, err);
	char base[DROP_PATH];
	int rc = SLU_ENOMEM;

	base_of(p, number, base);
	if (item) {
		item->batch = number;
		item->shard = mem_strdup(shard);
		rc = item->shard ? load_item(base, item, err) : slu_fail(err, SLU_ENOMEM, "out of memory");
	}
	if (rc == SLU_ENOTFOUND) { /* it was not moved, or it was refused */
		handover_items_cut(out, out->n - 1);
		return 0;
	}
	return rc;
}

static int
read_marked(struct handover_place *p, uint64_t number, struct handover_items *out, struct slu_err *err)
{
	const uint32_t before = out->n;
	char path[DROP_PATH];
	char *text = NULL, *rest, *shard;
	size_t n;
	int rc;

	list_path(p, number, path);
	rc = drop_read(path, SIZE_MAX / 2, &text, &n, err);
	if (rc && rc != SLU_ENOTFOUND)
		return rc;
	rest = text;
	shard = text ? next_part(&rest, '\n') : NULL;
	for (rc = 0; !rc && rest && *rest;)
		rc = read_line(p, number, shard, next_part(&rest, '\n'), out, err);
	mem_free(text);
	base_of(p, number, path);
	return rc || out->n > before ? rc : drop_remove_tree(path, err);
}

static int
compare_numbers(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The numbers of the folders in taken/, in order. The caller frees *out. */
static int
list_taken(const struct handover_place *p, uint64_t **out, uint32_t *n, struct slu_err *err)
{
	char path[DROP_PATH];
	const struct dirent *e;
	uint32_t max = 0;
	DIR *dir;
	int rc = 0;

	(void)snprintf(path, sizeof path, "%s/taken", p->folder);
	dir = opendir(path);
	if (!dir)
		return drop_fail(err, path);
	while (!rc && (e = readdir(dir)) != NULL) {
		const uint64_t number = strtoull(e->d_name, NULL, 10);

		if (number == 0)
			continue;
		if (!mem_room(out, &max, *n + 1, sizeof **out))
			rc = slu_fail(err, SLU_ENOMEM, "out of memory");
		else
			(*out)[(*n)++] = number;
	}
	closedir(dir);
	if (*n > 1)
		qsort(*out, *n, sizeof **out, compare_numbers);
	return rc;
}

static int
begin(struct handover_place *p, char source[static HANDOVER_UUID], struct handover_items *marked, struct slu_err *err)
{
	uint64_t *numbers = NULL;
	uint32_t n = 0;
	int rc = lock(p, err);

	if (!rc && !p->source[0])
		rc = load_state(p, err);
	if (!rc)
		rc = list_taken(p, &numbers, &n, err);
	for (uint32_t i = 0; i < n && !rc; i++)
		rc = read_marked(p, numbers[i], marked, err);
	mem_free(numbers);
	memcpy(source, p->source, HANDOVER_UUID);
	for (uint32_t i = 0; i < p->n_queues; i++)
		p->queues[i].look = 0;
	return rc;
}

static int
write_list(struct handover_place *p, const char *shard, const struct handover_items *items, struct slu_err *err)
{
	char path[DROP_PATH];
	struct buf text;
	int rc;

	base_of(p, p->number, path);
	if (mkdir(path, 0777) && errno != EEXIST)
		return drop_fail(err, path);
	buf_init(&text, 1 << 20);
	buf_printf(&text, "%s\n", shard);
	for (uint32_t i = 0; i < items->n; i++)
		buf_printf(&text, "%s/%s/%s\n", items->p[i].space, items->p[i].queue, items->p[i].name);
	list_path(p, p->number, path);
	rc = text.failed ? slu_fail(err, SLU_ENOMEM, "out of memory") : drop_write(path, buf_str(&text), err);
	buf_release(&text);
	return rc;
}

/* Moves a file, with its .json. Returns SLU_ENOTFOUND if it is not there. */
static int
move_item(const char *from, const char *to, const struct handover_item *item, struct slu_err *err)
{
	static const char *const endings[] = { ".json", "" };
	char old[DROP_PATH], new[DROP_PATH];
	int rc = make_folders(to, item, err);

	for (size_t i = 0; i < COUNT(endings) && !rc; i++) {
		path_in(from, item, endings[i], old);
		path_in(to, item, endings[i], new);
		if (rename(old, new) == 0 || (errno == ENOENT && *endings[i]))
			continue;
		rc = errno == ENOENT ? slu_fail(err, SLU_ENOTFOUND, "no such file: %.150s", old) : drop_fail(err, old);
	}
	return rc;
}

/* HANDOVER-1: both folders are synced before the batch is sent. */
static int
move_all(const char *from, const char *to, struct handover_items *items, uint64_t batch, struct slu_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < items->n && !rc; i++) {
		rc = move_item(from, to, &items->p[i], err);
		items->p[i].batch = rc ? 0 : batch;
		rc = rc == SLU_ENOTFOUND ? 0 : rc;
	}
	for (uint32_t i = 0; i < items->n && !rc; i++) {
		if (i > 0 && strcmp(items->p[i].queue, items->p[i - 1].queue) == 0 && strcmp(items->p[i].space, items->p[i - 1].space) == 0)
			continue;
		rc = sync_folders(to, &items->p[i], err);
		if (!rc)
			rc = sync_folders(from, &items->p[i], err);
	}
	return rc;
}

static int
mark(struct handover_place *p, const char *shard, struct handover_items *items, struct slu_err *err)
{
	char from[DROP_PATH], to[DROP_PATH], taken[DROP_PATH];
	int rc = p->number < p->ceiling ? 0 : save_state(p, p->number + NUMBERS, err);

	if (rc)
		return rc;
	p->number++;
	rc = write_list(p, shard, items, err);
	base_of(p, 0, from);
	base_of(p, p->number, to);
	if (!rc)
		rc = move_all(from, to, items, p->number, err);
	(void)snprintf(taken, sizeof taken, "%s/taken", p->folder);
	return rc ? rc : drop_sync_folder(taken, err);
}

static int
end(struct handover_place *p, const struct handover_batch *b, struct slu_err *err)
{
	char path[DROP_PATH];

	base_of(p, b->number, path);
	return drop_remove_tree(path, err);
}

/* A file of the same name may have come meanwhile: the older one gets another name. */
static int
put_back(const char *from, const char *to, struct handover_item *item, struct slu_err *err)
{
	char path[DROP_PATH], name[WATCH_NAME + 8];

	path_in(to, item, "", path);
	if (access(path, F_OK) != 0)
		return move_item(from, to, item, err);
	path_in(from, item, "", path);
	for (unsigned i = 1; i < 1000; i++) {
		struct handover_item other = *item;
		char new[DROP_PATH];

		(void)snprintf(name, sizeof name, "%.240s~%u", item->name, i);
		other.name = name;
		path_in(to, &other, "", new);
		if (access(new, F_OK) == 0)
			continue;
		return rename(path, new) ? drop_fail(err, path) : 0;
	}
	return slu_fail(err, SLU_EDOWN, "%.150s: too many files of this name", path);
}

static int
release(struct handover_place *p, const struct handover_batch *b, struct slu_err *err)
{
	char from[DROP_PATH], to[DROP_PATH];
	int rc = 0;

	base_of(p, b->number, from);
	base_of(p, 0, to);
	for (uint32_t i = 0; i < b->items.n && !rc; i++)
		rc = put_back(from, to, &b->items.p[i], err);
	for (uint32_t i = 0; i < b->items.n && !rc; i++)
		rc = sync_folders(to, &b->items.p[i], err);
	return rc ? rc : drop_remove_tree(from, err);
}

static int
refuse(struct handover_place *p, const struct handover_item *item, const char *why, struct slu_err *err)
{
	char from[DROP_PATH], to[DROP_PATH], path[DROP_PATH];
	int rc;

	base_of(p, item->batch, from);
	(void)snprintf(to, sizeof to, "%s/refused", p->folder);
	rc = move_item(from, to, item, err);
	if (rc)
		return rc;
	path_in(to, item, ".why", path);
	rc = drop_write(path, why, err);
	return rc ? rc : sync_folders(to, item, err);
}

static int
raise_number(struct handover_place *p, uint64_t above, struct slu_err *err)
{
	p->number = above > p->number ? above : p->number;
	return p->number <= p->ceiling ? 0 : save_state(p, p->number, err);
}

#define SHORTEST (20 * SLU_MS) /* a queue that rests is due, and is left out */

static slu_time
until_look(struct handover_place *p, int *fd)
{
	const slu_time wait = drop_until_look(p);

	*fd = p->watches ? p->watcher.fd : -1;
	return wait > SLU_HOUR ? SLU_HOUR : wait > SHORTEST ? wait
							    : SHORTEST;
}

static bool
waits(const struct handover_place *p)
{
	for (uint32_t i = 0; i < p->n_queues; i++)
		if (p->queues[i].waits)
			return true;
	return false;
}

/* ---- Opening ---- */

static int
make_place(struct handover_place *p, struct slu_err *err)
{
	static const char *const names[] = { "", "/inbox", "/taken", "/refused" };
	char path[DROP_PATH];

	for (size_t i = 0; i < COUNT(names); i++) {
		(void)snprintf(path, sizeof path, "%s%s", p->folder, names[i]);
		if (mkdir(path, 0777) && errno != EEXIST)
			return slu_fail(err, SLU_EINVAL, "%.150s: %s", path, strerror(errno));
	}
	return 0;
}

static void
close_place(struct handover_place *p)
{
	drop_queues_free(p);
	if (p->own_watcher)
		p->watcher.close(p->watcher.arg);
	if (p->lock >= 0)
		close(p->lock);
	mem_free(p);
}

static int
open_place(struct handover_place **out, const struct handover_conf *conf, struct slu_err *err)
{
	const char *const path = conf->url + strlen("file://");
	struct handover_place *p;
	int rc;

	if (path[0] != '/' || strlen(path) >= sizeof p->folder)
		return slu_fail(err, SLU_EINVAL, "invalid place: %.100s; expected file:///FOLDER", conf->url);
	p = mem_zalloc(sizeof *p);
	if (!p)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	(void)snprintf(p->folder, sizeof p->folder, "%s", path);
	p->conf = *conf;
	p->log = conf->log;
	p->lock = -1;
	rc = hash_random(&p->random, sizeof p->random, err);
	p->random |= 1;
	if (!rc)
		rc = make_place(p, err);
	if (rc) {
		close_place(p);
		return rc;
	}
	drop_watch_begin(p);
	*out = p;
	return 0;
}

const struct handover_ops handover_file = {
	.scheme = "file",
	.open = open_place,
	.close = close_place,
	.begin = begin,
	.find = find,
	.mark = mark,
	.end = end,
	.release = release,
	.refuse = refuse,
	.raise = raise_number,
	.sleep = until_look,
	.waits = waits,
};
