#include "cli/lib/exports.h"

#include "base/parse.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	EXPORTS_MAX = 64 << 10,
	NAME_MAX_TEXT = 64
};

void
exports_begin(struct exports *e, const struct session *s)
{
	*e = (struct exports){ .json = s->json };
	buf_init(&e->text, EXPORTS_MAX);
	if (e->json) {
		json_out_open(&e->out, &e->text);
	}
}

/* For a POSIX shell: between single quotes only the single quote has a meaning. */
static void
put_quoted(struct buf *out, const char *value)
{
	buf_putc(out, '\'');
	for (; *value; value++)
		if (*value == '\'')
			buf_puts(out, "'\\''");
		else
			buf_putc(out, *value);
	buf_putc(out, '\'');
}

void
exports_put(struct exports *e, const char *name, const char *value)
{
	if (!*value)
		return;
	if (e->json) {
		json_out_str(&e->out, name, slice_of(value));
		return;
	}
	buf_printf(&e->text, "export %s=", name);
	put_quoted(&e->text, value);
	buf_putc(&e->text, '\n');
}

void
exports_number(struct exports *e, const char *name, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof text, "%" PRIu64, value);
	exports_put(e, name, text);
}

int
exports_end(struct exports *e, struct slu_err *err)
{
	int rc = 0;

	if (e->json) {
		json_out_finish(&e->out);
		buf_putc(&e->text, '\n');
	}
	if (e->text.failed)
		rc = slu_fail(err, SLU_ENOMEM, "no memory");
	else if (fputs(buf_str(&e->text), stdout) == EOF || fflush(stdout) == EOF)
		rc = slu_fail(err, SLU_EFAILED, "stdout: %m");
	buf_release(&e->text);
	return rc;
}

/* --- leases --------------------------------------------------------------------- */

/* The text members of a lease, and the endings of their variables. */
static const struct {
	const char *suffix;
	size_t offset, size;
} texts[] = {
	{ "NAMESPACE", offsetof(struct slu_lease, space), sizeof(((struct slu_lease *)0)->space) },
	{ "KEY", offsetof(struct slu_lease, key), sizeof(((struct slu_lease *)0)->key) },
	{ "OWNER", offsetof(struct slu_lease, owner), sizeof(((struct slu_lease *)0)->owner) },
	{ "LEASE", offsetof(struct slu_lease, id), sizeof(((struct slu_lease *)0)->id) },
	{ "TXN", offsetof(struct slu_lease, txn), sizeof(((struct slu_lease *)0)->txn) },
	{ "ETAG", offsetof(struct slu_lease, etag), sizeof(((struct slu_lease *)0)->etag) },
};

static const char *
name_of(char out[static NAME_MAX_TEXT], const char *prefix, const char *suffix)
{
	(void)snprintf(out, NAME_MAX_TEXT, "%s_%s", prefix, suffix); /* our own names: they fit */
	return out;
}

void
exports_lease(struct exports *e, const char *prefix, const struct slu_lease *l)
{
	char name[NAME_MAX_TEXT];

	for (size_t i = 0; i < COUNT(texts); i++)
		exports_put(e, name_of(name, prefix, texts[i].suffix),
			    (const char *)l + texts[i].offset);
	exports_number(e, name_of(name, prefix, "FENCING_TOKEN"), l->token);
	exports_number(e, name_of(name, prefix, "VERSION"), (uint64_t)l->version);
	exports_number(e, name_of(name, prefix, "EXPIRES_UNIX"), (uint64_t)(l->until / SLU_SEC));
}

const char *
exports_get(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static int
missing(const char *name, struct slu_err *err)
{
	return slu_fail(err, SLU_EINVAL,
			"%s is not set: eval \"$(sluice lock acquire KEY)\" sets it", name);
}

int
exports_read_lease(struct slu_lease *l, struct slu_err *err)
{
	char name[NAME_MAX_TEXT];
	const char *token = exports_get("SLUICE_LOCK_FENCING_TOKEN");

	*l = (struct slu_lease){ 0 };
	for (size_t i = 0; i < COUNT(texts); i++) {
		const char *value = exports_get(name_of(name, "SLUICE_LOCK", texts[i].suffix));
		const bool optional = strcmp(texts[i].suffix, "ETAG") == 0 ||
				      strcmp(texts[i].suffix, "OWNER") == 0;

		if (!value && !optional)
			return missing(name, err);
		if (value && strlen(value) >= texts[i].size)
			return slu_fail(err, SLU_EINVAL, "invalid %s: %.40s...; the value is too long", name, value);
		if (value)
			memcpy((char *)l + texts[i].offset, value, strlen(value) + 1);
	}
	if (!token)
		return missing("SLUICE_LOCK_FENCING_TOKEN", err);
	return parse_u64(slice_of(token), 1, UINT64_MAX, &l->token, err);
}

int
exports_wait(const char *text, slu_time *out, struct slu_err *err)
{
	if (strcmp(text, "forever") != 0)
		return parse_duration(slice_of(text), out, err);
	*out = SLU_NEVER;
	return 0;
}
