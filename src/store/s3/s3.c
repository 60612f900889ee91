#include "store/s3/s3.h"

#include "base/mem.h"
#include "store/s3/keys.h"
#include "store/s3/place.h"
#include "store/web/objects.h"

#include <stdio.h>

struct s3_store {
	struct web_objects objects;
	struct s3_place place;
	struct s3_chain *chain;
};

static struct s3_store *
of(struct store *s)
{
	return (struct s3_store *)(void *)s;
}

/* ---- The dialect ---- */

static const struct objects_meaning meanings[] = {
	{ "RequestTimeout", STORE_FAILED, SLU_ETIMEOUT },
	{ "RequestTimeTooSkewed", STORE_FAILED, SLU_EDOWN },
	{ "ExpiredToken", STORE_FAILED, SLU_EDOWN },
	{ "TokenRefreshRequired", STORE_FAILED, SLU_EDOWN },
	{ "NoSuchBucket", STORE_REFUSED, SLU_ENOTFOUND },
	{ "EntityTooLarge", STORE_REFUSED, SLU_ETOOBIG },
	{ 0 },
};

/* Says where a bucket of another region is. */
static bool
explain(const struct objects_call *c, enum slu_code code, struct slu_err *err)
{
	const struct slice region = web_head(&c->web, "x-amz-bucket-region");

	if (c->web.status >= 400 || region.n == 0)
		return false;
	slu_fail(err, code, "the bucket is in region %.*s; set region=%.*s", (int)region.n, region.p,
		 (int)region.n, region.p);
	return true;
}

static int
sign(struct web_objects *o, struct objects_call *c, const char *path, slu_time wall, bool renew,
     struct slu_err *err)
{
	const struct s3_store *const s = of(&o->base);
	struct s3_signed q = {
		.method = c->method,
		.host = s->place.at.host,
		.path = path,
		.query = c->query ? c->query : "",
		.body = c->body,
		.region = s->place.region,
		.service = "s3",
		.wall = wall,
	};
	struct s3_keys keys;
	int rc = s3_chain_keys(s->chain, wall, renew, &keys, err);

	if (rc)
		return rc;
	if (!s3_sign(&q, &keys))
		return slu_fail(err, SLU_EINVAL, "the request is too long to be signed");
	web_field(&c->web, "X-Amz-Date: %s", q.date);
	web_field(&c->web, "X-Amz-Content-Sha256: %s", q.sum);
	web_field(&c->web, "Authorization: %s", q.authorization);
	if (keys.token[0])
		web_field(&c->web, "X-Amz-Security-Token: %s", keys.token);
	return 0;
}

static const char *const stale[] = { "ExpiredToken", "TokenRefreshRequired", NULL };

static const struct objects_dialect dialect = {
	.meanings = meanings,
	.stale = stale,
	.sign = sign,
	.explain = explain,
	.item = "Contents",
	.key = "Key",
	.etag = "ETag",
	.time = "LastModified",
};

/* ---- Lists and the clock ---- */

static enum store_result
list_page(struct s3_store *s, const char *prefix, const char *after, uint32_t max,
	  struct objects_page *page, struct store_names *out, struct slu_err *err)
{
	struct buf query;
	enum store_result r;

	buf_init(&query, OBJECTS_QUERY_MAX);
	buf_printf(&query, "list-type=2&max-keys=%u&prefix=", max - out->n);
	objects_encode(&query, s->place.prefix);
	objects_encode(&query, prefix);
	if (after[0]) {
		buf_puts(&query, "&start-after=");
		objects_encode(&query, s->place.prefix);
		objects_encode(&query, after);
	}
	r = objects_page(&s->objects, buf_str(&query), after, max, page, out, err);
	buf_release(&query);
	return r;
}

static enum store_result
list(struct store *store, const char *prefix, const char *after, uint32_t max,
     struct store_names *out, struct slu_err *err)
{
	struct objects_page page;
	char from[OBJECTS_KEY_MAX];
	enum store_result r;

	snprintf(from, sizeof from, "%s", after);
	do {
		r = list_page(of(store), prefix, from, max, &page, out, err);
		out->more = r == STORE_OK && page.truncated && page.moved;
		if (out->more)
			(void)snprintf(from, sizeof from, "%s", page.last);
	} while (out->more && out->n < max);
	return r;
}

static enum store_result
read_clock(struct store *store, slu_time *wall, struct slu_err *err)
{
	struct objects_call c = { .method = "HEAD" };

	return objects_clock(&of(store)->objects, &c, wall, err);
}

/* ---- Open ---- */

static void
close_store(struct store *store)
{
	struct s3_store *const s = of(store);

	s3_chain_free(s->chain);
	web_free(s->objects.web);
	mem_free(s);
}

static int
check(const char *rest, const struct store_conf *conf, struct slu_err *err)
{
	struct s3_place place = { 0 };

	return s3_place_parse(&place, rest, conf->unsafe, err);
}

static int
prepare(struct s3_store *s, const char *rest, const struct store_conf *conf, struct slu_err *err)
{
	struct web_objects *const o = &s->objects;
	int rc = s3_place_parse(&s->place, rest, conf->unsafe, err);

	if (rc)
		return rc;
	o->dialect = &dialect;
	o->host = s->place.at.base;
	o->root = s->place.root;
	o->prefix = s->place.prefix;
	o->web = web_new(&(struct web_conf){ .ca = s->place.ca, .proxy = s->place.proxy, .timeout = conf->timeout });
	if (!o->web)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	s->chain = s3_chain_new(&s->place, err);
	return s->chain ? 0 : (int)err->code;
}

static enum store_result
open_store(struct store **out, const char *rest, const struct store_conf *conf, struct slu_err *err)
{
	struct s3_store *const s = mem_zalloc(sizeof *s);
	const int rc = s ? prepare(s, rest, conf, err) : slu_fail(err, SLU_ENOMEM, "out of memory");

	if (!rc) {
		*out = &s->objects.base;
		return STORE_OK;
	}
	if (s)
		close_store(&s->objects.base);
	return rc == SLU_EDOWN || rc == SLU_ENOMEM || rc == SLU_ETIMEOUT ? STORE_FAILED : STORE_REFUSED;
}

const struct store_ops store_s3 = {
	.name = "s3",
	.doc = "a bucket of Amazon S3, or of a store that speaks its protocol",
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
