#include "store/web/place.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	HOST_MAX = 300,  /* bytes of a host and its port */
	NAMES_MAX = 150, /* bytes of the names of all parameters of a store */
};

struct place_parts
place_split(char *text)
{
	struct place_parts p = { .owner = text, .query = strchr(text, '?') };

	if (p.query)
		*p.query++ = '\0';
	p.path = text + strcspn(text, "/");
	if (*p.path)
		*p.path++ = '\0';
	return p;
}

/* "a, b or c" */
static int
refuse_param(const struct place_param *rows, const char *name, struct slu_err *err)
{
	char names[NAMES_MAX] = "";
	size_t n = 0;

	for (const struct place_param *row = rows; row->name && n < sizeof names; row++) {
		const char *const comma = row[1].name ? ", " : " or ";

		n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", row == rows ? "" : comma, row->name);
	}
	return slu_fail(err, SLU_EINVAL, "invalid parameter: %.40s; expected %s", name, names);
}

static int
set_param(void *place, const struct place_param *rows, const char *name, const char *value,
	  struct slu_err *err)
{
	for (const struct place_param *row = rows; row->name; row++)
		if (strcmp(row->name, name) == 0) {
			*(const char **)(void *)((char *)place + row->offset) = value;
			return 0;
		}
	return refuse_param(rows, name, err);
}

/* Replaces %XX by its byte, in place. */
static bool
decode(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		const int high = *from == '%' ? ascii_hex(from[1]) : 0;
		const int low = *from == '%' && high >= 0 ? ascii_hex(from[2]) : 0;

		if (high < 0 || low < 0)
			return false;
		if (*from == '%') {
			*to++ = (char)(16 * high + low);
			from += 2;
		} else {
			*to++ = *from;
		}
	}
	*to = '\0';
	return true;
}

int
place_params(void *place, const struct place_param *rows, char *query, struct slu_err *err)
{
	int rc = 0;

	for (char *item = strtok_r(query, "&", &query); item && !rc; item = strtok_r(NULL, "&", &query)) {
		char *const value = strchr(item, '=');

		if (!value)
			return slu_fail(err, SLU_EINVAL, "invalid parameter: %.40s; expected NAME=VALUE", item);
		*value = '\0';
		if (!decode(value + 1))
			return slu_fail(err, SLU_EINVAL, "invalid value of %.40s; expected %%XX with two hex digits", item);
		rc = set_param(place, rows, item, value + 1, err);
	}
	return rc;
}

int
place_style(const char *style, bool *virtual, struct slu_err *err)
{
	if (!style)
		return 0;
	*virtual = strcmp(style, "virtual") == 0;
	if (!*virtual && strcmp(style, "path") != 0)
		return slu_fail(err, SLU_EINVAL, "invalid style: %.40s; expected path or virtual", style);
	return 0;
}

int
place_prefix(char *path, char out[static STORE_NAME_MAX + 1], struct slu_err *err)
{
	size_t n = strlen(path);

	while (n > 0 && path[n - 1] == '/')
		path[--n] = '\0';
	if (n > 0 && !store_name_is_valid(path))
		return slu_fail(err, SLU_EINVAL, "invalid prefix: %.60s; expected letters, digits, . _ - /", path);
	snprintf(out, STORE_NAME_MAX + 1, "%s%s", path, n > 0 ? "/" : "");
	return 0;
}

static bool
is_loopback(const char *host)
{
	return strncmp(host, "127.", 4) == 0 || strncmp(host, "[::1]", 5) == 0 ||
	       strcmp(host, "localhost") == 0 || strncmp(host, "localhost:", 10) == 0;
}

int
place_endpoint(struct place_host *h, const char *endpoint, const char *before, bool unsafe,
	       struct slu_err *err)
{
	const bool tls = strncmp(endpoint, "https://", 8) == 0;
	const char *const host = endpoint + (tls ? 8 : 7);

	if (!tls && strncmp(endpoint, "http://", 7) != 0)
		return slu_fail(err, SLU_EINVAL, "invalid endpoint: %.80s; expected https://HOST[:PORT]", endpoint);
	const int n = (int)strcspn(host, "/?#");

	if (n == 0 || n > HOST_MAX || strchr(host, '@') || strcspn(host + n, "/") != 0 || (host[n] == '/' && host[n + 1]))
		return slu_fail(err, SLU_EINVAL, "invalid endpoint: %.80s; expected https://HOST[:PORT]", endpoint);
	if (!tls && !unsafe && !is_loopback(host))
		return slu_fail(err, SLU_EINVAL, "invalid endpoint: %.80s; expected https:// for another machine (store.unsafe accepts it)", endpoint);
	snprintf(h->host, sizeof h->host, "%s%s%.*s", before ? before : "", before ? "." : "", n, host);
	snprintf(h->base, sizeof h->base, "http%s://%.*s", tls ? "s" : "", (int)(sizeof h->base - 10), h->host);
	return 0;
}

const char *
place_environment(const char *const *names, const char *otherwise)
{
	for (; *names; names++) {
		const char *const value = getenv(*names);

		if (value && *value)
			return value;
	}
	return otherwise;
}
