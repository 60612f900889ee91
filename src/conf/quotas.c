#include "conf/quotas.h"

#include "base/parse.h"

static int
expected(const char *item, struct slu_err *err)
{
	return slu_fail(err, SLU_EINVAL,
			"invalid quota \"%.80s\"; expected NAMESPACE:messages=N:bytes=SIZE", item);
}

/* True if the part is `word` and a value. */
static bool
has_word(struct slice part, const char *word, struct slice *value)
{
	const size_t n = strlen(word);

	if (part.n <= n || memcmp(part.p, word, n) != 0)
		return false;
	*value = (struct slice){ part.p + n, part.n - n };
	return true;
}

static int
read_part(const char *item, struct slice part, struct conf_quota *out, struct slu_err *err)
{
	struct slice value;

	if (has_word(part, "messages=", &value) && !out->has_messages) {
		out->has_messages = true;
		return parse_u64(value, 0, UINT32_MAX, &out->messages, err);
	}
	if (has_word(part, "bytes=", &value) && !out->has_bytes) {
		out->has_bytes = true;
		return parse_size(value, &out->bytes, err);
	}
	return expected(item, err);
}

int
conf_quota_parse(const char *item, struct conf_quota *out, struct slu_err *err)
{
	const char *end = strchr(item, ':');
	int rc;

	*out = (struct conf_quota){ .has_messages = false };
	if (!end)
		return expected(item, err);
	rc = name_fold((struct slice){ item, (size_t)(end - item) }, "namespace", out->name, err);
	while (!rc && *end) {
		const char *part = end + 1;

		end = part + strcspn(part, ":");
		rc = read_part(item, (struct slice){ part, (size_t)(end - part) }, out, err);
	}
	return rc;
}
