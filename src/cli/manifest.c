#include "cli/manifest.h"

#include "base/json.h"
#include "base/json_table.h"
#include "base/mem.h"

#include <stdio.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

void
manifest_release(struct manifest *m)
{
	mem_free(m->shards);
	mem_free(m->left_out);
	mem_free(m->files);
	*m = (struct manifest){ 0 };
}

/* Room for one more of n. */
static void *
grown(void *old, uint32_t n, size_t size)
{
	const bool full = n == 0 || (n & (n - 1)) == 0; /* at powers of two */

	return full ? mem_realloc(old, (n ? 2 * (size_t)n : 1) * size) : old;
}

static int
add_shard(struct manifest *m, const struct manifest_shard *shard)
{
	struct manifest_shard *const p = grown(m->shards, m->n_shards, sizeof *p);

	if (!p)
		return SLU_ENOMEM;
	m->shards = p;
	p[m->n_shards++] = *shard;
	return 0;
}

static int
add_left_out(struct manifest *m, const struct manifest_left_out *one)
{
	struct manifest_left_out *const p = grown(m->left_out, m->n_left_out, sizeof *p);

	if (!p)
		return SLU_ENOMEM;
	m->left_out = p;
	p[m->n_left_out++] = *one;
	return 0;
}

int
manifest_add_file(struct manifest *m, const struct manifest_file *file)
{
	struct manifest_file *const p = grown(m->files, m->n_files, sizeof *p);

	if (!p)
		return SLU_ENOMEM;
	m->files = p;
	p[m->n_files++] = *file;
	m->bytes += file->bytes;
	return 0;
}

/* --- write ---------------------------------------------------------------------- */

static void
write_files(const struct manifest *m, struct json_out *w)
{
	json_out_array(w, "files");
	for (uint32_t i = 0; i < m->n_files; i++) {
		const struct manifest_file *f = &m->files[i];

		json_out_object(w, NULL);
		json_out_str(w, "name", slice_of(f->name));
		json_out_u64(w, "bytes", f->bytes);
		json_out_u64(w, "size", f->size);
		json_out_u64(w, "crc32c", f->sum);
		json_out_close(w);
	}
	json_out_close(w);
}

static void
write_shards(const struct manifest *m, struct json_out *w)
{
	json_out_array(w, "shards");
	for (uint32_t i = 0; i < m->n_shards; i++) {
		const struct manifest_shard *s = &m->shards[i];

		json_out_object(w, NULL);
		json_out_str(w, "name", slice_of(s->name));
		json_out_str(w, "folder", slice_of(s->folder));
		json_out_u64(w, "last", s->last);
		json_out_time(w, "time", s->time);
		json_out_close(w);
	}
	json_out_close(w);
}

void
manifest_write_left_out(const struct manifest *m, struct json_out *w)
{
	json_out_array(w, "left_out");
	for (uint32_t i = 0; i < m->n_left_out; i++) {
		json_out_object(w, NULL);
		json_out_str(w, "name", slice_of(m->left_out[i].name));
		json_out_str(w, "engine", slice_of(m->left_out[i].engine));
		json_out_close(w);
	}
	json_out_close(w);
}

void
manifest_write(const struct manifest *m, struct buf *out)
{
	struct json_out w;

	json_out_init(&w, out);
	json_out_object(&w, NULL);
	json_out_u64(&w, "sluice_backup", MANIFEST_VERSION);
	json_out_str(&w, "version", slice_of(m->version));
	json_out_str(&w, "engine", slice_of(m->engine));
	json_out_str(&w, "backup", slice_of(m->backup));
	json_out_time(&w, "began_at", m->began_at);
	write_shards(m, &w);
	manifest_write_left_out(m, &w);
	write_files(m, &w);
	json_out_close(&w);
	json_out_end(&w);
	buf_putc(out, '\n');
}

/* --- read ----------------------------------------------------------------------- */

struct head {
	uint64_t sluice_backup;
	struct slice version, engine, backup;
	struct slice shards, left_out, files;
	slu_time began_at;
};

static const struct json_field head_fields[] = {
	JSON_FIELD(u64, struct head, sluice_backup, .required = true),
	JSON_FIELD(text, struct head, version),
	JSON_FIELD(text, struct head, engine),
	JSON_FIELD(text, struct head, backup),
	JSON_FIELD(time, struct head, began_at),
	JSON_FIELD(raw, struct head, shards, .required = true),
	JSON_FIELD(raw, struct head, left_out),
	JSON_FIELD(raw, struct head, files, .required = true),
};

/* Segments of letters, digits and . _ -, none of which begins with a dot. */
static bool
is_safe(struct slice name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";
	char before = '/';

	if (name.n == 0 || name.n >= MANIFEST_FILE_NAME)
		return false;
	for (size_t i = 0; i < name.n; i++) {
		const char c = name.p[i];

		if (c == '/' ? before == '/' : !c || !strchr(letters, c))
			return false;
		if (c == '.' && before == '/')
			return false;
		before = c;
	}
	return before != '/';
}

struct file_row {
	struct slice name;
	uint64_t bytes, size, crc32c;
};

static int
read_file(struct manifest *m, struct json *r)
{
	static const struct json_field fields[] = {
		JSON_FIELD(text, struct file_row, name, .required = true),
		JSON_FIELD(u64, struct file_row, bytes, .required = true),
		JSON_FIELD(u64, struct file_row, size, .required = true),
		JSON_FIELD(u64, struct file_row, crc32c, .required = true, .max = UINT32_MAX),
	};
	struct file_row row = { 0 };
	struct manifest_file f = { 0 };

	json_fields(r, fields, COUNT(fields), JSON_LENIENT, &row);
	if (!is_safe(row.name) || row.bytes > row.size || row.size > INT64_MAX)
		json_fail(r, SLU_EINVAL, NULL, "expected a file with a plain name");
	if (r->state == JSON_FAILED)
		return 0;
	memcpy(f.name, row.name.p, row.name.n);
	f.bytes = row.bytes;
	f.size = row.size;
	f.sum = (uint32_t)row.crc32c;
	return manifest_add_file(m, &f);
}

struct shard_row {
	uint64_t shard, files, last;
	struct slice name, folder;
	slu_time time;
};

static bool
fits(struct slice text, size_t room)
{
	return text.n < room && (text.n == 0 || is_safe(text));
}

static int
read_shard(struct manifest *m, struct json *r)
{
	enum {
		FOLDER_FIELD /* the first */
	};
	static const struct json_field fields[] = {
		JSON_FIELD(text, struct shard_row, folder),
		JSON_FIELD(u64, struct shard_row, shard),
		JSON_FIELD(u64, struct shard_row, files),
		JSON_FIELD(text, struct shard_row, name),
		JSON_FIELD(u64, struct shard_row, last, .required = true),
		JSON_FIELD(time, struct shard_row, time, .required = true),
	};
	struct shard_row row = { .shard = m->n_shards };
	struct manifest_shard shard = { 0 };

	shard.placed = json_fields(r, fields, COUNT(fields), JSON_LENIENT, &row) >> FOLDER_FIELD & 1;
	if (m->n_shards == MANIFEST_SHARDS_MAX)
		json_fail(r, SLU_EINVAL, NULL, "expected at most %d shards", MANIFEST_SHARDS_MAX);
	if (!fits(row.name, sizeof shard.name) || !fits(row.folder, sizeof shard.folder))
		json_fail(r, SLU_EINVAL, NULL, "expected a shard with a plain name");
	if (r->state == JSON_FAILED)
		return 0;
	shard.shard = row.shard;
	shard.files = row.files;
	shard.last = row.last;
	shard.time = row.time;
	memcpy(shard.name, row.name.n ? row.name.p : "", row.name.n);
	memcpy(shard.folder, row.folder.n ? row.folder.p : "", row.folder.n);
	return add_shard(m, &shard);
}

struct left_out_row {
	struct slice name, engine;
};

static int
read_left_out(struct manifest *m, struct json *r)
{
	static const struct json_field fields[] = {
		JSON_FIELD(text, struct left_out_row, name, .required = true),
		JSON_FIELD(text, struct left_out_row, engine),
	};
	struct left_out_row row = { 0 };
	struct manifest_left_out one = { 0 };

	json_fields(r, fields, COUNT(fields), JSON_LENIENT, &row);
	if (!fits(row.name, sizeof one.name) || !fits(row.engine, sizeof one.engine))
		json_fail(r, SLU_EINVAL, NULL, "expected a shard with a plain name");
	if (r->state == JSON_FAILED)
		return 0;
	memcpy(one.name, row.name.p, row.name.n);
	memcpy(one.engine, row.engine.n ? row.engine.p : "", row.engine.n);
	return add_left_out(m, &one);
}

static int
read_list(struct manifest *m, struct slice list,
	  int (*read_one)(struct manifest *m, struct json *r), struct slu_err *err)
{
	struct json r;
	int rc = 0;

	json_init(&r, list, JSON_DEPTH);
	json_array(&r);
	while (!rc && json_element(&r))
		rc = read_one(m, &r);
	if (rc)
		return slu_fail(err, SLU_ENOMEM, "no memory for the list of files");
	return json_end(&r, err);
}

int
manifest_read_shards(struct manifest *m, struct slice list, struct slu_err *err)
{
	const int rc = read_list(m, list, read_shard, err);

	for (uint32_t i = 0; i < m->n_shards && m->n_shards > 1; i++)
		if (!m->shards[i].placed) /* M2 */
			(void)snprintf(m->shards[i].folder, sizeof m->shards[i].folder, "%u", i);
	return rc;
}

int
manifest_read_left_out(struct manifest *m, struct slice list, struct slu_err *err)
{
	return list.n ? read_list(m, list, read_left_out, err) : 0;
}

int
manifest_read(struct manifest *m, struct slice document, struct slu_err *err)
{
	struct head h = { 0 };
	struct json r;
	int rc;

	*m = (struct manifest){ 0 };
	json_init(&r, document, JSON_DEPTH);
	json_fields(&r, head_fields, COUNT(head_fields), JSON_LENIENT, &h);
	if (json_end(&r, err))
		return SLU_EINVAL;
	if (h.sluice_backup != MANIFEST_VERSION)
		return slu_fail(err, SLU_EINVAL, "backups of this kind need another version of sluice: "
						 "%.*s made it",
				(int)h.version.n, h.version.p);
	(void)snprintf(m->version, sizeof m->version, "%.*s", (int)h.version.n, h.version.p);
	(void)snprintf(m->engine, sizeof m->engine, "%.*s", (int)h.engine.n, h.engine.p);
	(void)snprintf(m->backup, sizeof m->backup, "%.*s", (int)h.backup.n, h.backup.p);
	m->began_at = h.began_at;
	rc = manifest_read_shards(m, h.shards, err);
	if (!rc)
		rc = manifest_read_left_out(m, h.left_out, err);
	if (!rc)
		rc = read_list(m, h.files, read_file, err);
	if (!rc && (m->n_shards == 0 || m->n_files == 0))
		rc = slu_fail(err, SLU_EINVAL, "it lists no files");
	return rc ? (rc == SLU_ENOMEM ? rc : SLU_EINVAL) : 0;
}
