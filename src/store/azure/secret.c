#include "store/azure/secret.h"

#include "base/base64.h"
#include "base/rfc3339.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
	FILE_MAX = 8 << 10,
	TEXT_MAX = 16 << 10 /* bytes that are signed */
};

/* ---- Where a secret comes from ---- */

static int
set_key(struct azure_secret *out, struct slice text, struct slu_err *err)
{
	char bytes[2 * AZURE_KEY_MAX];
	size_t n = 0;

	if (text.n > 2 * AZURE_KEY_MAX || base64_decode(text, bytes, &n, NULL) || n == 0 || n > sizeof out->key)
		return slu_fail(err, SLU_EINVAL, "invalid account key; expected base64");
	memcpy(out->key, bytes, n);
	out->key_n = n;
	return 0;
}

/* The end of a SAS: se=2026-11-16T17%3A00%3A00Z, or only a day. */
static slu_time
read_end(struct slice sas)
{
	struct slice item;
	slu_time end = SLU_NEVER;

	while (sas.n > 0) {
		char text[RFC3339_TEXT + 10] = "";
		size_t n = 0;

		(void)slice_cut(&sas, '&', &item);
		if (item.n < 3 || memcmp(item.p, "se=", 3) != 0)
			continue;
		for (size_t i = 3; i < item.n && n < RFC3339_TEXT; i++) {
			const bool colon = item.n - i >= 3 && memcmp(item.p + i, "%3", 2) == 0;

			text[n++] = colon ? ':' : item.p[i];
			i += colon ? 2 : 0;
		}
		if (n == strlen("2026-11-16"))
			memcpy(text + n, "T00:00:00Z", sizeof "T00:00:00Z");
		(void)rfc3339_parse(slice_of(text), &end, NULL);
		return end;
	}
	return end;
}

static int
set_sas(struct azure_secret *out, struct slice text, struct slu_err *err)
{
	if (text.n > 0 && text.p[0] == '?')
		slice_skip(&text, 1);
	if (text.n == 0 || text.n >= sizeof out->sas || memmem(text.p, text.n, "sig=", 4) == NULL ||
	    memchr(text.p, ' ', text.n))
		return slu_fail(err, SLU_EINVAL, "invalid shared access signature; expected sv=...&sig=...");
	snprintf(out->sas, sizeof out->sas, "%.*s", (int)text.n, text.p);
	out->until = read_end(text);
	return 0;
}

static const struct part {
	const char *name;
	int (*set)(struct azure_secret *out, struct slice text, struct slu_err *err);
} parts[] = {
	{ "AccountKey=", set_key },
	{ "SharedAccessSignature=", set_sas },
};

/* A connection string; `from` is its source, for the text of an error. */
static int
read_parts(struct azure_secret *out, char *text, const char *from, struct slu_err *err)
{
	for (char *item = strtok_r(text, ";\r\n", &text); item; item = strtok_r(NULL, ";\r\n", &text)) {
		const struct slice trimmed = slice_trim(slice_of(item), " \t");

		for (size_t i = 0; i < COUNT(parts); i++) {
			const size_t n = strlen(parts[i].name);

			if (trimmed.n > n && memcmp(trimmed.p, parts[i].name, n) == 0)
				return parts[i].set(out, (struct slice){ trimmed.p + n, trimmed.n - n }, err);
		}
	}
	return slu_fail(err, SLU_EFORBIDDEN, "%.200s: no AccountKey= and no SharedAccessSignature=", from);
}

static int
read_file(struct azure_secret *out, const char *file, struct slu_err *err)
{
	char text[FILE_MAX];
	FILE *const f = fopen(file, "re");
	size_t n;

	if (!f)
		return slu_fail(err, SLU_EFORBIDDEN, "%.200s: %s", file, strerror(errno));
	n = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	text[n] = '\0';
	return read_parts(out, text, file, err);
}

static struct slice
environment(const char *name)
{
	const char *const value = getenv(name);

	return slice_of(value ? value : "");
}

int
azure_secret_read(struct azure_secret *out, const char *file, struct slu_err *err)
{
	const struct slice key = environment("AZURE_STORAGE_KEY"), sas = environment("AZURE_STORAGE_SAS_TOKEN"),
			   all = environment("AZURE_STORAGE_CONNECTION_STRING");
	char text[FILE_MAX];

	*out = (struct azure_secret){ .until = SLU_NEVER };
	if (file)
		return read_file(out, file, err);
	if (key.n > 0)
		return set_key(out, key, err);
	if (sas.n > 0)
		return set_sas(out, sas, err);
	if (all.n == 0 || all.n >= sizeof text)
		return slu_fail(err, SLU_EFORBIDDEN, "no key; set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or credentials=FILE");
	memcpy(text, all.p, all.n + 1);
	return read_parts(out, text, "AZURE_STORAGE_CONNECTION_STRING", err);
}

/* ---- Signing ---- */

/* "name=a%2Fb" is signed as "\nname:a/b". */
static void
add_param(struct buf *out, struct slice item)
{
	struct slice name;

	(void)slice_cut(&item, '=', &name);
	buf_printf(out, "\n%.*s:", (int)name.n, name.p);
	for (size_t i = 0; i < item.n; i++) {
		if (item.p[i] == '%' && i + 2 < item.n) {
			buf_putc(out, (char)(16 * ascii_hex(item.p[i + 1]) + ascii_hex(item.p[i + 2])));
			i += 2;
		} else {
			buf_putc(out, item.p[i]);
		}
	}
}

/* The request in the form that is signed: eleven fields of HTTP, those of Azure, the resource. */
static void
canonical(const struct azure_signed *s, struct buf *out)
{
	const bool puts = strcmp(s->method, "PUT") == 0;
	struct slice rest = slice_of(s->query), item;
	char length[24] = "";

	if (s->body > 0)
		snprintf(length, sizeof length, "%zu", s->body);
	buf_printf(out, "%s\n\n\n%s\n\n%s\n\n\n%s\n%s\n\n%s\n", s->method, length,
		   puts ? "application/octet-stream" : "", s->if_match ? s->if_match : "", s->if_absent ? "*" : "", s->range);
	buf_printf(out, "%sx-ms-date:%s\nx-ms-version:" AZURE_VERSION "\n", puts ? "x-ms-blob-type:BlockBlob\n" : "", s->date);
	buf_printf(out, "/%s%s", s->account, s->path);
	while (rest.n > 0) {
		(void)slice_cut(&rest, '&', &item);
		add_param(out, item);
	}
}

static void
write_date(slu_time wall, char out[static AZURE_DATE_TEXT])
{
	static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	const time_t t = (time_t)(wall / SLU_SEC);
	struct tm tm;

	gmtime_r(&t, &tm);
	snprintf(out, AZURE_DATE_TEXT, "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT", days + 3 * tm.tm_wday, (unsigned)tm.tm_mday % 100,
		 months + 3 * tm.tm_mon, (unsigned)(tm.tm_year + 1900) % 10000, (unsigned)tm.tm_hour % 100, (unsigned)tm.tm_min % 100, (unsigned)tm.tm_sec % 100);
}

bool
azure_sign(struct azure_signed *s, const struct azure_secret *secret)
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	char proof[2 * EVP_MAX_MD_SIZE] = "";
	struct buf text;
	unsigned n = 0;
	int written;

	write_date(s->wall, s->date);
	buf_init(&text, TEXT_MAX);
	canonical(s, &text);
	const bool whole = !text.failed && HMAC(EVP_sha256(), secret->key, (int)secret->key_n, (const unsigned char *)text.p, text.n, sum, &n);

	buf_release(&text);
	base64_encode((struct slice){ (const char *)sum, n }, proof);
	written = snprintf(s->authorization, sizeof s->authorization, "SharedKey %s:%s", s->account, proof);
	return whole && written > 0 && (size_t)written < sizeof s->authorization;
}
