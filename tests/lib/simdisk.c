#include "simdisk_private.h"

#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Counts the call, and says whether it fails. Under mtx. */
static int
begin(struct simdisk *s, enum sim_op op)
{
	s->counts[op]++;
	if (s->dead)
		return -EIO;
	if (s->power_off && SIM_CHANGES & SIM_BIT(op)) {
		if (s->changes >= s->power_off) {
			s->dead = true;
			return -EIO;
		}
		s->changes++;
	}
	if (s->fail_in == 0 || !(s->fail_ops & SIM_BIT(op)))
		return 0;
	if (s->fail_in > 1) {
		s->fail_in--;
		return 0;
	}
	s->failed = true;
	if (!s->fail_on)
		s->fail_in = 0;
	return -s->fail_errno;
}

static struct simdisk *
lock_sim(struct disk *d)
{
	struct simdisk *s = (struct simdisk *)d;

	pthread_mutex_lock(&s->mtx);
	return s;
}

static int
done(struct simdisk *s, int rc)
{
	pthread_mutex_unlock(&s->mtx);
	return rc;
}

static int
new_file(struct simdisk *s, struct sim_inode *inode, const char *folder)
{
	CHECK(s->n_files < SIM_FILES);
	s->files[s->n_files].inode = inode;
	s->files[s->n_files].locks = false;
	snprintf(s->files[s->n_files].folder, SIM_NAME, "%s", folder);
	if (inode)
		inode->refs++;
	return s->n_files++;
}

static const char *
join(const struct simdisk *s, int folder, const char *name, char path[SIM_NAME])
{
	CHECK(folder >= 0 && folder < s->n_files);
	CHECK(snprintf(path, SIM_NAME, "%s/%s", s->files[folder].folder, name) <
	      SIM_NAME);
	return path;
}

static int
sim_folder(struct disk *d, const char *path)
{
	struct simdisk *s = lock_sim(d);
	const int rc = begin(s, SIM_FOLDER);

	return done(s, rc ? rc : new_file(s, NULL, path));
}

static int
sim_sync_folder(struct disk *d, int folder)
{
	struct simdisk *s = lock_sim(d);
	const int rc = begin(s, SIM_SYNC_FOLDER);

	(void)folder;
	if (!rc)
		sim_forget_older(s->names);
	return done(s, rc);
}

static int
sim_list(struct disk *d, int folder, disk_name_fn *fn, void *arg)
{
	struct simdisk *s = lock_sim(d);
	static _Thread_local char found[SIM_NAMES][SIM_NAME];
	const char *prefix = s->files[folder].folder;
	const size_t len = strlen(prefix);
	unsigned n = 0;
	int rc = begin(s, SIM_LIST);

	for (unsigned i = 0; i < s->names->n; i++)
		if (strncmp(s->names->at[i].name, prefix, len) == 0 &&
		    s->names->at[i].name[len] == '/')
			strcpy(found[n++], s->names->at[i].name + len + 1);
	done(s, 0);
	for (unsigned i = 0; i < n && !rc; i++)
		rc = fn(arg, found[i]);
	return rc;
}

static int
sim_rename(struct disk *d, int folder, const char *from, const char *to)
{
	struct simdisk *s = lock_sim(d);
	char a[SIM_NAME], b[SIM_NAME];
	int rc = begin(s, SIM_RENAME);
	struct sim_names *n;

	join(s, folder, from, a);
	join(s, folder, to, b);
	if (!rc && sim_names_find(s->names, a) < 0)
		rc = -ENOENT;
	if (rc)
		return done(s, rc);
	n = sim_names_change(s);
	if (sim_names_find(n, b) >= 0)
		sim_names_drop(n, sim_names_find(n, b));
	strcpy(n->at[sim_names_find(n, a)].name, b);
	return done(s, 0);
}

static int
sim_remove(struct disk *d, int folder, const char *name)
{
	struct simdisk *s = lock_sim(d);
	char path[SIM_NAME];
	int rc = begin(s, SIM_REMOVE), i;

	i = sim_names_find(s->names, join(s, folder, name, path));
	if (!rc && i < 0)
		rc = -ENOENT;
	if (!rc)
		sim_names_drop(sim_names_change(s), i);
	return done(s, rc);
}

static int64_t
sim_room(struct disk *d, int folder)
{
	struct simdisk *s = lock_sim(d);
	const uint64_t n = sim_used(s);
	int64_t room = INT64_MAX;

	(void)folder;
	if (s->capacity)
		room = n < s->capacity ? (int64_t)(s->capacity - n) : 0;
	done(s, 0);
	return room;
}

static int64_t
sim_whole(struct disk *d, int folder)
{
	struct simdisk *s = lock_sim(d);
	const int64_t n = s->capacity ? (int64_t)s->capacity : INT64_MAX;

	(void)folder;
	done(s, 0);
	return n;
}

static int
sim_create(struct disk *d, int folder, const char *name)
{
	struct simdisk *s = lock_sim(d);
	char path[SIM_NAME];
	int rc = begin(s, SIM_CREATE);
	struct sim_names *n;

	join(s, folder, name, path);
	if (!rc && sim_names_find(s->names, path) >= 0)
		rc = -EEXIST;
	if (rc)
		return done(s, rc);
	n = sim_names_change(s);
	CHECK(n->n < SIM_NAMES);
	strcpy(n->at[n->n].name, path);
	n->at[n->n].inode = sim_grab(sizeof(struct sim_inode));
	n->at[n->n].inode->refs = 1;
	return done(s, new_file(s, n->at[n->n++].inode, ""));
}

static int
sim_open(struct disk *d, int folder, const char *name)
{
	struct simdisk *s = lock_sim(d);
	char path[SIM_NAME];
	int rc = begin(s, SIM_OPEN), i;

	i = sim_names_find(s->names, join(s, folder, name, path));
	if (!rc && i < 0)
		rc = -ENOENT;
	return done(s, rc ? rc : new_file(s, s->names->at[i].inode, ""));
}

static void
close_file(struct simdisk *s, int file)
{
	struct sim_file *f = &s->files[file];

	if (f->inode && f->locks)
		f->inode->locked = false;
	sim_unref(f->inode);
	f->inode = NULL;
	while (s->n_files && !s->files[s->n_files - 1].inode &&
	       !s->files[s->n_files - 1].folder[0])
		s->n_files--;
}

static void
sim_close(struct disk *d, int file)
{
	struct simdisk *s = lock_sim(d);

	if (file < s->n_files) { /* a crash has closed them all */
		s->files[file].folder[0] = 0;
		close_file(s, file);
	}
	done(s, 0);
}

static int64_t
read_file(struct simdisk *s, int file, void *p, size_t n, uint64_t at)
{
	const int rc = begin(s, SIM_READ);
	const struct sim_inode *f;

	if (rc)
		return rc;
	CHECK(file >= 0 && file < s->n_files && s->files[file].inode);
	f = s->files[file].inode;
	if (at >= f->size)
		return 0;
	n = n < f->size - at ? n : f->size - at;
	memcpy(p, f->now + at, n);
	return (int64_t)n;
}

static int64_t
sim_read(struct disk *d, int file, void *p, size_t n, uint64_t at)
{
	struct simdisk *s = lock_sim(d);
	const int64_t got = read_file(s, file, p, n, at);

	done(s, 0);
	return got;
}

static int64_t
sim_read_now(struct disk *d, int file, void *p, size_t n, uint64_t at)
{
	struct simdisk *s = lock_sim(d);
	const int64_t got = s->cold ? -EAGAIN : read_file(s, file, p, n, at);

	done(s, 0);
	return got >= 0 && got < (int64_t)n ? -EAGAIN : got;
}

/* Under mtx. */
static int
grow(struct simdisk *s, struct sim_inode *f, size_t size)
{
	if (size <= f->size)
		return 0;
	if (s->capacity && sim_used(s) + size - f->size > s->capacity)
		return -ENOSPC;
	f->now = realloc(f->now, size);
	CHECK(f->now);
	memset(f->now + f->size, 0, size - f->size);
	f->size = size;
	return 0;
}

static int
sim_write(struct disk *d, int file, const void *p, size_t n, uint64_t at)
{
	struct simdisk *s = lock_sim(d);
	struct sim_inode *f = s->files[file].inode;
	int rc = begin(s, SIM_WRITE);
	struct sim_write *w;

	if (!rc)
		rc = grow(s, f, at + n);
	if (rc || n == 0)
		return done(s, rc);
	memcpy(f->now + at, p, n);
	if (s->steady)
		return done(s, 0);
	w = sim_grab(sizeof *w + n);
	*w = (struct sim_write){ .older = f->writes, .at = at, .n = n };
	w->serial = s->counts[SIM_WRITE];
	memcpy(w->data, p, n);
	f->writes = w;
	return done(s, 0);
}

static void
apply(struct sim_inode *f, const struct sim_write *w)
{
	if (!w)
		return;
	apply(f, w->older);
	if (!w->doomed)
		memcpy(f->synced + w->at, w->data, w->n);
}

static int
sim_sync(struct disk *d, int file)
{
	struct simdisk *s = lock_sim(d);
	struct sim_inode *f = s->files[file].inode;
	const int rc = begin(s, SIM_SYNC);

	if (rc) {
		for (struct sim_write *w = f->writes; w && !s->dead; w = w->older)
			w->doomed = true;
		return done(s, rc);
	}
	sim_make_synced(f, f->size);
	apply(f, f->writes);
	sim_drop_writes(f);
	return done(s, 0);
}

static int64_t
sim_size(struct disk *d, int file)
{
	struct simdisk *s = lock_sim(d);
	const int rc = begin(s, SIM_SIZE);
	const int64_t size = rc ? rc : (int64_t)s->files[file].inode->size;

	done(s, 0);
	return size;
}

static int
sim_allocate(struct disk *d, int file, uint64_t size)
{
	struct simdisk *s = lock_sim(d);
	const int rc = begin(s, SIM_ALLOCATE);

	return done(s, rc ? rc : grow(s, s->files[file].inode, size));
}

static int
sim_lock(struct disk *d, int file)
{
	struct simdisk *s = lock_sim(d);
	struct sim_file *f = &s->files[file];
	int rc = begin(s, SIM_LOCK);

	if (!rc && f->inode->locked)
		rc = -EWOULDBLOCK;
	if (!rc)
		f->locks = f->inode->locked = true;
	return done(s, rc);
}

static const struct disk_ops sim_ops = {
	.folder = sim_folder,
	.sync_folder = sim_sync_folder,
	.list = sim_list,
	.rename = sim_rename,
	.remove = sim_remove,
	.room = sim_room,
	.whole = sim_whole,
	.create = sim_create,
	.open = sim_open,
	.close = sim_close,
	.read = sim_read,
	.read_now = sim_read_now,
	.write = sim_write,
	.sync = sim_sync,
	.size = sim_size,
	.allocate = sim_allocate,
	.lock = sim_lock,
};

void
simdisk_init(struct simdisk *s)
{
	memset(s, 0, sizeof *s);
	s->disk.ops = &sim_ops;
	pthread_mutex_init(&s->mtx, NULL);
	s->names = sim_grab(sizeof *s->names);
	s->files = sim_grab(SIM_FILES * sizeof *s->files);
}

void
sim_close_all(struct simdisk *s)
{
	for (int i = s->n_files - 1; i >= 0; i--) {
		s->files[i].folder[0] = 0;
		close_file(s, i);
	}
	s->n_files = 0;
}
