#include "store/s3/sign.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <time.h>

#define FIELDS       "host;x-amz-content-sha256;x-amz-date"
#define FIELDS_TOKEN FIELDS ";x-amz-security-token"

static void
hex(const unsigned char sum[static SHA256_DIGEST_LENGTH], char out[static S3_SUM_TEXT])
{
	for (unsigned i = 0; i < SHA256_DIGEST_LENGTH; i++)
		snprintf(out + 2 * i, 3, "%02x", sum[i]);
}

static void
sha256(struct slice s, char out[static S3_SUM_TEXT])
{
	unsigned char sum[SHA256_DIGEST_LENGTH];

	SHA256((const unsigned char *)s.p, s.n, sum);
	hex(sum, out);
}

/* out may be key. */
static void
hmac(unsigned char out[static SHA256_DIGEST_LENGTH], const void *key, size_t n, const char *text)
{
	unsigned char sum[SHA256_DIGEST_LENGTH];

	HMAC(EVP_sha256(), key, (int)n, (const unsigned char *)text, strlen(text), sum, NULL);
	memcpy(out, sum, sizeof sum);
}

/* The request in the form that is signed. */
static void
canonical(const struct s3_signed *s, const struct s3_keys *keys, struct buf *out)
{
	buf_printf(out, "%s\n%s\n%s\nhost:%s\nx-amz-content-sha256:%s\nx-amz-date:%s\n", s->method,
		   s->path, s->query, s->host, s->sum, s->date);
	if (keys->token[0])
		buf_printf(out, "x-amz-security-token:%s\n", keys->token);
	buf_printf(out, "\n%s\n%s", keys->token[0] ? FIELDS_TOKEN : FIELDS, s->sum);
}

static void
write_date(slu_time wall, char out[static S3_DATE_TEXT])
{
	const time_t t = (time_t)(wall / SLU_SEC);
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(out, S3_DATE_TEXT, "%Y%m%dT%H%M%SZ", &tm);
}

bool
s3_sign(struct s3_signed *s, const struct s3_keys *keys)
{
	unsigned char key[SHA256_DIGEST_LENGTH];
	char secret[S3_KEY_MAX + 4], day[9], scope[128], text[400], sum[S3_SUM_TEXT];
	struct buf request;
	int n;

	write_date(s->wall, s->date);
	sha256(s->body, s->sum);
	buf_init(&request, 16 << 10);
	canonical(s, keys, &request);
	sha256(buf_slice(&request), sum);
	const bool whole = !request.failed;

	buf_release(&request);
	snprintf(day, sizeof day, "%.8s", s->date);
	n = snprintf(scope, sizeof scope, "%s/%s/%s/aws4_request", day, s->region, s->service);
	if (!whole || n < 0 || (size_t)n >= sizeof scope)
		return false;
	n = snprintf(text, sizeof text, "AWS4-HMAC-SHA256\n%s\n%s\n%s", s->date, scope, sum);
	if (n < 0 || (size_t)n >= sizeof text)
		return false;
	n = snprintf(secret, sizeof secret, "AWS4%s", keys->secret);
	hmac(key, secret, (size_t)n, day);
	hmac(key, key, sizeof key, s->region);
	hmac(key, key, sizeof key, s->service);
	hmac(key, key, sizeof key, "aws4_request");
	hmac(key, key, sizeof key, text);
	hex(key, sum);
	n = snprintf(s->authorization, sizeof s->authorization,
		     "AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s", keys->id,
		     scope, keys->token[0] ? FIELDS_TOKEN : FIELDS, sum);
	return n > 0 && (size_t)n < sizeof s->authorization;
}
