#include "client/decode.h"

#include "base/need.h"

#include <sluice/client.h>

enum {
	FIELDS_MAX = 64
};

static void
too_long(struct json *r, const struct json_field *f)
{
	json_fail(r, SLU_ETOOBIG, NULL, "expected at most %zu bytes", f->size - 1);
}

void
decode_chars(struct json *r, const struct json_field *f, void *place)
{
	char *const out = place;
	struct json_str s;
	struct slice text;

	if (!json_string(r, &s))
		return;
	if (s.has_nul || s.n >= f->size) {
		too_long(r, f);
		return;
	}
	text = json_str_text(&s, out);
	memmove(out, text.p, text.n);
	out[text.n] = '\0';
}

void
decode_raw(struct json *r, const struct json_field *f, void *place)
{
	const struct slice raw = json_skip(r);
	char *const out = place;

	if (raw.n >= f->size) {
		too_long(r, f);
		return;
	}
	if (raw.n > 0)
		memcpy(out, raw.p, raw.n);
	out[raw.n] = '\0';
}

void
decode_seconds(struct json *r, const struct json_field *f, void *place)
{
	(void)f;
	*(slu_time *)place = json_i64(r, 0, INT64_MAX / SLU_SEC) * SLU_SEC;
}

static const struct {
	json_read *read;
	size_t size; /* 0: any */
} kinds[] = {
	[SLU_JSON_TEXT] = { decode_chars, 0 },
	[SLU_JSON_INT] = { json_read_i64, sizeof(int64_t) },
	[SLU_JSON_NUMBER] = { json_read_double, sizeof(double) },
	[SLU_JSON_BOOL] = { json_read_bool, sizeof(bool) },
	[SLU_JSON_RAW] = { decode_raw, 0 },
};

static int
check_field(const struct slu_json_field *f, struct slu_err *err)
{
	if ((size_t)f->kind >= sizeof kinds / sizeof kinds[0] || f->size == 0 ||
	    (kinds[f->kind].size && kinds[f->kind].size != f->size))
		return slu_fail(err, SLU_EINVAL, "field %s: its member is not of its kind", f->name);
	return 0;
}

int
slu_json_decode(const char *text, size_t size, const struct slu_json_field *fields, size_t n,
		void *out, struct slu_err *err)
{
	NEED(text, err);
	NEED(fields, err);
	NEED(out, err);

	struct json_field rows[FIELDS_MAX];
	struct json r;
	int rc = 0;

	if (n > FIELDS_MAX)
		return slu_fail(err, SLU_EINVAL, "%zu fields; at most %d", n, FIELDS_MAX);
	for (size_t i = 0; i < n && !rc; i++) {
		rc = check_field(&fields[i], err);
		rows[i] = (struct json_field){
			.name = slice_of(fields[i].name),
			.read = kinds[rc ? SLU_JSON_TEXT : fields[i].kind].read,
			.offset = fields[i].offset,
			.size = fields[i].size,
			.required = fields[i].required,
		};
	}
	if (rc)
		return rc;
	json_init(&r, (struct slice){ text, size }, JSON_DEPTH);
	json_fields(&r, rows, n, JSON_LENIENT, out);
	return json_end(&r, err) ? SLU_EINVAL : 0;
}
