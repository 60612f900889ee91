#include "client/decode.h"

#include "base/need.h"

#include <sluice/client.h>

enum {
	FIELDS_MAX = 64
};

/* Any value, as it is written. */
static void
decode_raw(struct json *r, const struct json_field *f, void *place)
{
	const struct slice raw = json_skip(r);
	char *const out = place;

	if (raw.n >= f->size) {
		json_fail(r, SLU_ETOOBIG, NULL, "expected at most %zu bytes", f->size - 1);
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
	size_t size; /* 0 = any kind */
} kinds[] = {
	[SLU_JSON_TEXT] = { json_read_chars, 0 },
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
		return slu_fail(err, SLU_EINVAL, "field %s: wrong type of its member", f->name);
	return 0;
}

int
decode_object(struct slice text, const struct json_field *fields, size_t n, void *out, const char *what,
	      struct slu_err *err)
{
	struct slu_err why;
	struct json r;

	json_init(&r, text, JSON_DEPTH);
	json_fields(&r, fields, n, JSON_LENIENT, out);
	return json_end(&r, &why) ? slu_fail(err, SLU_EUNKNOWN, "malformed %s: %s", what, why.text) : 0;
}

int
slu_json_decode(const char *text, size_t size, const struct slu_json_field *fields, size_t n,
		void *out, struct slu_err *err)
{
	NEED3(text, fields, out, err);

	struct json_field rows[FIELDS_MAX];
	struct json r;
	int rc = 0;

	if (n > FIELDS_MAX)
		return slu_fail(err, SLU_EINVAL, "too many fields: %zu; expected at most %d", n, FIELDS_MAX);
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
