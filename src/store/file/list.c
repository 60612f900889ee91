/*
 * list.c - the names below a folder, in byte order and in pages.
 *
 * A folder has no order, so a page reads all names and keeps the smallest ones. Memory is bounded
 * by the size of the page, not by the number of names.
 */
#include "base/mem.h"
#include "store/file/file_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The smallest names so far: the page, and one that shows that there are more. */
struct list_pick {
	char (*names)[STORE_NAME_MAX];
	uint32_t n;
	uint32_t keep; /* names that are wanted */
	uint32_t room; /* names that fit */
	bool full;     /* `keep` names are there: limit is the last of them */
	char limit[STORE_NAME_MAX];
};

/* A walk down the folders. The depth is bounded by STORE_SEGMENTS. */
struct list_walk {
	const char *prefix, *after;
	DIR *open[STORE_SEGMENTS];      /* the folders from the top to here */
	size_t lengths[STORE_SEGMENTS]; /* of the path of each */
	unsigned depth;                 /* how many */
	char path[STORE_NAME_MAX + 1];  /* of the present entry, below the root */
	struct list_pick pick;
};

/* ---- The smallest names ---- */

static int
compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Sorts, removes doubles and forgets what is behind the names wanted. */
static void
pick_cut(struct list_pick *p)
{
	uint32_t n = 0;

	qsort(p->names, p->n, sizeof *p->names, compare);
	for (uint32_t i = 0; i < p->n && n < p->keep; i++)
		if (n == 0 || strcmp(p->names[n - 1], p->names[i]) != 0)
			memmove(p->names[n++], p->names[i], STORE_NAME_MAX);
	p->n = n;
	p->full = n == p->keep;
	if (p->full)
		memcpy(p->limit, p->names[n - 1], STORE_NAME_MAX);
}

static bool
pick_wants(const struct list_pick *p, const char *name)
{
	return !p->full || strcmp(name, p->limit) < 0;
}

static void
pick_add(struct list_pick *p, const char *name)
{
	memcpy(p->names[p->n++], name, strlen(name) + 1);
	if (p->n == p->room)
		pick_cut(p);
}

static void
pick_give(struct list_pick *p, uint32_t max, struct store_names *out)
{
	pick_cut(p);
	out->more = p->n > max;
	for (uint32_t i = 0; i < p->n && i < max; i++)
		store_names_add(out, p->names[i]);
}

/* ---- The walk ---- */

/* Opens a folder below the folder fd. Returns 0 also if it is gone, or -1 with errno. */
static int
enter(struct list_walk *w, int fd, const char *name, size_t length)
{
	const int folder = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = folder < 0 ? NULL : fdopendir(folder);

	if (dir) {
		w->open[w->depth] = dir;
		w->lengths[w->depth++] = length;
		return 0;
	}
	const int number = errno;

	if (folder >= 0)
		close(folder);
	errno = number;
	return number == ENOENT || number == ENOTDIR ? 0 : -1;
}

static bool
is_folder(int fd, const struct dirent *e)
{
	struct stat st;

	if (e->d_type != DT_UNKNOWN)
		return e->d_type == DT_DIR;
	return fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Whether names below the folder can be on this page. The path ends with a slash. */
static bool
folder_counts(const struct list_walk *w, size_t length)
{
	size_t prefix = strlen(w->prefix);

	return strncmp(w->path, w->prefix, length < prefix ? length : prefix) == 0 &&
	       strncmp(w->path, w->after, length) >= 0 && pick_wants(&w->pick, w->path);
}

static bool
file_counts(const struct list_walk *w)
{
	return strncmp(w->path, w->prefix, strlen(w->prefix)) == 0 &&
	       strcmp(w->path, w->after) > 0 && store_name_is_valid(w->path) &&
	       pick_wants(&w->pick, w->path);
}

/* One entry of the folder in which the walk is. Returns 0, or -1 with errno. */
static int
visit(struct list_walk *w, const struct dirent *e)
{
	const int fd = dirfd(w->open[w->depth - 1]);
	const size_t above = w->lengths[w->depth - 1], n = strlen(e->d_name);

	if (e->d_name[0] == '.' || above + n >= STORE_NAME_MAX)
		return 0;
	memcpy(w->path + above, e->d_name, n + 1);
	if (!is_folder(fd, e)) {
		if (file_counts(w))
			pick_add(&w->pick, w->path);
		return 0;
	}
	memcpy(w->path + above + n, "/", 2);
	if (w->depth == STORE_SEGMENTS || !folder_counts(w, above + n + 1))
		return 0;
	return enter(w, fd, e->d_name, above + n + 1);
}

/* Reads all folders. Returns 0, or -1 with errno. */
static int
walk(struct list_walk *w)
{
	while (w->depth) {
		errno = 0;
		const struct dirent *e = readdir(w->open[w->depth - 1]);

		if (e ? visit(w, e) : errno)
			return -1;
		if (!e)
			closedir(w->open[--w->depth]);
	}
	return 0;
}

/* Begins in the folder of the prefix. */
static int
begin(struct list_walk *w, int root)
{
	const char *slash = strrchr(w->prefix, '/');
	size_t n = slash ? (size_t)(slash - w->prefix) + 1 : 0;

	memcpy(w->path, w->prefix, n);
	w->path[n] = '\0';
	return enter(w, root, n ? w->path : ".", n);
}

enum store_result
file_list(struct store *s, const char *prefix, const char *after, uint32_t max,
	  struct store_names *out, struct slu_err *err)
{
	const struct file_store *f = (const struct file_store *)(const void *)s;
	struct list_walk w = { .prefix = prefix, .after = after };
	enum store_result r = file_check(f, err);

	if (r != STORE_OK)
		return r;
	w.pick.keep = max + 1;
	w.pick.room = 2 * w.pick.keep;
	w.pick.names = mem_array(w.pick.room, sizeof *w.pick.names);
	if (!w.pick.names)
		return file_fail(ENOMEM, "list", err);
	if (begin(&w, f->root) || walk(&w))
		r = file_fail(errno, "read a folder", err);
	else
		pick_give(&w.pick, max, out);
	while (w.depth)
		closedir(w.open[--w.depth]);
	mem_free(w.pick.names);
	return r;
}
