#include "store/azure/azure.h"

#include "base/clock.h"
#include "base/mem.h"
#include "store/azure/secret.h"
#include "store/web/objects.h"
#include "store/web/place.h"

#include <pthread.h>
#include <stdio.h>

enum {
	PAGE_MAX = 5000, /* names of a page, at most */
	MARKERS = 8      /* pages whose marker is kept */
};

#define MARKER_AGE (10 * SLU_SEC) /* how long a marker is good for the next page */

/* The URL. */
struct azure_place {
	char text[2 * STORE_URL_MAX]; /* memory of the following texts */

	const char *account, *container;
	const char *endpoint;
	const char *style, *ca, *proxy, *credentials; /* NULL: not given */

	struct place_host at;
	char prefix[STORE_NAME_MAX + 1];
	char root[STORE_URL_MAX]; /* "/container" or "/account/container" */
};

/* Where the page behind the name `after` begins. */
struct azure_marker {
	char prefix[STORE_NAME_MAX], after[STORE_NAME_MAX];
	char text[OBJECTS_MARKER_MAX]; /* "": the entry is free */
	slu_time until;                /* of clock_mono */
};

struct azure_store {
	struct web_objects objects;
	struct azure_place place;

	/* Shared, under mtx. */
	pthread_mutex_t mtx;
	struct azure_secret secret;
	struct azure_marker markers[MARKERS];
	unsigned next; /* the marker that is replaced next */
};

static struct azure_store *
of(struct store *s)
{
	return (struct azure_store *)(void *)s;
}

/* ---- The URL ---- */

static const struct place_param params[] = {
	{ "endpoint", offsetof(struct azure_place, endpoint) },
	{ "style", offsetof(struct azure_place, style) },
	{ "ca", offsetof(struct azure_place, ca) },
	{ "proxy", offsetof(struct azure_place, proxy) },
	{ "credentials", offsetof(struct azure_place, credentials) },
	{ NULL, 0 },
};

static bool
is_named(const char *name, size_t max, const char *legal)
{
	const size_t n = strlen(name);

	return n >= 3 && n <= max && strspn(name, legal) == n;
}

static int
set_host(struct azure_place *p, bool unsafe, struct slu_err *err)
{
	static const char *const endpoints[] = { "AZURE_STORAGE_SERVICE_ENDPOINT", NULL };
	bool virtual;
	int rc;

	if (!p->endpoint)
		p->endpoint = place_environment(endpoints, NULL);
	virtual = !p->endpoint;
	if (!p->endpoint)
		p->endpoint = "https://blob.core.windows.net";
	rc = place_style(p->style, &virtual, err);
	if (!rc)
		rc = place_endpoint(&p->at, p->endpoint, virtual ? p->account : NULL, unsafe, err);
	snprintf(p->root, sizeof p->root, "%s%s/%s", virtual ? "" : "/", virtual ? "" : p->account, p->container);
	return rc;
}

static int
parse(struct azure_place *p, const char *rest, bool unsafe, struct slu_err *err)
{
	struct place_parts parts, below;
	int rc;

	snprintf(p->text, STORE_URL_MAX, "%s", rest);
	parts = place_split(p->text);
	p->account = parts.owner;
	if (strchr(p->account, '@') || (parts.query && strstr(parts.query, "sig=")))
		return slu_fail(err, SLU_EINVAL, "keys in the URL are refused; set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or credentials=FILE");
	if (!is_named(p->account, 24, "abcdefghijklmnopqrstuvwxyz0123456789"))
		return slu_fail(err, SLU_EINVAL, "invalid account: %.64s; expected 3 to 24 of a-z 0-9", p->account);
	below = place_split(parts.path);
	p->container = below.owner;
	if (!is_named(p->container, 63, "abcdefghijklmnopqrstuvwxyz0123456789-"))
		return slu_fail(err, SLU_EINVAL, "invalid container: %.64s; expected 3 to 63 of a-z 0-9 -", p->container);
	rc = parts.query ? place_params(p, params, parts.query, err) : 0;
	if (!rc)
		rc = set_host(p, unsafe, err);
	if (!rc)
		rc = place_prefix(below.path, p->prefix, err);
	return rc;
}

/* ---- The dialect ---- */

static const struct objects_meaning meanings[] = {
	{ "BlobAlreadyExists", STORE_EXISTS, 0 },
	{ "ConditionNotMet", STORE_EXISTS, 0 },
	{ "BlobNotFound", STORE_ABSENT, 0 },
	{ "OperationTimedOut", STORE_FAILED, SLU_ETIMEOUT },
	{ "ContainerNotFound", STORE_REFUSED, SLU_ENOTFOUND },
	{ "RequestBodyTooLarge", STORE_REFUSED, SLU_ETOOBIG },
	{ "BlobImmutableDueToPolicy", STORE_REFUSED, SLU_EFORBIDDEN },
	{ "LeaseIdMissing", STORE_REFUSED, SLU_EFORBIDDEN },
	{ 0 },
};

/* Reads the secret again if the store refused it, or if it has ended. */
static struct azure_secret
get_secret(struct azure_store *s, slu_time wall, bool renew)
{
	struct azure_secret fresh;
	struct slu_err err;

	pthread_mutex_lock(&s->mtx);
	if ((renew || s->secret.until <= wall) && azure_secret_read(&fresh, s->place.credentials, &err) == 0)
		s->secret = fresh;
	fresh = s->secret;
	pthread_mutex_unlock(&s->mtx);
	return fresh;
}

static int
sign(struct web_objects *o, struct objects_call *c, const char *path, slu_time wall, bool renew,
     struct slu_err *err)
{
	struct azure_store *const s = of(&o->base);
	const struct azure_secret secret = get_secret(s, wall, renew);
	struct azure_signed q = {
		.account = s->place.account,
		.method = c->method,
		.path = path,
		.query = c->query ? c->query : "",
		.range = c->range ? c->range : "",
		.body = c->body.n,
		.if_absent = c->if_absent,
		.if_match = c->if_match ? c->if_match : "",
		.wall = wall,
	};

	if (secret.until <= wall)
		return slu_fail(err, SLU_EDOWN, "the shared access signature has expired");
	web_field(&c->web, "x-ms-version: " AZURE_VERSION);
	if (strcmp(c->method, "PUT") == 0)
		web_field(&c->web, "x-ms-blob-type: BlockBlob");
	snprintf(c->proof, sizeof c->proof, "%s", secret.sas);
	if (secret.key_n == 0)
		return 0;
	if (!azure_sign(&q, &secret))
		return slu_fail(err, SLU_EINVAL, "the request is too long to be signed");
	web_field(&c->web, "x-ms-date: %s", q.date);
	web_field(&c->web, "Authorization: %s", q.authorization);
	return 0;
}

static const char *const stale[] = { "AuthenticationFailed", NULL };

static const struct objects_dialect dialect = {
	.meanings = meanings,
	.code_field = "x-ms-error-code",
	.stale = stale,
	.sign = sign,
	.item = "Blob",
	.key = "Name",
	.etag = "Etag",
	.time = "Last-Modified",
};

/* ---- Lists and the clock ---- */

/* Takes the marker of the page behind `after`; "" if none is kept. A marker is used once: names that
 * are put later may be before it. */
static void
take_marker(struct azure_store *s, const char *prefix, const char *after, char out[static OBJECTS_MARKER_MAX])
{
	const slu_time now = clock_mono(&clock_system);

	out[0] = '\0';
	pthread_mutex_lock(&s->mtx);
	for (unsigned i = 0; i < MARKERS && after[0]; i++) {
		struct azure_marker *const m = &s->markers[i];

		if (m->until < now || strcmp(m->after, after) != 0 || strcmp(m->prefix, prefix) != 0)
			continue;
		(void)snprintf(out, OBJECTS_MARKER_MAX, "%s", m->text);
		m->text[0] = '\0';
		m->until = 0;
	}
	pthread_mutex_unlock(&s->mtx);
}

static void
keep_marker(struct azure_store *s, const char *prefix, const char *after, const char *text)
{
	pthread_mutex_lock(&s->mtx);
	struct azure_marker *const m = &s->markers[s->next++ % MARKERS];

	snprintf(m->prefix, sizeof m->prefix, "%s", prefix);
	snprintf(m->after, sizeof m->after, "%.*s", STORE_NAME_MAX - 1, after);
	snprintf(m->text, sizeof m->text, "%s", text);
	m->until = clock_mono(&clock_system) + MARKER_AGE;
	pthread_mutex_unlock(&s->mtx);
}

static enum store_result
list_page(struct azure_store *s, const char *prefix, const char *after, const char *marker,
	  uint32_t wanted, uint32_t max, struct objects_page *page, struct store_names *out,
	  struct slu_err *err)
{
	struct buf query;
	enum store_result r;

	buf_init(&query, OBJECTS_QUERY_MAX);
	buf_puts(&query, "comp=list&");
	if (marker[0]) {
		buf_puts(&query, "marker=");
		objects_encode(&query, marker);
		buf_putc(&query, '&');
	}
	buf_printf(&query, "maxresults=%u&prefix=", wanted);
	objects_encode(&query, s->place.prefix);
	objects_encode(&query, prefix);
	buf_puts(&query, "&restype=container");
	r = objects_page(&s->objects, buf_str(&query), after, max, page, out, err);
	buf_release(&query);
	return r;
}

/* A list that begins behind a name for which no marker is kept reads large pages and passes over
 * the names before. */
static enum store_result
list(struct store *store, const char *prefix, const char *after, uint32_t max,
     struct store_names *out, struct slu_err *err)
{
	struct azure_store *const s = of(store);
	struct objects_page page = { 0 };
	char marker[OBJECTS_MARKER_MAX];
	enum store_result r;

	take_marker(s, prefix, after, marker);
	const bool passes_over = after[0] && !marker[0];

	do {
		r = list_page(s, prefix, after, marker, passes_over ? PAGE_MAX : max - out->n, max, &page, out, err);
		(void)snprintf(marker, sizeof marker, "%s", page.marker);
		out->more = r == STORE_OK && (page.cut || marker[0]);
	} while (out->more && out->n < max);
	if (out->more && !page.cut && store_name_is_valid(page.last))
		keep_marker(s, prefix, page.last, marker);
	return r;
}

/* A list of one name: a SAS of a container may not read the properties of the container. */
static enum store_result
read_clock(struct store *store, slu_time *wall, struct slu_err *err)
{
	struct objects_call c = { .method = "GET", .query = "comp=list&maxresults=1&restype=container" };

	return objects_clock(&of(store)->objects, &c, wall, err);
}

/* ---- Open ---- */

static void
close_store(struct store *store)
{
	struct azure_store *const s = of(store);

	web_free(s->objects.web);
	pthread_mutex_destroy(&s->mtx);
	mem_free(s);
}

static int
check(const char *rest, const struct store_conf *conf, struct slu_err *err)
{
	struct azure_secret secret = { 0 };
	struct azure_place place = { 0 };
	int rc = parse(&place, rest, conf->unsafe, err);

	if (!rc)
		rc = azure_secret_read(&secret, place.credentials, err);
	explicit_bzero(&secret, sizeof secret);
	return rc;
}

static int
prepare(struct azure_store *s, const char *rest, const struct store_conf *conf, struct slu_err *err)
{
	struct web_objects *const o = &s->objects;
	int rc = parse(&s->place, rest, conf->unsafe, err);

	if (!rc)
		rc = azure_secret_read(&s->secret, s->place.credentials, err);
	if (rc)
		return rc;
	o->dialect = &dialect;
	o->host = s->place.at.base;
	o->root = s->place.root;
	o->prefix = s->place.prefix;
	o->web = web_new(&(struct web_conf){ .ca = s->place.ca, .proxy = s->place.proxy, .timeout = conf->timeout });
	return o->web ? 0 : slu_fail(err, SLU_ENOMEM, "out of memory");
}

static enum store_result
open_store(struct store **out, const char *rest, const struct store_conf *conf, struct slu_err *err)
{
	struct azure_store *const s = mem_zalloc(sizeof *s);
	int rc;

	if (!s) {
		slu_fail(err, SLU_ENOMEM, "out of memory");
		return STORE_FAILED;
	}
	pthread_mutex_init(&s->mtx, NULL);
	rc = prepare(s, rest, conf, err);
	if (!rc) {
		*out = &s->objects.base;
		return STORE_OK;
	}
	close_store(&s->objects.base);
	return rc == SLU_ENOMEM ? STORE_FAILED : STORE_REFUSED;
}

const struct store_ops store_azure = {
	.name = "azure",
	.doc = "a container of Azure Blob Storage",
	.shards = 4,
	.lease = 15 * SLU_SEC,
	.puts = 20,
	.probed = true,
	.check = check,
	.open = open_store,
	.close = close_store,
	.put = objects_put,
	.get = objects_get,
	.list = list,
	.remove = objects_remove,
	.remove_if = objects_remove_if,
	.clock = read_clock,
};
