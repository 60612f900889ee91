#include "handover/watch.h"

#include "base/bytes.h"
#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

enum {
	BYTES = 16 << 10 /* of notices that are read at a time */
};

struct notices {
	int fd;
	size_t at, n;
	_Alignas(struct inotify_event) char bytes[BYTES];
};

bool
watch_is_blind(uint64_t type)
{
	static const uint64_t network[] = {
		0x6969,     /* NFS */
		0x517b,     /* SMB */
		0xff534d42, /* CIFS */
		0xfe534d42, /* SMB2 */
		0x65735546, /* FUSE */
		0x00c36400, /* CephFS */
		0x01021997, /* 9p */
		0x5346414f, /* AFS */
		0x73757245, /* Coda */
		0x01161970, /* GFS2 */
		0x7461636f, /* OCFS2 */
		0x0bd00bd0, /* Lustre */
	};

	for (size_t i = 0; i < COUNT(network); i++)
		if (type == network[i])
			return true;
	return false;
}

static int
add(void *arg, const char *folder)
{
	const struct notices *const w = arg;

	return inotify_add_watch(w->fd, folder, IN_MOVED_TO | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
}

static void
remove_watch(void *arg, int watch)
{
	const struct notices *const w = arg;

	(void)inotify_rm_watch(w->fd, watch); /* it may be gone with its folder */
}

static bool
fill(struct notices *w)
{
	const ssize_t n = read(w->fd, w->bytes, sizeof w->bytes);

	w->at = 0;
	w->n = n > 0 ? (size_t)n : 0;
	return n > 0;
}

static bool
next(void *arg, struct watch_notice *out)
{
	struct notices *const w = arg;
	const struct inotify_event *e;

	if (w->at >= w->n && !fill(w))
		return false;
	e = (const struct inotify_event *)(const void *)(w->bytes + w->at);
	w->at += sizeof *e + e->len;
	*out = (struct watch_notice){ .watch = e->mask & IN_Q_OVERFLOW ? WATCH_ALL : e->wd };
	out->gone = e->mask & (IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF);
	if (e->mask & IN_MOVED_TO && e->len > 0)
		(void)snprintf(out->name, sizeof out->name, "%s", e->name);
	return true;
}

static void
close_watch(void *arg)
{
	struct notices *const w = arg;

	close(w->fd);
	mem_free(w);
}

bool
watch_open(struct handover_watcher *out)
{
	struct notices *const w = mem_zalloc(sizeof *w);

	if (!w) {
		errno = ENOMEM;
		return false;
	}
	w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (w->fd < 0) {
		mem_free(w);
		return false;
	}
	*out = (struct handover_watcher){ .arg = w, .fd = w->fd, .add = add, .remove = remove_watch, .next = next, .close = close_watch };
	return true;
}
