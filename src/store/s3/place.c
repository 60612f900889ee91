#include "store/s3/place.h"

#include <stdio.h>

static const struct place_param params[] = {
	{ "endpoint", offsetof(struct s3_place, endpoint) },
	{ "region", offsetof(struct s3_place, region) },
	{ "style", offsetof(struct s3_place, style) },
	{ "ca", offsetof(struct s3_place, ca) },
	{ "proxy", offsetof(struct s3_place, proxy) },
	{ "credentials", offsetof(struct s3_place, credentials) },
	{ "profile", offsetof(struct s3_place, profile) },
	{ NULL, 0 },
};

static bool
is_bucket(const char *name)
{
	const size_t n = strlen(name);

	return n >= 3 && n <= 63 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") == n;
}

/* Completes what the URL leaves out. */
static int
set_host(struct s3_place *p, bool unsafe, struct slu_err *err)
{
	static const char *const endpoints[] = { "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", NULL };
	static const char *const regions[] = { "AWS_REGION", "AWS_DEFAULT_REGION", NULL };
	char *const amazon = p->text + STORE_URL_MAX;
	bool virtual;

	if (!p->region)
		p->region = place_environment(regions, "us-east-1");
	if (!p->endpoint)
		p->endpoint = place_environment(endpoints, NULL);
	virtual = !p->endpoint;
	if (!p->endpoint) {
		snprintf(amazon, STORE_URL_MAX, "https://s3.%s.amazonaws.com", p->region);
		p->endpoint = amazon;
	}
	int rc = place_style(p->style, &virtual, err);

	if (!rc)
		rc = place_endpoint(&p->at, p->endpoint, virtual ? p->bucket : NULL, unsafe, err);
	if (!virtual)
		snprintf(p->root, sizeof p->root, "/%s", p->bucket);
	return rc;
}

int
s3_place_parse(struct s3_place *p, const char *rest, bool unsafe, struct slu_err *err)
{
	struct place_parts parts;
	int rc;

	*p = (struct s3_place){ 0 };
	snprintf(p->text, STORE_URL_MAX, "%s", rest);
	parts = place_split(p->text);
	p->bucket = parts.owner;
	if (strchr(p->bucket, '@'))
		return slu_fail(err, SLU_EINVAL, "keys in the URL are refused; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or credentials=FILE");
	if (!is_bucket(p->bucket))
		return slu_fail(err, SLU_EINVAL, "invalid bucket: %.64s; expected 3 to 63 of a-z 0-9 . -", p->bucket);
	rc = parts.query ? place_params(p, params, parts.query, err) : 0;
	if (!rc)
		rc = set_host(p, unsafe, err);
	if (!rc)
		rc = place_prefix(parts.path, p->prefix, err);
	return rc;
}
