/*
 * backup.c - `sluice admin backup`: the files of a running server, copied to where this
 * command runs.
 */
#include "cli/archive.h"
#include "cli/manifest.h"
#include "cli/progress.h"
#include "cli/session.h"

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/json.h"
#include "base/json_out.h"
#include "base/json_table.h"

#include <inttypes.h>

struct backup {
	struct session s;
	const char *out;
	struct archive archive;
	struct manifest manifest;
	struct progress progress;
	uint64_t total; /* bytes that the server has announced */
	uint64_t done;
};

/* --- begin and end -------------------------------------------------------------- */

struct begun {
	struct slice backup, version, engine, shards;
	uint64_t bytes;
};

static int
take_shards(struct manifest *m, struct slice list, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_FIELD(u64, struct manifest_shard, files, .required = true),
		JSON_FIELD(u64, struct manifest_shard, last, .required = true),
		JSON_FIELD(time, struct manifest_shard, time, .required = true),
	};
	struct json r;

	json_init(&r, list, JSON_DEPTH);
	json_array(&r);
	while (json_element(&r)) {
		struct manifest_shard shard = { 0 };

		json_fields(&r, fields, COUNT(fields), JSON_LENIENT, &shard);
		if (manifest_add_shard(m, &shard))
			return slu_fail(err, SLU_ENOMEM, "no memory for the list of shards");
	}
	return json_end(&r, err) ? SLU_EUNKNOWN : 0;
}

static int
begin(struct backup *b, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_FIELD(text, struct begun, backup, .required = true),
		JSON_FIELD(text, struct begun, version),
		JSON_FIELD(text, struct begun, engine),
		JSON_FIELD(raw, struct begun, shards, .required = true),
		JSON_FIELD(u64, struct begun, bytes),
	};
	struct manifest *m = &b->manifest;
	struct begun begun = { 0 };
	struct slice answer;
	struct json r;
	int rc;

	m->began_at = clock_wall(&clock_system);
	query_path(&b->s.query, "/v1/admin/backup");
	rc = query_post(&b->s.query, SLICE("{}"), &answer, err);
	if (rc)
		return rc;
	json_init(&r, answer, JSON_DEPTH);
	json_fields(&r, fields, COUNT(fields), JSON_LENIENT, &begun);
	if (json_end(&r, err))
		return SLU_EUNKNOWN;
	(void)snprintf(m->backup, sizeof m->backup, "%.*s", (int)begun.backup.n, begun.backup.p);
	(void)snprintf(m->version, sizeof m->version, "%.*s", (int)begun.version.n,
		       begun.version.p);
	(void)snprintf(m->engine, sizeof m->engine, "%.*s", (int)begun.engine.n, begun.engine.p);
	b->total = begun.bytes;
	return take_shards(m, begun.shards, err);
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
			rc = copy_file(b, i, j, err);
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

static int
run(struct backup *b, struct slu_err *err)
{
	int rc;

	rc = archive_create(&b->archive, b->out, err);
	if (rc)
		return rc;
	rc = begin(b, err);
	if (!rc)
		rc = copy_all(b, err);
	end(b);
	if (!rc)
		rc = write_manifest(b, err);
	if (!rc)
		rc = archive_finish(&b->archive, err);
	if (rc)
		session_note(&b->s, "%s is not whole", b->archive.work);
	return rc;
}

static void
tell(const struct backup *b)
{
	const struct manifest *m = &b->manifest;
	struct json_out w;
	struct buf line;

	if (!b->s.json) {
		printf("%s: %" PRIu32 " files, %" PRIu64 " bytes\n", b->out, m->n_files, m->bytes);
		return;
	}
	buf_init(&line, 64 * 1024);
	json_out_init(&w, &line);
	json_out_object(&w, NULL);
	json_out_str(&w, "out", slice_of(b->out));
	json_out_u64(&w, "files", m->n_files);
	json_out_u64(&w, "bytes", m->bytes);
	json_out_u64(&w, "shards", m->n_shards);
	json_out_close(&w);
	puts(buf_str(&line));
	buf_release(&line);
}

int
cli_admin_backup(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "admin backup --out FOLDER|FILE.tar [options]",
		.text = "Copy everything that a running server keeps to a new folder, or to a tar file,\n"
			"here. The server goes on serving. What it had answered before is in the backup.\n"
			"Until it is whole, it is called FOLDER.partial.\n",
		.examples = "  sluice admin backup --out /backup/sluice-monday\n"
			    "  sluice admin backup --out sluice.tar --server 10.0.0.7:7171\n",
	};
	struct backup b = { .s = SESSION("admin backup") };
	const struct arg args[] = {
		{ "--out PATH", ARG_TEXT, &b.out, "the new folder, or a name that ends in .tar" },
		SESSION_SERVER_ROWS(&b.s),
	};
	struct slu_err err;

	if (!session_begin(&b.s, &help, &argc, &argv, args, COUNT(args)))
		return b.s.exit;
	if (!b.out)
		session_usage(&b.s, "where to? Say --out FOLDER, or --out FILE.tar");
	else if (run(&b, &err))
		session_fail(&b.s, &err);
	else
		tell(&b);
	archive_close(&b.archive);
	manifest_release(&b.manifest);
	return session_end(&b.s);
}
