#include "cli/backup/manifest.h"

#include "base/json/json.h"
#include "base/json/json_table.h"
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

/* Grows an array of n elements by one. */
static void *
grown(void *old, uint32_t n, size_t size)
{
	const bool full = n == 0 || (n & (n - 1)) == 0; /* grows at powers of two */

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
		json_out_u64(w, "crc32c", f->crc32c);
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

	json_out_open(&w, out);
	json_out_u64(&w, "sluice_backup", MANIFEST_VERSION);
	json_out_str(&w, "version", slice_of(m->version));
	json_out_str(&w, "engine", slice_of(m->engine));
	json_out_str(&w, "backup", slice_of(m->backup));
	json_out_time(&w, "began_at", m->began_at);
	write_shards(m, &w);
	manifest_write_left_out(m, &w);
	write_files(m, &w);
	json_out_finish(&w);
	buf_putc(out, '\n');
}

/* --- read ----------------------------------------------------------------------- */

struct manifest_head {
	uint64_t sluice_backup;
	struct slice shards, left_out, files;
	struct manifest m;
};

static const struct json_field head_fields[] = {
	JSON_FIELD(u64, struct manifest_head, sluice_backup, .required = true),
	JSON_FIELD(raw, struct manifest_head, shards, .required = true),
	JSON_FIELD(raw, struct manifest_head, left_out),
	JSON_FIELD(raw, struct manifest_head, files, .required = true),
	JSON_ROW("version", json_read_chars, struct manifest_head, m.version),
	JSON_ROW("engine", json_read_chars, struct manifest_head, m.engine),
	JSON_ROW("backup", json_read_chars, struct manifest_head, m.backup),
	JSON_ROW("began_at", json_read_time, struct manifest_head, m.began_at),
};

/* Is the text a safe path: parts of letters, digits and . _ - that do not begin with a dot? */
static bool
is_safe(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";
	char before = '/';

	for (; *name; name++) {
		if (*name == '/' ? before == '/' : !strchr(letters, *name))
			return false;
		if (*name == '.' && before == '/')
			return false;
		before = *name;
	}
	return before != '/';
}

static int
read_file(struct manifest *m, struct json *r)
{
	static const struct json_field fields[] = {
		JSON_FIELD(chars, struct manifest_file, name, .required = true),
		JSON_FIELD(u64, struct manifest_file, bytes, .required = true),
		JSON_FIELD(u64, struct manifest_file, size, .required = true),
		JSON_FIELD(u64, struct manifest_file, crc32c, .required = true, .max = UINT32_MAX),
	};
	struct manifest_file f = { 0 };

	json_fields(r, fields, COUNT(fields), JSON_LENIENT, &f);
	if (!is_safe(f.name) || f.bytes > f.size || f.size > INT64_MAX)
		json_fail(r, SLU_EINVAL, NULL, "invalid file name; expected letters, digits, . _ - and /");
	return r->state == JSON_FAILED ? 0 : manifest_add_file(m, &f);
}

static void
check_names(struct json *r, const char *first, const char *second)
{
	if ((*first && !is_safe(first)) || (*second && !is_safe(second)))
		json_fail(r, SLU_EINVAL, NULL, "invalid shard name; expected letters, digits, . _ -");
}

static int
read_shard(struct manifest *m, struct json *r)
{
	enum {
		FOLDER_FIELD /* the first one */
	};
	static const struct json_field fields[] = {
		JSON_FIELDS(chars, struct manifest_shard, folder, name),
		JSON_FIELDS(u64, struct manifest_shard, shard, files),
		JSON_FIELD(u64, struct manifest_shard, last, .required = true),
		JSON_FIELD(time, struct manifest_shard, time, .required = true),
	};
	struct manifest_shard shard = { .shard = m->n_shards };

	shard.placed = json_fields(r, fields, COUNT(fields), JSON_LENIENT, &shard) >> FOLDER_FIELD & 1;
	if (m->n_shards == MANIFEST_SHARDS_MAX)
		json_fail(r, SLU_EINVAL, NULL, "too many shards; expected at most %d", MANIFEST_SHARDS_MAX);
	check_names(r, shard.name, shard.folder);
	return r->state == JSON_FAILED ? 0 : add_shard(m, &shard);
}

static int
read_left_out(struct manifest *m, struct json *r)
{
	static const struct json_field fields[] = {
		JSON_FIELD(chars, struct manifest_left_out, name, .required = true),
		JSON_FIELD(chars, struct manifest_left_out, engine),
	};
	struct manifest_left_out one = { 0 };

	json_fields(r, fields, COUNT(fields), JSON_LENIENT, &one);
	check_names(r, one.name, one.engine);
	return r->state == JSON_FAILED ? 0 : add_left_out(m, &one);
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
		if (!m->shards[i].placed) /* MANIFEST-2 */
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
	struct manifest_head h = { 0 };
	struct json r;
	int rc;

	*m = (struct manifest){ 0 };
	json_init(&r, document, JSON_DEPTH);
	json_fields(&r, head_fields, COUNT(head_fields), JSON_LENIENT, &h);
	if (json_end(&r, err))
		return SLU_EINVAL;
	if (h.sluice_backup != MANIFEST_VERSION)
		return slu_fail(err, SLU_EINVAL, "this backup needs another version of sluice: "
						 "%s made it",
				h.m.version);
	*m = h.m;
	rc = manifest_read_shards(m, h.shards, err);
	if (!rc)
		rc = manifest_read_left_out(m, h.left_out, err);
	if (!rc)
		rc = read_list(m, h.files, read_file, err);
	if (!rc && (m->n_shards == 0 || m->n_files == 0))
		rc = slu_fail(err, SLU_EINVAL, "it lists no files");
	return rc ? (rc == SLU_ENOMEM ? rc : SLU_EINVAL) : 0;
}
