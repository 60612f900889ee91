#include "broker/layout.h"

#include "base/disk.h"
#include "engine/log/logengine.h"
#include "wal/folder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NOTE     "shards"
#define NOTE_TMP "shards.tmp"

enum {
	PATH = 4096,
	NOTE_SIZE = 16,
	SHOWN = 90 /* bytes of a path in an error text */
};

struct layout {
	const char *path;
	bool single;       /* the folder itself has a log */
	uint32_t numbered; /* highest number of a folder 0, 1, ... with a log, plus 1 */
	uint32_t noted;    /* number in the file `shards`; 0: no such file */
	struct slu_err *err;
	layout_fn *fn; /* layout_each */
	void *arg;
};

/* ---- The folder ---- */

static bool
is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Returns 1 if the folder has a segment, 0 if not, -errno if it cannot be read. */
static int
has_log(const char *path, struct slu_err *err)
{
	struct folder f = { 0 };
	int fd, found = 0;

	if (!is_folder(path))
		return 0;
	fd = disk_posix.ops->folder(&disk_posix, path);
	if (fd < 0) {
		(void)disk_fail(fd, "open", path, err);
		return fd;
	}
	if (folder_read(&f, &disk_posix, fd, err))
		found = -EIO;
	for (uint32_t i = 0; found == 0 && i < f.n; i++)
		found = f.at[i].kind == FOLDER_SEGMENT;
	folder_release(&f);
	disk_posix.ops->close(&disk_posix, fd);
	return found;
}

/* Returns true for "0", "1", ... as snprintf writes them. */
static bool
is_number(const char *name, uint32_t *number)
{
	char again[NOTE_SIZE];

	*number = (uint32_t)strtoul(name, NULL, 10);
	(void)snprintf(again, sizeof again, "%u", *number);
	return strcmp(again, name) == 0;
}

static bool
join(char path[static PATH], const char *folder, const char *name)
{
	return snprintf(path, PATH, "%s/%s", folder, name) < PATH;
}

static int
see_numbered(void *arg, const char *name)
{
	struct layout *const l = arg;
	char path[PATH];
	uint32_t number;
	int found;

	if (!is_number(name, &number) || number >= UINT16_MAX || !join(path, l->path, name))
		return 0;
	found = has_log(path, l->err);
	if (found > 0 && number >= l->numbered)
		l->numbered = number + 1;
	return found < 0 ? found : 0;
}

static int
list(const char *path, disk_name_fn *fn, struct layout *l)
{
	const int fd = disk_posix.ops->folder(&disk_posix, path);
	int rc;

	if (fd < 0)
		return disk_fail(fd, "open", path, l->err);
	rc = disk_posix.ops->list(&disk_posix, fd, fn, l);
	disk_posix.ops->close(&disk_posix, fd);
	if (rc && !*l->err->text)
		return disk_fail(rc, "list", path, l->err);
	return rc ? SLU_EDOWN : 0;
}

static void
read_note(struct layout *l)
{
	char path[PATH], text[NOTE_SIZE] = "";
	FILE *f = join(path, l->path, NOTE) ? fopen(path, "re") : NULL;

	if (!f)
		return;
	if (fgets(text, sizeof text, f)) {
		text[strcspn(text, "\n")] = 0;
		if (!is_number(text, &l->noted))
			l->noted = 0; /* the folders have the number, too */
	}
	(void)fclose(f);
}

static int
read_layout(struct layout *l, const char *folder, struct slu_err *err)
{
	int found;

	*l = (struct layout){ .path = folder, .err = err };
	found = has_log(folder, err);
	if (found < 0)
		return SLU_EDOWN;
	l->single = found > 0;
	read_note(l);
	return list(folder, see_numbered, l);
}

/* How many logs the folder was written with; 0: it has none. A folder `0` alone is left by a first start
 * that was interrupted. */
static uint32_t
written(const struct layout *l)
{
	if (!l->single && !l->numbered)
		return 0;
	if (l->noted)
		return l->noted;
	if (l->single)
		return 1;
	return l->numbered > 2 ? l->numbered : 2;
}

/* ---- The note ---- */

static int
write_note(const char *folder, uint32_t logs, struct slu_err *err)
{
	struct disk *const d = &disk_posix;
	const int at = d->ops->folder(d, folder);
	char text[NOTE_SIZE];
	int file, rc;

	if (at < 0)
		return disk_fail(at, "open", folder, err);
	(void)d->ops->remove(d, at, NOTE_TMP); /* left by an interrupted start */
	file = d->ops->create(d, at, NOTE_TMP);
	rc = file;
	if (file >= 0) {
		const int n = snprintf(text, sizeof text, "%u\n", logs);

		rc = d->ops->write(d, file, text, (size_t)n, 0);
		rc = rc ? rc : d->ops->sync(d, file);
		d->ops->close(d, file);
		rc = rc ? rc : d->ops->rename(d, at, NOTE_TMP, NOTE);
		rc = rc ? rc : d->ops->sync_folder(d, at);
	}
	d->ops->close(d, at);
	return rc < 0 ? disk_fail(rc, "write " NOTE " in", folder, err) : 0;
}

/* ---- Checks ---- */

/* The end of a long path: the error text must have room for the rest. */
static const char *
shown(const char *path)
{
	const size_t n = strlen(path);

	return n > SHOWN ? path + n - SHOWN : path;
}

static int
refuse(const struct layout *l, uint32_t logs, const char *setting, struct slu_err *err)
{
	const uint32_t was = written(l);

	if (!setting)
		return slu_fail(err, SLU_EINVAL,
				"%s was written with %u shards and would be opened with %u; the library "
				"opens folders of one: serve it with sluiced",
				shown(l->path), was, logs);
	return slu_fail(err, SLU_EINVAL,
			"%s was written with %u shard%s and would be opened with %u; use "
			"%s %u, or move the messages: docs/sharding.md, "
			"\"Another number of shards\"",
			shown(l->path), was, was == 1 ? "" : "s", logs, setting, was);
}

static int
check_number(const struct layout *l, uint32_t logs, const char *setting, struct slu_err *err)
{
	if (l->single && l->numbered && !l->noted)
		return slu_fail(err, SLU_EINVAL,
				"%s has the log of 1 shard (00000001.log) and the logs of %u "
				"shards (0, 1, ...); move those you do not want to another "
				"folder",
				shown(l->path), l->numbered > 2 ? l->numbered : 2);
	if (written(l) && written(l) != logs)
		return refuse(l, logs, setting, err);
	return 0;
}

/* The path, or the nearest folder above it that exists. Returns false if the path is too long. */
static bool
nearest_folder(const char *path, char out[static PATH])
{
	char *slash;

	if (snprintf(out, PATH, "%s", path) >= PATH)
		return false;
	while (!is_folder(out)) {
		slash = strrchr(out, '/');
		if (!slash)
			(void)snprintf(out, PATH, ".");
		else
			slash[slash == out] = '\0';
	}
	return true;
}

/* LAYOUT-3. Each log also checks the volume when it is made, after the logs before it. */
static int
check_room(const struct layout *l, uint32_t logs, struct slu_err *err)
{
	const uint64_t need = (uint64_t)logs * LOGENGINE_LEAST_ROOM;
	struct disk *const d = &disk_posix;
	char path[PATH];
	const int at = written(l) || !nearest_folder(l->path, path) ? -1 : d->ops->folder(d, path);
	int64_t room;

	if (at < 0)
		return 0;
	room = d->ops->room(d, at);
	d->ops->close(d, at);
	if (room < 0 || (uint64_t)room >= need)
		return 0;
	return slu_fail(err, SLU_EFULL,
			"%s: the volume has %" PRId64 " KiB free; %u new log%s at least %" PRIu64 " KiB",
			shown(l->path), room / 1024, logs, logs == 1 ? " needs" : "s need",
			need / 1024);
}

int
layout_fits(const char *folder, uint32_t logs, const char *setting, struct slu_err *err)
{
	struct slu_err local = { 0 };
	struct layout l = { .path = folder };
	int rc = 0;

	if (is_folder(folder))
		rc = read_layout(&l, folder, err ? err : &local);
	if (!rc)
		rc = check_number(&l, logs, setting, err);
	return rc ? rc : check_room(&l, logs, err);
}

int
layout_check(const char *folder, uint32_t logs, const char *setting, struct slu_err *err)
{
	struct slu_err local = { 0 };
	struct layout l;
	int rc = read_layout(&l, folder, err ? err : &local);

	if (!rc)
		rc = check_number(&l, logs, setting, err);
	if (!rc)
		rc = check_room(&l, logs, err);
	if (rc || l.noted == logs)
		return rc;
	rc = write_note(folder, logs, err);
	return written(&l) ? 0 : rc; /* a folder with logs opens on a full disk, too */
}

static int
see_shard(void *arg, const char *name)
{
	struct layout *const l = arg;
	char path[PATH], first[PATH];
	uint32_t number;
	int found;

	if (*name == '.' || is_number(name, &number) || !join(path, l->path, name) ||
	    !join(first, path, "0"))
		return 0;
	found = has_log(path, l->err);
	if (found == 0)
		found = has_log(first, l->err);
	if (found > 0)
		l->fn(l->arg, path);
	return found < 0 ? found : 0;
}

int
layout_each(const char *data, layout_fn *fn, void *arg, struct slu_err *err)
{
	struct slu_err local = { 0 };
	struct layout l;
	int rc;

	err = err ? err : &local;
	if (!is_folder(data))
		return 0;
	rc = read_layout(&l, data, err);
	if (rc)
		return rc;
	if (written(&l))
		fn(arg, data);
	l.fn = fn;
	l.arg = arg;
	return list(data, see_shard, &l);
}
