/*
 * backup.c - `sluice admin backup`: copies the files of a running server to this machine, or compares
 * an existing backup with its checksums.
 */
#include "cli/lib/progress.h"
#include "cli/lib/json_line.h"
#include "cli/lib/session.h"
#include "cli/backup/stored.h"

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/json/json.h"
#include "base/json/json_out.h"
#include "base/json/json_table.h"
#include "engine/engine.h"

#include <inttypes.h>
#include <poll.h>

/* A little longer than a server keeps a backup that no client reads. */
#define PATIENCE (70 * SLU_SEC)

struct backup {
	struct session s;
	const char *out, *verify;
	struct archive archive;
	struct manifest manifest;
	struct progress progress;
	uint64_t total; /* bytes that the server announced */
	uint64_t done;
};

/* --- begin and end -------------------------------------------------------------- */

struct begun {
	struct slice shards, left_out;
	uint64_t bytes;
	struct manifest m;
};

/* Begins a backup. If the server has too many, waits until it ends one: a minute after the last read. */
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
		JSON_ROW("backup", json_read_chars, struct begun, m.backup, .required = true),
		JSON_ROW("version", json_read_chars, struct begun, m.version),
		JSON_ROW("engine", json_read_chars, struct begun, m.engine),
		JSON_FIELD(raw, struct begun, shards, .required = true),
		JSON_FIELD(raw, struct begun, left_out),
		JSON_FIELD(u64, struct begun, bytes),
	};
	struct manifest *m = &b->manifest;
	struct begun begun = { 0 };
	struct slice answer;
	int rc;

	rc = ask_begin(b, &answer, err);
	begun.m.began_at = clock_wall(&clock_system);
	if (!rc)
		rc = query_read(answer, fields, COUNT(fields), &begun, err);
	if (rc)
		return rc;
	*m = begun.m;
	b->total = begun.bytes;
	rc = manifest_read_shards(m, begun.shards, err);
	return rc ? rc : manifest_read_left_out(m, begun.left_out, err);
}

/* Ends the backup on the server. Without this call the server ends it by itself. */
static void
end(struct backup *b)
{
	const char *const body[] = { "backup", b->manifest.backup, NULL };
	struct slice answer;
	struct slu_err err;

	if (!b->manifest.backup[0])
		return;
	b->s.query.cancel_fd = 0; /* the call runs after a signal too */
	query_path(&b->s.query, "/v1/admin/backup/end");
	(void)query_post_texts(&b->s.query, body, &answer, &err);
}

/* --- a piece -------------------------------------------------------------------- */

struct backup_piece {
	struct slice name;
	uint64_t bytes, size, at, n, crc32c;
	struct slice content;
};

static int
read_piece(struct slice answer, struct backup_piece *p, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_FIELD(text, struct backup_piece, name, .required = true),
		JSON_FIELD(u64, struct backup_piece, bytes, .required = true),
		JSON_FIELD(u64, struct backup_piece, size, .required = true),
		JSON_FIELD(u64, struct backup_piece, at, .required = true),
		JSON_FIELD(u64, struct backup_piece, n, .required = true),
		JSON_FIELD(u64, struct backup_piece, crc32c, .required = true),
	};
	const char *lf = memchr(answer.p, '\n', answer.n);
	const size_t head = lf ? (size_t)(lf - answer.p) : answer.n;

	*p = (struct backup_piece){ 0 };
	if (query_read((struct slice){ answer.p, head }, fields, COUNT(fields), p, NULL) || !lf || answer.n - head - 1 != p->n ||
	    p->name.n >= MANIFEST_FILE_NAME)
		return slu_fail(err, SLU_EUNKNOWN, "malformed answer from the server");
	p->content = (struct slice){ lf + 1, (size_t)p->n };
	if (crc32c(0, p->content.p, p->content.n) != p->crc32c)
		return slu_fail(err, SLU_EUNKNOWN, "%.*s: wrong checksum of the received bytes",
				(int)p->name.n, p->name.p);
	return 0;
}

static int
ask_piece(struct backup *b, uint32_t shard, uint64_t file, uint64_t at, struct backup_piece *p,
	  struct slu_err *err)
{
	struct cli_query *q = &b->s.query;
	struct slice answer;
	int rc;

	query_path(q, "/v1/admin/backup");
	http_param(&q->path, "backup", b->manifest.backup);
	http_param_u64(&q->path, "shard", shard);
	http_param_u64(&q->path, "file", file);
	http_param_u64(&q->path, "at", at);
	rc = query_get(q, &answer, err);
	return rc ? rc : read_piece(answer, p, err);
}

/* --- a file --------------------------------------------------------------------- */

static int
begin_file(struct backup *b, const struct backup_piece *p, struct manifest_file *f,
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
	struct backup_piece p;
	uint64_t at = 0;
	int rc;

	do {
		rc = ask_piece(b, shard, file, at, &p, err);
		if (!rc && at == 0)
			rc = begin_file(b, &p, &f, err);
		if (!rc && p.n == 0 && at < f.bytes)
			rc = slu_fail(err, SLU_EUNKNOWN, "%s: unexpected end", f.name);
		if (!rc)
			rc = archive_write(&b->archive, p.content.p, p.content.n, err);
		if (rc)
			return rc;
		f.crc32c = crc32c((uint32_t)f.crc32c, p.content.p, p.content.n);
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

/* MANIFEST-1: the manifest is written last. */
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

/* Copies the server. Creates nothing here before the server has agreed. */
static int
copy(struct backup *b, struct slu_err *err)
{
	const int signals = session_signals(); /* stays open until the process ends */
	int rc = archive_check_new(b->out, err);

	if (signals >= 0)
		b->s.query.cancel_fd = signals; /* Ctrl-C ends the current call, and the command cleans up */
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

/* --- output ---------------------------------------------------------------------- */

static void
tell_left_out(const struct backup *b)
{
	const struct manifest *m = &b->manifest;

	for (uint32_t i = 0; i < m->n_left_out; i++) {
		const struct engine_ops *const engine = engine_find(engine_rows, m->left_out[i].engine);

		session_note(&b->s, "shard %s is not in the backup: engine %s has no files%s",
			     m->left_out[i].name, m->left_out[i].engine,
			     engine && engine->shared ? "; back up its server" : "");
	}
}

/* Prints what was copied or verified: to stderr if the backup goes to stdout. */
static void
tell(const struct backup *b, const char *name)
{
	const struct manifest *m = &b->manifest;
	FILE *const out = b->archive.stream ? stderr : stdout;
	struct json_out *w;
	struct json_line l;

	tell_left_out(b);
	if (!b->s.json) {
		fprintf(out, "%s: %" PRIu32 " files, %" PRIu64 " bytes%s\n", name, m->n_files, m->bytes,
			b->verify ? ", sound" : "");
		return;
	}
	w = json_line_begin(&l);
	json_out_str(w, b->verify ? "verified" : "out", slice_of(name));
	json_out_u64(w, "files", m->n_files);
	json_out_u64(w, "bytes", m->bytes);
	json_out_u64(w, "shards", m->n_shards);
	manifest_write_left_out(m, w);
	json_line_end(&l, out);
}

static int
run(struct session *s, struct slu_err *err)
{
	struct backup *const b = (void *)s;
	int rc;

	if (!b->out == !b->verify)
		return session_usage(&b->s, "missing target; expected --out FOLDER, --out FILE.tar, --out - or --verify FILE");
	rc = b->verify ? verify(b, err) : copy(b, err);
	if (!rc)
		tell(b, b->verify ? b->verify : b->out);
	archive_close(&b->archive);
	manifest_release(&b->manifest);
	return rc;
}

const struct command cli_admin_backup = {
	.name = "admin backup",
	.summary = "copy a running server to a folder or a tar file",
	.usage = "--out FOLDER|FILE.tar|- [options]\n"
		 "       sluice admin backup --verify FOLDER|FILE.tar",
	.text = "Copies all files of a running server to a new folder or a tar file on this machine; -\n"
		"is a tar file on standard output. The server keeps serving. The backup has everything\n"
		"that the server confirmed before. Shards without files (Redis, memory) are named and\n"
		"left out. An incomplete backup is called FOLDER.partial.\n\n"
		"--verify reads a backup and compares every file with its size and checksum. It needs no\n"
		"server and creates no files.\n",
	.examples = "  sluice admin backup --out /backup/sluice-monday\n"
		    "  sluice admin backup --out sluice.tar --server 10.0.0.7:7171\n"
		    "  sluice admin backup --out - | zstd > sluice.tar.zst\n"
		    "  sluice admin backup --verify sluice.tar\n",
	.options = CLI_SERVER,
	CLI_ARGS({ "-o, --out PATH", ARG_TEXT, AT(backup, out), "new folder, new file that ends in .tar, or - (standard output)" },
		 { "--verify PATH", ARG_TEXT, AT(backup, verify), "only check an existing backup" }),
	.size = sizeof(struct backup),
	.run = run,
};
