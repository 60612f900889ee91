#include "api/sqs/digest.h"

#include <openssl/evp.h>

#include <assert.h>
#include <stdlib.h>

static const char *
to_hex(const unsigned char *sum, unsigned n, char *out)
{
	static const char digits[] = "0123456789abcdef";

	for (unsigned i = 0; i < n; i++) {
		out[2 * i] = digits[sum[i] >> 4];
		out[2 * i + 1] = digits[sum[i] & 15];
	}
	out[2 * n] = '\0';
	return out;
}

/* libcrypto fails only without memory: then the sum is zeros, and no client accepts it. */
static const char *
digest(const EVP_MD *kind, struct slice text, char *out)
{
	unsigned char sum[EVP_MAX_MD_SIZE] = { 0 };
	unsigned n = 0;

	(void)EVP_Digest(text.n ? text.p : "", text.n, sum, &n, kind, NULL);
	return to_hex(sum, (unsigned)EVP_MD_get_size(kind), out);
}

const char *
sqs_md5(struct slice text, char out[static SQS_MD5])
{
	return digest(EVP_md5(), text, out);
}

const char *
sqs_sha256(struct slice text, char out[static SQS_SHA256])
{
	return digest(EVP_sha256(), text, out);
}

static void
add(EVP_MD_CTX *sum, struct slice text)
{
	(void)EVP_DigestUpdate(sum, text.n ? text.p : "", text.n);
}

const char *
sqs_sha256_pair(struct slice first, struct slice second, char out[static SQS_SHA256])
{
	EVP_MD_CTX *const sum = EVP_MD_CTX_new();
	unsigned char bytes[EVP_MAX_MD_SIZE] = { 0 };
	unsigned n = 0;

	if (!sum)
		return NULL;
	(void)EVP_DigestInit_ex(sum, EVP_sha256(), NULL);
	add(sum, first);
	add(sum, (struct slice){ "", 1 }); /* a NUL between: no other pair has the same bytes */
	add(sum, second);
	(void)EVP_DigestFinal_ex(sum, bytes, &n);
	EVP_MD_CTX_free(sum);
	return to_hex(bytes, 32, out);
}

static int
by_name(const void *x, const void *y)
{
	const struct sqs_attribute *const a = x, *const b = y;
	const size_t n = a->name.n < b->name.n ? a->name.n : b->name.n;
	const int order = n ? memcmp(a->name.p, b->name.p, n) : 0;

	return order ? order : (a->name.n > b->name.n) - (a->name.n < b->name.n);
}

static void
add_sized(EVP_MD_CTX *sum, struct slice text)
{
	const unsigned char size[4] = {
		(unsigned char)(text.n >> 24),
		(unsigned char)(text.n >> 16),
		(unsigned char)(text.n >> 8),
		(unsigned char)text.n,
	};

	(void)EVP_DigestUpdate(sum, size, sizeof size);
	add(sum, text);
}

const char *
sqs_md5_attributes(struct sqs_attribute *items, uint32_t n, char out[static SQS_MD5])
{
	EVP_MD_CTX *const sum = EVP_MD_CTX_new();
	unsigned char bytes[EVP_MAX_MD_SIZE] = { 0 };
	unsigned size = 0;

	if (!sum)
		return NULL;
	assert(n > 0);
	qsort(items, n, sizeof *items, by_name);
	(void)EVP_DigestInit_ex(sum, EVP_md5(), NULL);
	for (uint32_t i = 0; i < n; i++) {
		add_sized(sum, items[i].name);
		add_sized(sum, items[i].type);
		add(sum, (struct slice){ items[i].has_bytes ? "\2" : "\1", 1 });
		add_sized(sum, items[i].has_bytes ? items[i].bytes : items[i].text);
	}
	(void)EVP_DigestFinal_ex(sum, bytes, &size);
	EVP_MD_CTX_free(sum);
	return to_hex(bytes, 16, out);
}
