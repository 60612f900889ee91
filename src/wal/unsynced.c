#include "wal/unsynced.h"

#include "base/list.h"

static struct disk *
below(struct disk *d)
{
	return CONTAINER(d, struct unsynced, disk)->below;
}

static int
no_sync(struct disk *d, int file)
{
	(void)d;
	(void)file;
	return 0;
}

static int
open_folder(struct disk *d, const char *path)
{
	return below(d)->ops->folder(below(d), path);
}

static int
list_names(struct disk *d, int folder, disk_name_fn *fn, void *arg)
{
	return below(d)->ops->list(below(d), folder, fn, arg);
}

static int
rename_file(struct disk *d, int folder, const char *from, const char *to)
{
	return below(d)->ops->rename(below(d), folder, from, to);
}

static int
remove_file(struct disk *d, int folder, const char *name)
{
	return below(d)->ops->remove(below(d), folder, name);
}

static int64_t
room_of(struct disk *d, int folder)
{
	return below(d)->ops->room(below(d), folder);
}

static int64_t
whole_of(struct disk *d, int folder)
{
	return below(d)->ops->whole(below(d), folder);
}

static int
create_file(struct disk *d, int folder, const char *name)
{
	return below(d)->ops->create(below(d), folder, name);
}

static int
open_file(struct disk *d, int folder, const char *name)
{
	return below(d)->ops->open(below(d), folder, name);
}

static void
close_file(struct disk *d, int file)
{
	below(d)->ops->close(below(d), file);
}

static int64_t
read_file(struct disk *d, int file, void *p, size_t n, uint64_t at)
{
	return below(d)->ops->read(below(d), file, p, n, at);
}

static int64_t
read_now(struct disk *d, int file, void *p, size_t n, uint64_t at)
{
	return below(d)->ops->read_now(below(d), file, p, n, at);
}

static int
write_file(struct disk *d, int file, const void *p, size_t n, uint64_t at)
{
	return below(d)->ops->write(below(d), file, p, n, at);
}

static int64_t
size_of(struct disk *d, int file)
{
	return below(d)->ops->size(below(d), file);
}

static int
allocate(struct disk *d, int file, uint64_t size)
{
	return below(d)->ops->allocate(below(d), file, size);
}

static int
lock_file(struct disk *d, int file)
{
	return below(d)->ops->lock(below(d), file);
}

static const struct disk_ops unsynced_ops = {
	.folder = open_folder,
	.sync_folder = no_sync,
	.list = list_names,
	.rename = rename_file,
	.remove = remove_file,
	.room = room_of,
	.whole = whole_of,
	.create = create_file,
	.open = open_file,
	.close = close_file,
	.read = read_file,
	.read_now = read_now,
	.write = write_file,
	.sync = no_sync,
	.size = size_of,
	.allocate = allocate,
	.lock = lock_file,
};

struct disk *
unsynced_init(struct unsynced *u, struct disk *under)
{
	u->disk.ops = &unsynced_ops;
	u->below = under;
	return &u->disk;
}
