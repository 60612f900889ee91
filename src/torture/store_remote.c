/*
 * store_remote.c - a store behind a network that the nodes share: a bucket, a container or a database on
 * a server that runs already, and a gate of a proxy for each node.
 */
#include "torture/store.h"

#include "base/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHARDS            4
#define SHARDS_TEXT(n)    SHARDS_LITERAL(n)
#define SHARDS_LITERAL(n) #n

enum {
	URL_MAX = 1024,
	ADDRESS_MAX = 64
};

/* Short times, but longer than a busy server needs for a put. */
static const char *const settings[][2] = {
	{ "SLUICE_STORE_LEASE", "3s" },
	{ "SLUICE_STORE_SETTLE", "1s" },
	{ "SLUICE_STORE_PUTS", "1000" }, /* many groups, many chances */
	{ "SLUICE_SHARDS", SHARDS_TEXT(SHARDS) },
};

/* The URL of a store: what is before the address of its server, the address, what is behind. */
struct url_parts {
	char before[URL_MAX], address[ADDRESS_MAX], behind[URL_MAX];
};

/* Copies an address, with %XX replaced; the scheme before it is left out. Returns false if it is not
 * HOST:PORT of IPv4. */
static bool
read_address(struct slice text, char out[static ADDRESS_MAX])
{
	char plain[ADDRESS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < text.n && n + 1 < sizeof plain; i++) {
		const bool coded = text.p[i] == '%' && i + 2 < text.n;

		plain[n++] = coded ? (char)(16 * ascii_hex(text.p[i + 1]) + ascii_hex(text.p[i + 2])) : text.p[i];
		i += coded ? 2 : 0;
	}
	plain[n] = '\0';
	(void)snprintf(out, ADDRESS_MAX, "%s", strncmp(plain, "http://", 7) == 0 ? plain + 7 : plain);
	return strchr(out, ':') && strspn(out, "0123456789.:") == strlen(out);
}

/* s3://BUCKET?endpoint=http://HOST:PORT, azure://ACCOUNT/CONTAINER?endpoint=... */
static bool
split_endpoint(const char *rest, int id, struct url_parts *p)
{
	const char *const name = strstr(rest, "endpoint=");
	const char *const value = name ? name + strlen("endpoint=") : NULL;
	const size_t n = value ? strcspn(value, "&") : 0;
	const int place = (int)strcspn(rest, "?");

	if (!value || !read_address((struct slice){ value, n }, p->address))
		return false;
	(void)snprintf(p->before, URL_MAX, "%.*s/torture-%d%.*shttp://", place, rest, id, (int)(value - rest) - place, rest + place);
	(void)snprintf(p->behind, URL_MAX, "%s", value + n);
	return true;
}

/* postgres://USER@HOST:PORT/DATABASE */
static bool
split_host(const char *rest, int id, struct url_parts *p)
{
	const char *const at = strchr(rest, '@');
	const char *const host = at ? at + 1 : rest;
	const size_t n = strcspn(host, "/?");

	if (!read_address((struct slice){ host, n }, p->address))
		return false;
	(void)snprintf(p->before, URL_MAX, "%.*s", (int)(host - rest), rest);
	(void)snprintf(p->behind, URL_MAX, "%s%cschema=torture_%d", host + n, strchr(host, '?') ? '&' : '?', id);
	return true;
}

static bool
split(const struct stores *s, struct url_parts *p)
{
	return strcmp(s->conf.kind->name, "postgres") == 0 ? split_host(s->conf.dir, s->id, p) : split_endpoint(s->conf.dir, s->id, p);
}

static int
open_remote(struct stores *s, struct torture_store *one, struct slu_err *err)
{
	struct url_parts p;

	s->id = getpid();
	if (!split(s, &p))
		return slu_fail(err, SLU_EINVAL, "invalid --store; expected the address of its server, as in postgres://USER@127.0.0.1:5432/DATABASE or s3://BUCKET?endpoint=http://127.0.0.1:7480");
	return proxy_open(&one->proxy, p.address, s->conf.nodes, err);
}

static void
close_remote(struct torture_store *one)
{
	proxy_close(one->proxy);
}

static int
tell_remote(const struct stores *s, unsigned node)
{
	char url[2 * URL_MAX + ADDRESS_MAX];
	struct url_parts p;
	int rc;

	if (!split(s, &p))
		return -1;
	(void)snprintf(url, sizeof url, "%s://%s127.0.0.1:%u%s", s->conf.kind->name, p.before, proxy_port(s->all[0].proxy, node), p.behind);
	rc = setenv("SLUICE_STORE", url, 1);
	for (unsigned i = 0; !rc && i < sizeof settings / sizeof settings[0]; i++)
		rc = setenv(settings[i][0], settings[i][1], 1);
	return rc;
}

static void
cut_remote(const struct torture_store *one, unsigned node, enum proxy_cut how)
{
	proxy_cut(one->proxy, node, how);
}

#define REMOTE(scheme)                 \
	{                              \
		.name = (scheme),      \
		.by_url = true,        \
		.remote = true,        \
		.max = 1,              \
		.takes_over = true,    \
		.shards = SHARDS,      \
		.open = open_remote,   \
		.close = close_remote, \
		.tell = tell_remote,   \
		.cut = cut_remote,     \
	}

const struct stores_kind stores_s3 = REMOTE("s3");
const struct stores_kind stores_azure = REMOTE("azure");
const struct stores_kind stores_postgres = REMOTE("postgres");
