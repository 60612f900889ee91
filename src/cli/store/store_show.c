#include "cli/store/store_private.h"

/* Adds the zeros before a number: "0/group/7". */
static void
complete_name(const char *word, char name[static STORE_NAME_MAX])
{
	const char *const slash = strrchr(word, '/');
	const char *const digits = slash ? slash + 1 : "";
	const size_t n = strlen(digits);

	if (n > 0 && n < LINE_DIGITS && strspn(digits, "0123456789") == n)
		(void)snprintf(name, STORE_NAME_MAX, "%.*s%0*d%s", (int)(digits - word), word,
			       (int)(LINE_DIGITS - n), 0, digits);
	else
		(void)snprintf(name, STORE_NAME_MAX, "%s", word);
}

int
store_show(struct store_command *c, const char *word, struct slu_err *err)
{
	char name[STORE_NAME_MAX];
	struct slu_err why = { 0 };
	struct json_out w;
	struct buf text;
	uint64_t number = 0;
	int rc;

	complete_name(word, name);
	rc = store_read(c, name, err);
	if (rc == SLU_ENOTFOUND && strcmp(name, word) != 0)
		rc = store_read(c, word, err); /* it has no zeros in the store either */
	if (rc)
		return rc;
	const struct store_kind *const kind = store_kind(name, &number);

	buf_init(&text, SIZE_MAX);
	json_out_open(&w, &text);
	json_out_str(&w, "name", slice_of(name));
	json_out_str(&w, "kind", slice_of(kind->name));
	json_out_u64(&w, "bytes", c->object.n);
	rc = kind->show(&w, buf_slice(&c->object), &why);
	if (rc) {
		slu_fail(err, why.code, "%s: %s", name, why.text);
	} else {
		json_out_finish(&w);
		rc = session_print(&c->s, buf_slice(&text), err);
	}
	buf_release(&text);
	return rc;
}
