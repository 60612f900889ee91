#include "handover/drop_private.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/names.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

slu_time
drop_poll_after(slu_time interval, slu_time jitter, uint64_t random)
{
	return interval + (jitter > 0 ? (slu_time)(random % (uint64_t)jitter) : 0);
}

/* ---- Watches ---- */

/* One notice, whatever the reason. */
static void
tell(struct handover_place *p, const char *why)
{
	if (!p->logged)
		log_info(p->log, "inbox polls", F_STR("folder", p->folder), F_STR("why", why));
	p->logged = true;
}

void
drop_watch_begin(struct handover_place *p)
{
	struct statfs fs = { 0 };

	p->tree = -1;
	if (p->conf.watcher) {
		p->watcher = *p->conf.watcher;
		p->watches = true;
	} else if (!p->conf.watch) {
		tell(p, "watch is off");
	} else if (statfs(p->folder, &fs) || watch_is_blind((uint64_t)fs.f_type)) {
		tell(p, "the file system does not report changes of other machines");
	} else {
		p->watches = p->own_watcher = watch_open(&p->watcher);
		if (!p->watches)
			tell(p, strerror(errno));
	}
}

static void
queue_path(const struct handover_place *p, const struct drop_queue *q, char out[static DROP_PATH])
{
	(void)snprintf(out, DROP_PATH, "%s/inbox/%s%s%s", p->folder, q->space, q->queue[0] ? "/" : "", q->queue);
}

static bool
is_unsupported(int code)
{
	return code == ENOSYS || code == EOPNOTSUPP;
}

/* A watch that fails turns this folder to polling, and no other. */
static void
watch_queue(struct handover_place *p, struct drop_queue *q)
{
	char path[DROP_PATH];

	if (!p->watches || q->watch >= 0 || q->refused)
		return;
	queue_path(p, q, path);
	q->watch = p->watcher.add(p->watcher.arg, path);
	if (q->watch >= 0)
		return;
	if (is_unsupported(errno)) {
		p->watches = false;
		tell(p, strerror(errno));
		return;
	}
	q->refused = true;
	log_warn(p->log, "folder is polled", F_STR("folder", path), F_STR("why", strerror(errno)));
}

/* ---- Queues ---- */

static void
forget_moved(struct drop_queue *q)
{
	for (uint32_t i = 0; i < q->n_moved; i++)
		mem_free(q->moved[i]);
	q->n_moved = 0;
}

static void
forget_queue(struct handover_place *p, uint32_t i)
{
	struct drop_queue *const q = &p->queues[i];

	if (q->watch >= 0 && p->watches)
		p->watcher.remove(p->watcher.arg, q->watch);
	forget_moved(q);
	mem_free(q->moved);
	p->queues[i] = p->queues[--p->n_queues];
}

void
drop_queues_free(struct handover_place *p)
{
	while (p->n_queues > 0)
		forget_queue(p, p->n_queues - 1);
	mem_free(p->queues);
	p->queues = NULL;
	p->max_queues = 0;
}

/* Adds the folder of a namespace (queue empty) or of a queue, or finds it. */
static int
meet(struct handover_place *p, const char *space, const char *queue, struct slu_err *err)
{
	struct drop_queue *q;

	for (uint32_t i = 0; i < p->n_queues; i++) {
		q = &p->queues[i];
		if (strcmp(q->space, space) == 0 && strcmp(q->queue, queue) == 0) {
			q->there = true;
			watch_queue(p, q);
			return 0;
		}
	}
	if (!mem_room(&p->queues, &p->max_queues, p->n_queues + 1, sizeof *p->queues))
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	q = &p->queues[p->n_queues++];
	*q = (struct drop_queue){ .watch = -1, .there = true };
	(void)snprintf(q->space, sizeof q->space, "%s", space);
	(void)snprintf(q->queue, sizeof q->queue, "%s", queue);
	watch_queue(p, q);
	return 0;
}

static bool
is_name(const char *name)
{
	char folded[NAME_TEXT];

	return name_fold(slice_of(name), "queue", folded, NULL) == 0;
}

/* Meets the folders in inbox/SPACE; space empty: the namespaces. */
static int
look_at_folders(struct handover_place *p, const char *space, struct slu_err *err)
{
	const struct drop_queue of = { .space = "" };
	struct drop_queue here = of;
	char path[DROP_PATH];
	const struct dirent *e;
	DIR *dir;
	int rc = 0;

	(void)snprintf(here.space, sizeof here.space, "%s", space);
	queue_path(p, &here, path);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT && *space ? 0 : slu_fail(err, SLU_EDOWN, "%s: %m", path);
	while (!rc && (e = readdir(dir)) != NULL) {
		if (e->d_name[0] == '.' || !is_name(e->d_name) || (e->d_type != DT_DIR && e->d_type != DT_UNKNOWN))
			continue;
		rc = *space ? meet(p, space, e->d_name, err) : meet(p, e->d_name, "", err);
		if (!rc && !*space)
			rc = look_at_folders(p, e->d_name, err);
	}
	closedir(dir);
	return rc;
}

static slu_time
next_look(struct handover_place *p, bool watched)
{
	const slu_time now = clock_mono(&clock_system);

	if (watched)
		return p->conf.poll_resilient > 0 ? now + p->conf.poll_resilient : SLU_NEVER;
	return now + drop_poll_after(p->conf.poll_interval, p->conf.poll_jitter, hash_next_random(&p->random));
}

static int
look_at_tree(struct handover_place *p, struct slu_err *err)
{
	int rc;

	for (uint32_t i = 0; i < p->n_queues; i++)
		p->queues[i].there = false;
	if (p->watches && p->tree < 0) {
		char path[DROP_PATH];

		queue_path(p, &(struct drop_queue){ .space = "" }, path);
		p->tree = p->watcher.add(p->watcher.arg, path);
	}
	rc = look_at_folders(p, "", err);
	for (uint32_t i = 0; i < p->n_queues && !rc;)
		if (p->queues[i].there)
			i++;
		else
			forget_queue(p, i);
	p->look_tree = next_look(p, p->watches && p->tree >= 0);
	return rc;
}

/* ---- Notices ---- */

static void
note_moved(struct drop_queue *q, const char *name)
{
	char *const copy = *name ? mem_strdup(name) : NULL;

	if (!copy)
		return; /* without memory the file settles first */
	if (mem_room(&q->moved, &q->max_moved, q->n_moved + 1, sizeof *q->moved))
		q->moved[q->n_moved++] = copy;
	else
		mem_free(copy);
}

static void
take_notice(struct handover_place *p, const struct watch_notice *n)
{
	if (n->watch == WATCH_ALL || n->watch == p->tree)
		p->look_tree = 0;
	for (uint32_t i = 0; i < p->n_queues; i++) {
		struct drop_queue *const q = &p->queues[i];

		if (n->watch != WATCH_ALL && n->watch != q->watch)
			continue;
		q->look = 0;
		if (n->gone)
			q->watch = -1;
		if (n->gone || !q->queue[0])
			p->look_tree = 0;
		note_moved(q, n->name);
	}
}

int
drop_look_around(struct handover_place *p, struct slu_err *err)
{
	struct watch_notice n;

	while (p->watches && p->watcher.next(p->watcher.arg, &n))
		take_notice(p, &n);
	return clock_mono(&clock_system) < p->look_tree ? 0 : look_at_tree(p, err);
}

void
drop_looked(struct handover_place *p, struct drop_queue *q, slu_time unsettled)
{
	const slu_time now = clock_mono(&clock_system);

	forget_moved(q);
	q->waits = unsettled != SLU_NEVER;
	q->look = next_look(p, q->watch >= 0);
	if (unsettled != SLU_NEVER && now + unsettled < q->look)
		q->look = now + unsettled;
}

bool
drop_was_moved(const struct drop_queue *q, const char *name)
{
	for (uint32_t i = 0; i < q->n_moved; i++)
		if (strcmp(q->moved[i], name) == 0)
			return true;
	return false;
}

slu_time
drop_until_look(const struct handover_place *p)
{
	const slu_time now = clock_mono(&clock_system);
	slu_time first = p->look_tree;

	for (uint32_t i = 0; i < p->n_queues; i++)
		if (p->queues[i].queue[0] && p->queues[i].look < first)
			first = p->queues[i].look;
	return first > now ? first - now : 0;
}
