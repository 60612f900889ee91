#include "auth/sigv4.h"

#include "base/rfc3339.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <stdio.h>

enum {
	FIELDS_MAX = 64,          /* signed fields */
	CANONICAL_MAX = 64 << 10, /* bytes of a canonical request */
	BLOCK = 64,               /* bytes of a block of SHA-256 */
	HEX = 2 * SIGV4_SUM
};

static const char scheme[] = "AWS4-HMAC-SHA256";

/* --- sums ------------------------------------------------------------------------- */

static bool
sha256(const struct slice *parts, unsigned n, unsigned char out[static SIGV4_SUM])
{
	EVP_MD_CTX *const sum = EVP_MD_CTX_new();
	bool ok = sum && EVP_DigestInit_ex(sum, EVP_sha256(), NULL);

	for (unsigned i = 0; i < n && ok; i++)
		ok = EVP_DigestUpdate(sum, parts[i].n ? parts[i].p : "", parts[i].n);
	ok = ok && EVP_DigestFinal_ex(sum, out, NULL);
	EVP_MD_CTX_free(sum);
	return ok;
}

/* RFC 2104; the key has at most a block. */
static bool
hmac(struct slice key, struct slice text, unsigned char out[static SIGV4_SUM])
{
	unsigned char inner[BLOCK] = { 0 }, outer[BLOCK] = { 0 }, sum[SIGV4_SUM];
	bool ok;

	memcpy(inner, key.p, key.n);
	memcpy(outer, key.p, key.n);
	for (unsigned i = 0; i < BLOCK; i++) {
		inner[i] ^= 0x36;
		outer[i] ^= 0x5c;
	}
	ok = sha256((struct slice[]){ { (char *)inner, BLOCK }, text }, 2, sum) &&
	     sha256((struct slice[]){ { (char *)outer, BLOCK }, { (char *)sum, SIGV4_SUM } }, 2, out);
	OPENSSL_cleanse(inner, sizeof inner);
	OPENSSL_cleanse(outer, sizeof outer);
	return ok;
}

static void
to_hex(const unsigned char sum[static SIGV4_SUM], char out[static HEX])
{
	static const char digits[] = "0123456789abcdef";

	for (unsigned i = 0; i < SIGV4_SUM; i++) {
		out[2 * i] = digits[sum[i] >> 4];
		out[2 * i + 1] = digits[sum[i] & 15];
	}
}

/* --- Authorization ---------------------------------------------------------------- */

bool
sigv4_is(struct slice a)
{
	const size_t n = sizeof scheme - 1;

	return a.n > n && memcmp(a.p, scheme, n) == 0 && (a.p[n] == ' ' || a.p[n] == ',');
}

static int
malformed(struct slu_err *err, const char *what)
{
	return slu_fail(err, SLU_EAUTH, "invalid Authorization: %s; expected AWS4-HMAC-SHA256 Credential=.../sqs/aws4_request, SignedHeaders=..., Signature=...",
			what);
}

static void
take_part(struct sigv4 *out, struct slice part)
{
	struct slice name;

	part = slice_trim(part, " ");
	if (!slice_cut(&part, '=', &name))
		return;
	if (slice_eq(name, SLICE("Credential")))
		out->scope = part;
	else if (slice_eq(name, SLICE("SignedHeaders")))
		out->fields = part;
	else if (slice_eq(name, SLICE("Signature")))
		out->signature = part;
}

int
sigv4_parse(struct sigv4 *out, struct slice authorization, struct slu_err *err)
{
	struct slice part, rest;

	*out = (struct sigv4){ 0 };
	if (!sigv4_is(authorization))
		return malformed(err, "another scheme");
	slice_skip(&authorization, sizeof scheme - 1);
	while (authorization.n > 0) {
		(void)slice_cut(&authorization, ',', &part); /* the last part has no comma */
		take_part(out, part);
	}
	if (!slice_cut(&out->scope, '/', &out->key) || out->key.n == 0 || out->key.n > SIGV4_KEY_MAX)
		return malformed(err, "no Credential");
	rest = out->scope;
	(void)slice_cut(&rest, '/', &out->day);    /* what is missing is empty */
	(void)slice_cut(&rest, '/', &out->region); /* the same */
	if (out->day.n != 8 || out->region.n > SIGV4_REGION_MAX)
		return malformed(err, "its scope");
	if (out->fields.n == 0 || out->signature.n != HEX)
		return malformed(err, "no SignedHeaders or no Signature");
	return 0;
}

/* --- the canonical request -------------------------------------------------------- */

static bool
is_unreserved(char c)
{
	const char l = ascii_lower(c);

	return (l >= 'a' && l <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~' || c == '/';
}

/* Services but S3 escape the path that was sent once more. */
static void
put_path(struct buf *b, struct slice path)
{
	for (size_t i = 0; i < path.n; i++)
		if (is_unreserved(path.p[i]))
			buf_putc(b, path.p[i]);
		else
			buf_printf(b, "%%%02X", (unsigned char)path.p[i]);
	if (path.n == 0)
		buf_putc(b, '/');
}

/* Spaces in a row are one. */
static void
put_value(struct buf *b, struct slice value)
{
	value = slice_trim(value, " \t");
	for (size_t i = 0; i < value.n; i++)
		if (value.p[i] != ' ' || value.p[i - 1] != ' ') /* after slice_trim the first byte is no space */
			buf_putc(b, value.p[i]);
}

static int
put_fields(struct buf *b, const struct sigv4 *s, const struct sigv4_request *q, struct slu_err *err)
{
	struct slice rest = s->fields, part;
	bool host = false, date = false;
	char name[128];

	for (unsigned n = 0; rest.n > 0; n++) {
		(void)slice_cut(&rest, ';', &part); /* the last name has no semicolon */
		if (part.n == 0 || part.n >= sizeof name || n == FIELDS_MAX)
			return malformed(err, "its SignedHeaders");
		memcpy(name, part.p, part.n);
		name[part.n] = '\0';
		host |= strcmp(name, "host") == 0;
		date |= strcmp(name, "x-amz-date") == 0;
		buf_puts(b, name);
		buf_putc(b, ':');
		put_value(b, q->field(q->arg, name));
		buf_putc(b, '\n');
	}
	return host && date ? 0 : malformed(err, "host and x-amz-date are not signed"); /* SIGV4-1 */
}

static int
sum_request(const struct sigv4 *s, const struct sigv4_request *q, char hex[static HEX], struct slu_err *err)
{
	unsigned char sum[SIGV4_SUM];
	struct buf b;
	int rc = 0;

	buf_init(&b, CANONICAL_MAX);
	buf_put(&b, q->method.p, q->method.n);
	buf_putc(&b, '\n');
	put_path(&b, q->path);
	buf_puts(&b, "\n\n"); /* no query */
	rc = put_fields(&b, s, q, err);
	buf_putc(&b, '\n');
	buf_put(&b, s->fields.p, s->fields.n);
	buf_putc(&b, '\n');
	if (!rc && sha256(&q->body, 1, sum)) {
		to_hex(sum, hex);
		buf_put(&b, hex, HEX);
	}
	if (!rc && (b.failed || !sha256(&(struct slice){ b.p, b.n }, 1, sum)))
		rc = slu_fail(err, SLU_EAUTH, "no memory to check the signature");
	if (!rc)
		to_hex(sum, hex);
	buf_release(&b);
	return rc;
}

/* --- the signature ---------------------------------------------------------------- */

/* 20261118T120000Z */
static int
check_time(const struct sigv4 *s, struct slice date, slu_time now, struct slu_err *err)
{
	char text[24];
	slu_time then;

	if (date.n != 16 || memcmp(date.p, s->day.p, 8) != 0 || date.p[8] != 'T')
		return slu_fail(err, SLU_EAUTH, "invalid X-Amz-Date; expected YYYYMMDDTHHMMSSZ, on the day of the Credential");
	(void)snprintf(text, sizeof text, "%.4s-%.2s-%.2sT%.2s:%.2s:%.2sZ", date.p, date.p + 4, date.p + 6, date.p + 9,
		       date.p + 11, date.p + 13); /* fits */
	if (rfc3339_parse(slice_of(text), &then, NULL))
		return slu_fail(err, SLU_EAUTH, "invalid X-Amz-Date; expected YYYYMMDDTHHMMSSZ");
	if (then < now - SIGV4_WINDOW)
		return slu_fail(err, SLU_EAUTH, "Signature expired: %s is more than 15 minutes ago", text);
	if (then > now + SIGV4_WINDOW)
		return slu_fail(err, SLU_EAUTH, "Signature not yet current: %s is more than 15 minutes ahead", text);
	return 0;
}

static bool
is_cached(const struct sigv4_cache *c, const struct sigv4 *s, uint64_t generation)
{
	return c->filled && c->generation == generation && slice_eq(s->key, (struct slice){ c->key, c->key_n }) &&
	       slice_eq(s->region, (struct slice){ c->region, c->region_n }) && memcmp(c->day, s->day.p, sizeof c->day) == 0;
}

/* SIGV4-3. The service is the one of the request: sigv4_check has compared it. */
static bool
derive(struct sigv4_cache *c, const struct sigv4 *s, struct slice service, struct slice secret, uint64_t generation)
{
	const struct slice parts[] = { s->day, s->region, service, SLICE("aws4_request") };
	unsigned char first[BLOCK];
	struct slice key = { (char *)first, 4 + secret.n };
	bool ok = key.n <= BLOCK;

	c->filled = false;
	if (!ok)
		return false;
	memcpy(first, "AWS4", 4);
	memcpy(first + 4, secret.p, secret.n);
	for (unsigned i = 0; i < COUNT(parts) && ok; i++) {
		ok = hmac(key, parts[i], c->signing);
		key = (struct slice){ (char *)c->signing, SIGV4_SUM };
	}
	OPENSSL_cleanse(first, sizeof first);
	memcpy(c->key, s->key.p, s->key.n);
	memcpy(c->region, s->region.p, s->region.n);
	memcpy(c->day, s->day.p, sizeof c->day);
	c->key_n = s->key.n;
	c->region_n = s->region.n;
	c->generation = generation;
	c->filled = ok;
	return ok;
}

static bool
is_for(const struct sigv4 *s, struct slice service)
{
	struct slice rest = s->scope;

	slice_skip(&rest, s->day.n + 1 + s->region.n);
	return rest.n == service.n + 14 && memcmp(rest.p + 1, service.p, service.n) == 0 &&
	       memcmp(rest.p + 1 + service.n, "/aws4_request", 13) == 0;
}

int
sigv4_check(const struct sigv4 *s, const struct sigv4_request *q, struct slice secret, uint64_t generation, slu_time now,
	    struct sigv4_cache *cache, struct slu_err *err)
{
	const struct slice date = q->field(q->arg, "x-amz-date");
	unsigned char sum[SIGV4_SUM];
	char request[HEX], want[HEX], text[256];
	int rc, n;

	if (!is_for(s, q->service))
		return malformed(err, "its scope");
	rc = check_time(s, date, now, err);
	if (!rc)
		rc = sum_request(s, q, request, err);
	if (rc)
		return rc;
	if (!is_cached(cache, s, generation) && !derive(cache, s, q->service, secret, generation))
		return slu_fail(err, SLU_EAUTH, "no memory to check the signature");
	n = snprintf(text, sizeof text, "%s\n%.16s\n%.*s\n%.*s", scheme, date.p, (int)s->scope.n, s->scope.p, (int)HEX, request);
	if (n >= (int)sizeof text ||
	    !hmac((struct slice){ (char *)cache->signing, SIGV4_SUM }, (struct slice){ text, (size_t)n }, sum))
		return malformed(err, "its scope");
	to_hex(sum, want);
	if (CRYPTO_memcmp(want, s->signature.p, HEX) != 0)
		return slu_fail(err, SLU_EAUTH, "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method.");
	return 0;
}
