/*
 * backup.c - `sluice admin backup`: the files of a running server, copied to where this
 * command runs; or a backup that is there, compared with its sums.
 */
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/stored.h"

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/json.h"
#include "base/json_out.h"
#include "base/json_table.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

/* A little longer than a server holds a backup that nobody reads. */
#define PATIENCE (70 * SLU_SEC)

struct backup {
	struct session s;
	const char *out, *verify;
	struct archive archive;
	struct manifest manifest;
	struct progress progress;
	uint64_t total; /* bytes that the server has announced */
	uint64_t done;
};

/* --- begin and end -------------------------------------------------------------- */

struct begun {
	struct slice backup, version, engine, shards, left_out;
	uint64_t bytes;
};

/* A backup that was killed is over when nobody has read it for a minute: wait for that. */
static int
ask_begin(struct backup *b, struct slice *answer, struct slu_err *err)
{
	const slu_time until = clock_mono(&clock_system) + PATIENCE;
	bool said = false;
	int rc;

	for (;;) {
		query_path(&b->s.query, "/v1/admin/backup");
		rc = query_post(&b->s.query, SLICE("{}"), answer, err);
		if (rc != SLU_ECONFLICT || clock_mono(&clock_system) >= until)
			return rc;
		if (!said)
			session_note(&b->s, "%s; waiting", err->text);
		said = true;
		(void)poll(&(struct pollfd){ .fd = b->s.query.cancel_fd, .events = POLLIN }, 1, 1000);
	}
}

static int
begin(struct backup *b, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_FIELD(text, struct begun, backup, .required = true),
		JSON_FIELD(text, struct begun, version),
		JSON_FIELD(text, struct begun, engine),
		JSON_FIELD(raw, struct begun, shards, .required = true),
		JSON_FIELD(raw, struct begun, left_out),
		JSON_FIELD(u64, struct begun, bytes),
	};
	struct manifest *m = &b->manifest;
	struct begun begun = { 0 };
	struct slice answer;
	struct json r;
	int rc;

	rc = ask_begin(b, &answer, err);
	if (rc)
		return rc;
	m->began_at = clock_wall(&clock_system);
	json_init(&r, answer, JSON_DEPTH);
	json_fields(&r, fields, COUNT(fields), JSON_LENIENT, &begun);
	if (json_end(&r, err))
		return SLU_EUNKNOWN;
	(void)snprintf(m->backup, sizeof m->backup, "%.*s", (int)begun.backup.n, begun.backup.p);
	(void)snprintf(m->version, sizeof m->version, "%.*s", (int)begun.version.n,
		       begun.version.p);
	(void)snprintf(m->engine, sizeof m->engine, "%.*s", (int)begun.engine.n, begun.engine.p);
	b->total = begun.bytes;
	rc = manifest_read_shards(m, begun.shards, err);
	return rc ? rc : manifest_read_left_out(m, begun.left_out, err);
}

/* The server lets the files go; if it does not hear of it, it does so by itself. */
static void
end(struct backup *b)
{
	struct slice answer;
	struct json_out w;
	struct slu_err err;
	struct buf body;

	if (!b->manifest.backup[0])
		return;
	b->s.query.cancel_fd = 0; /* also after a signal */
	buf_init(&body, 256);
	json_out_init(&w, &body);
	json_out_object(&w, NULL);
	json_out_str(&w, "backup", slice_of(b->manifest.backup));
	json_out_close(&w);
	query_path(&b->s.query, "/v1/admin/backup/end");
	(void)query_post(&b->s.query, buf_slice(&body), &answer, &err);
	buf_release(&body);
}

/* --- a piece -------------------------------------------------------------------- */

struct piece {
	struct slice name;
	uint64_t bytes, size, at, n, crc32c;
	struct slice content;
};

static int
read_piece(struct slice answer, struct piece *p, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_FIELD(text, struct piece, name, .required = true),
		JSON_FIELD(u64, struct piece, bytes, .required = true),
		JSON_FIELD(u64, struct piece, size, .required = true),
		JSON_FIELD(u64, struct piece, at, .required = true),
		JSON_FIELD(u64, struct piece, n, .required = true),
		JSON_FIELD(u64, struct piece, crc32c, .required = true),
	};
	const char *lf = memchr(answer.p, '\n', answer.n);
	const size_t head = lf ? (size_t)(lf - answer.p) : answer.n;
	struct json r;

	*p = (struct piece){ 0 };
	json_init(&r, (struct slice){ answer.p, head }, JSON_DEPTH);
	json_fields(&r, fields, COUNT(fields), JSON_LENIENT, p);
	if (json_end(&r, NULL) || !lf || answer.n - head - 1 != p->n ||
	    p->name.n >= MANIFEST_FILE_NAME)
		return slu_fail(err, SLU_EUNKNOWN, "the server's answer is not understood");
	p->content = (struct slice){ lf + 1, (size_t)p->n };
	if (crc32c(0, p->content.p, p->content.n) != p->crc32c)
		return slu_fail(err, SLU_EUNKNOWN, "what came of %.*s is not what was sent",
				(int)p->name.n, p->name.p);
	return 0;
}

static int
ask_piece(struct backup *b, uint32_t shard, uint64_t file, uint64_t at, struct piece *p,
	  struct slu_err *err)
{
	struct query *q = &b->s.query;
	struct slice answer;
	int rc;

	query_path(q, "/v1/admin/backup");
	query_param(q, "backup", b->manifest.backup);
	query_param_u64(q, "shard", shard);
	query_param_u64(q, "file", file);
	query_param_u64(q, "at", at);
	rc = query_get(q, &answer, err);
	return rc ? rc : read_piece(answer, p, err);
}

/* --- a file --------------------------------------------------------------------- */

static int
begin_file(struct backup *b, const struct piece *p, struct manifest_file *f,
	   struct slu_err *err)
{
	memcpy(f->name, p->name.p, p->name.n);
	f->bytes = p->bytes;
	f->size = p->size;
	return archive_begin(&b->archive, f->name, f->bytes, err);
}

static int
copy_file(struct backup *b, uint32_t shard, uint64_t file, struct slu_err *err)
{
	struct manifest_file f = { 0 };
	struct piece p;
	uint64_t at = 0;
	int rc;

	do {
		rc = ask_piece(b, shard, file, at, &p, err);
		if (!rc && at == 0)
			rc = begin_file(b, &p, &f, err);
		if (!rc && p.n == 0 && at < f.bytes)
			rc = slu_fail(err, SLU_EUNKNOWN, "%s came to an end too early", f.name);
		if (!rc)
			rc = archive_write(&b->archive, p.content.p, p.content.n, err);
		if (rc)
			return rc;
		f.sum = crc32c(f.sum, p.content.p, p.content.n);
		at += p.n;
		b->done += p.n;
		progress_at(&b->progress, b->done);
	} while (at < f.bytes);
	rc = archive_end(&b->archive, err);
	if (!rc && manifest_add_file(&b->manifest, &f))
		rc = slu_fail(err, SLU_ENOMEM, "no memory for the list of files");
	return rc;
}

static int
copy_all(struct backup *b, struct slu_err *err)
{
	int rc = 0;

	progress_begin(&b->progress, "backing up", b->total, true);
	for (uint32_t i = 0; i < b->manifest.n_shards && !rc; i++)
		for (uint64_t j = 0; j < b->manifest.shards[i].files && !rc; j++)
			rc = copy_file(b, (uint32_t)b->manifest.shards[i].shard, j, err);
	progress_end(&b->progress);
	return rc;
}

/* --- the command ---------------------------------------------------------------- */

/* M1 of the manifest: last. */
static int
write_manifest(struct backup *b, struct slu_err *err)
{
	struct buf text;
	int rc;

	buf_init(&text, MANIFEST_BYTES_MAX);
	manifest_write(&b->manifest, &text);
	rc = text.failed ? slu_fail(err, SLU_ENOMEM, "no memory for the list of files")
			 : archive_begin(&b->archive, MANIFEST_NAME, text.n, err);
	if (!rc)
		rc = archive_write(&b->archive, text.p, text.n, err);
	if (!rc)
		rc = archive_end(&b->archive, err);
	buf_release(&text);
	return rc;
}

/* Ctrl-C ends the call that is under way: then the server and the disk are tidied up. */
static void
stop_on_signals(struct backup *b)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (fd < 0)
		return;
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	b->s.query.cancel_fd = fd; /* open until the end of the process */
}

/* Nothing is made here before the server has agreed. */
static int
run(struct backup *b, struct slu_err *err)
{
	int rc = archive_check_new(b->out, err);

	stop_on_signals(b);
	if (!rc)
		rc = begin(b, err);
	if (!rc)
		rc = archive_create(&b->archive, b->out, err);
	if (!rc)
		rc = copy_all(b, err);
	end(b);
	if (!rc)
		rc = write_manifest(b, err);
	return rc ? rc : archive_finish(&b->archive, err);
}

static int
verify(struct backup *b, struct slu_err *err)
{
	struct stored stored;
	int rc = stored_open(&stored, b->verify, err);

	if (!rc)
		progress_begin(&b->progress, "verifying", stored.manifest.bytes, true);
	for (uint32_t i = 0; i < stored.manifest.n_files && !rc; i++) {
		rc = stored_read(&stored, &stored.manifest.files[i], NULL, NULL, err);
		b->done += stored.manifest.files[i].bytes;
		progress_at(&b->progress, b->done);
	}
	if (b->done)
		progress_end(&b->progress);
	b->manifest = stored.manifest;
	stored.manifest = (struct manifest){ 0 };
	stored_close(&stored);
	return rc;
}

/* --- what is said ---------------------------------------------------------------- */

static void
tell_left_out(const struct backup *b)
{
	const struct manifest *m = &b->manifest;

	for (uint32_t i = 0; i < m->n_left_out; i++)
		session_note(&b->s, "shard %s is not in the backup: engine %s keeps no files%s",
			     m->left_out[i].name, m->left_out[i].engine,
			     strcmp(m->left_out[i].engine, "redis") == 0 ? "; back up its server" : "");
}

/* What was copied or verified; beside a backup on standard output it goes to stderr. */
static void
tell(const struct backup *b, const char *name)
{
	const struct manifest *m = &b->manifest;
	FILE *const out = b->archive.stream ? stderr : stdout;
	struct json_out w;
	struct buf line;

	tell_left_out(b);
	if (!b->s.json) {
		fprintf(out, "%s: %" PRIu32 " files, %" PRIu64 " bytes%s\n", name, m->n_files, m->bytes,
			b->verify ? ", sound" : "");
		return;
	}
	buf_init(&line, SIZE_MAX);
	json_out_init(&w, &line);
	json_out_object(&w, NULL);
	json_out_str(&w, b->verify ? "verified" : "out", slice_of(name));
	json_out_u64(&w, "files", m->n_files);
	json_out_u64(&w, "bytes", m->bytes);
	json_out_u64(&w, "shards", m->n_shards);
	manifest_write_left_out(m, &w);
	json_out_close(&w);
	json_out_end(&w);
	fprintf(out, "%s\n", buf_str(&line));
	buf_release(&line);
}

int
cli_admin_backup(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "admin backup --out FOLDER|FILE.tar|- [options]\n"
			 "       sluice admin backup --verify FOLDER|FILE.tar",
		.text = "Copy everything that a running server keeps in files to a new folder, or to a tar\n"
			"file, here; - is a tar file on standard output. The server goes on serving. What it\n"
			"had answered before is in the backup. Shards that keep no files (Redis, memory) are\n"
			"named and left out. Until it is whole, it is called FOLDER.partial.\n\n"
			"--verify reads a backup and compares every file with its size and sum; it asks no\n"
			"server and makes no files.\n",
		.examples = "  sluice admin backup --out /backup/sluice-monday\n"
			    "  sluice admin backup --out sluice.tar --server 10.0.0.7:7171\n"
			    "  sluice admin backup --out - | zstd > sluice.tar.zst\n"
			    "  sluice admin backup --verify sluice.tar\n",
	};
	struct backup b = { .s = SESSION("admin backup") };
	const struct arg args[] = {
		{ "-o, --out PATH", ARG_TEXT, &b.out, "the new folder, a name that ends in .tar, or - (standard output)" },
		{ "--verify PATH", ARG_TEXT, &b.verify, "check a backup that is there; nothing else happens" },
		SESSION_SERVER_ROWS(&b.s),
	};
	struct slu_err err;

	if (!session_begin(&b.s, &help, &argc, &argv, args, COUNT(args)))
		return b.s.exit;
	if (!b.out == !b.verify)
		session_usage(&b.s, "say where to (--out FOLDER, --out FILE.tar or --out -), or --verify FILE");
	else if (b.verify ? verify(&b, &err) : run(&b, &err))
		session_fail(&b.s, &err);
	else
		tell(&b, b.verify ? b.verify : b.out);
	archive_close(&b.archive);
	manifest_release(&b.manifest);
	return session_end(&b.s);
}
