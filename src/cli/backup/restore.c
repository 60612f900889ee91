/*
 * restore.c - `sluice admin restore`: makes a data folder from a backup, without a server.
 *
 *      BACKUP ──> DIR.partial: files, checksums compared, zeros appended, synced
 *                      │  the log of every shard is read whole, and its end is checked
 *                      v
 *                     DIR: one rename
 */
#include "cli/lib/progress.h"
#include "cli/lib/json_line.h"
#include "cli/lib/session.h"
#include "cli/backup/stored.h"

#include "base/disk.h"
#include "base/json/json_out.h"
#include "engine/log/logengine.h"
#include "wal/durable.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

struct restore {
	struct session s;
	const char *data;
	char work[ARCHIVE_PATH]; /* DIR.partial */
	struct stored backup;
	struct progress progress;
	uint64_t done;
	uint64_t messages;
};

/* --- where to ------------------------------------------------------------------- */

/* Is the folder empty or missing? */
static int
check_empty(const char *path, struct slu_err *err)
{
	struct dirent *e;
	DIR *d = opendir(path);
	int found = 0;

	if (!d)
		return errno == ENOENT ? 0 : slu_fail(err, SLU_EDOWN, "%s: %m", path);
	while ((e = readdir(d)) != NULL && !found)
		found = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	closedir(d);
	if (found)
		return slu_fail(err, SLU_EEXISTS, "%s is not empty; name a new folder, or move this one away",
				path);
	return 0;
}

static int
make_folder(struct restore *r, struct slu_err *err)
{
	size_t n = strlen(r->data);
	int rc;

	while (n > 1 && r->data[n - 1] == '/')
		n--;
	if (snprintf(r->work, sizeof r->work, "%.*s.partial", (int)n, r->data) >= (int)sizeof r->work)
		return slu_fail(err, SLU_EINVAL, "--data: name too long");
	rc = check_empty(r->data, err);
	if (rc)
		return rc;
	if (mkdir(r->work, 0700) == 0)
		return 0;
	if (errno == EEXIST)
		return slu_fail(err, SLU_EEXISTS, "%s exists: another restore is running or was interrupted; remove it",
				r->work);
	return slu_fail(err, SLU_EDOWN, "make %s: %m", r->work);
}

/* --- a file --------------------------------------------------------------------- */

struct restore_target {
	struct restore *r;
	const struct manifest_file *file;
	int fd;
};

static int
write_piece(void *arg, const char *p, size_t n, struct slu_err *err)
{
	const struct restore_target *const t = arg;

	if (write(t->fd, p, n) != (ssize_t)n)
		return slu_fail(err, SLU_EFULL, "write %s/%s: %m", t->r->work, t->file->name);
	t->r->done += n;
	progress_at(&t->r->progress, t->r->done);
	return 0;
}

/* Allocates the zeros at the end on disk: the log relies on them. */
static int
finish_file(const struct restore *r, const struct manifest_file *f, int fd,
	    struct slu_err *err)
{
	const int rc = f->size > f->bytes
			       ? posix_fallocate(fd, (off_t)f->bytes, (off_t)(f->size - f->bytes))
			       : 0;

	if (rc) {
		errno = rc;
		return slu_fail(err, SLU_EFULL, "make %s/%s %" PRIu64 " bytes long: %m", r->work,
				f->name, f->size);
	}
	return fsync(fd) ? slu_fail(err, SLU_EDOWN, "sync %s/%s: %m", r->work, f->name) : 0;
}

static int
copy_file(struct restore *r, const struct manifest_file *f, struct slu_err *err)
{
	char path[ARCHIVE_PATH + MANIFEST_FILE_NAME];
	struct restore_target t = { .r = r, .file = f };
	int rc = archive_make_folders(r->work, f->name, err);

	if (rc)
		return rc;
	(void)snprintf(path, sizeof path, "%s/%s", r->work, f->name); /* fits */
	t.fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (t.fd < 0)
		return slu_fail(err, SLU_EDOWN, "make %s: %m", path);
	rc = stored_read(&r->backup, f, write_piece, &t, err);
	if (!rc)
		rc = finish_file(r, f, t.fd, err);
	close(t.fd);
	return rc ? rc : archive_sync_folder_of(path, err);
}

static int
copy_all(struct restore *r, struct slu_err *err)
{
	int rc = 0;

	progress_begin(&r->progress, "restoring", r->backup.manifest.bytes, true);
	for (uint32_t i = 0; i < r->backup.manifest.n_files && !rc; i++)
		rc = copy_file(r, &r->backup.manifest.files[i], err);
	progress_end(&r->progress);
	return rc;
}

/* --- a shard -------------------------------------------------------------------- */

/* The copy was synced completely, so the log must reach its marked end. */
static int
put_durable(const char *folder, const struct manifest_shard *shard, struct slu_err *err)
{
	const int dir = disk_posix.ops->folder(&disk_posix, folder);
	struct durable d = { .file = -1 };
	int rc;

	if (dir < 0)
		return disk_fail(dir, "open", folder, err);
	rc = durable_open(&d, &disk_posix, dir, false, err);
	if (!rc)
		rc = durable_put(&d, shard->last, shard->time, err);
	durable_close(&d);
	disk_posix.ops->close(&disk_posix, dir);
	return rc;
}

/* Checks MANIFEST-3. */
static int
check_shard(struct restore *r, uint32_t i, struct slu_err *err)
{
	const struct manifest_shard *shard = &r->backup.manifest.shards[i];
	char folder[ARCHIVE_PATH + MANIFEST_FOLDER + 1];
	const struct engine_conf conf = { .folder = folder };
	struct logengine_facts facts;
	int rc;

	(void)snprintf(folder, sizeof folder, "%s%s%s", r->work, *shard->folder ? "/" : "",
		       shard->folder);
	rc = put_durable(folder, shard, err);
	if (!rc)
		rc = logengine_check(&conf, &facts, err);
	if (rc)
		return rc;
	if (facts.wrong)
		return slu_fail(err, SLU_ECORRUPT, "inconsistent records: %s", facts.wrong);
	if (facts.last_seq != shard->last)
		return slu_fail(err, SLU_ECORRUPT,
				"shard %s ends with record %" PRIu64 ", not %" PRIu64,
				*shard->folder ? shard->folder : "0", facts.last_seq, shard->last);
	r->messages += facts.messages;
	return 0;
}

static int
check_all(struct restore *r, struct slu_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < r->backup.manifest.n_shards && !rc; i++)
		rc = check_shard(r, i, err);
	return rc;
}

/* --- the command ---------------------------------------------------------------- */

static int
restore(struct restore *r, struct slu_err *err)
{
	int rc = stored_open(&r->backup, r->s.words[0], err);

	if (!rc)
		rc = make_folder(r, err);
	if (rc)
		return rc;
	rc = copy_all(r, err);
	if (!rc)
		rc = check_all(r, err);
	if (!rc && rename(r->work, r->data))
		rc = slu_fail(err, SLU_EDOWN, "rename %s to %s: %m", r->work, r->data);
	if (!rc)
		rc = archive_sync_folder_of(r->data, err);
	if (rc)
		session_note(&r->s, "%s is incomplete: remove it", r->work);
	return rc;
}

static void
tell_json(const struct restore *r)
{
	struct json_line l;
	struct json_out *const w = json_line_begin(&l);

	json_out_str(w, "data", slice_of(r->data));
	json_out_u64(w, "messages", r->messages);
	json_out_u64(w, "bytes", r->backup.manifest.bytes);
	json_out_u64(w, "shards", r->backup.manifest.n_shards);
	manifest_write_left_out(&r->backup.manifest, w);
	json_line_end(&l, stdout);
}

/* Is it a shard of --shards: in the data folder itself, or in a folder with its number? */
static bool
is_standard(const struct manifest_shard *shard)
{
	return strspn(shard->folder, "0123456789") == strlen(shard->folder);
}

static void
tell_left_out(const struct restore *r)
{
	const struct manifest *m = &r->backup.manifest;

	for (uint32_t i = 0; i < m->n_left_out; i++)
		session_note(&r->s, "shard %s (engine %s) is not in the backup", m->left_out[i].name,
			     m->left_out[i].engine);
}

static void
tell(const struct restore *r)
{
	const struct manifest *m = &r->backup.manifest;
	uint32_t standard = 0;

	tell_left_out(r);
	if (r->s.json) {
		tell_json(r);
		return;
	}
	for (uint32_t i = 0; i < m->n_shards; i++)
		standard += is_standard(&m->shards[i]);
	printf("%s: %" PRIu64 " messages, checked\nstart it with: sluiced --data %s", r->data,
	       r->messages, r->data);
	if (standard > 1)
		printf(" --shards %" PRIu32, standard);
	puts(standard < m->n_shards || m->n_left_out ? " --config FILE, with the shards of the server that was backed up" : "");
}

static int
run(struct session *s, struct slu_err *err)
{
	struct restore *const r = (void *)s;
	int rc;

	if (!r->data)
		return session_usage(&r->s, "missing --data FOLDER");
	rc = restore(r, err);
	if (!rc)
		tell(r);
	stored_close(&r->backup);
	return rc;
}

const struct command cli_admin_restore = {
	.name = "admin restore",
	.summary = "make a data folder from a backup",
	.usage = "BACKUP --data FOLDER [options]",
	.text = "Makes a data folder from a backup on this machine. Every file is compared with its\n"
		"checksum, every log is read whole. The folder must be empty or missing; it gets its\n"
		"name when all checks have passed. Leases of the backup start again for a short time;\n"
		"messages that were acked after the backup began are delivered again.\n",
	.examples = "  sluice admin restore /backup/sluice-monday --data /var/lib/sluice\n"
		    "  sluice admin restore sluice.tar --data ./data\n",
	.options = CLI_JSON,
	CLI_ARGS({ "--data FOLDER", ARG_TEXT, AT(restore, data), "the new data folder" }),
	.size = sizeof(struct restore),
	.run = run,
};
