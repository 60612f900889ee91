#include "store/web/objects.h"

#include "base/clock.h"
#include "store/web/xml.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	PATH_MAX_BYTES = STORE_URL_MAX + 2 * STORE_NAME_MAX,
	LIST_MAX = 8 << 20, /* bytes of a page of names */
	TRIES = 3           /* with the store's clock, then with new keys */
};

#define SKEW_MAX (5 * 60 * SLU_SEC) /* a refusal with such a difference of clocks is for the clock */

static struct web_objects *
of(struct store *s)
{
	return (struct web_objects *)(void *)s;
}

/* ---- What an answer means ---- */

/* Any other status says nothing: the request may have happened. */
static const struct {
	unsigned status;
	struct objects_meaning meaning;
} statuses[] = {
	{ 404, { .result = STORE_ABSENT } },
	{ 412, { .result = STORE_EXISTS } },
	{ 301, { .result = STORE_REFUSED, .error = SLU_EINVAL } },
	{ 307, { .result = STORE_REFUSED, .error = SLU_EINVAL } },
	{ 400, { .result = STORE_REFUSED, .error = SLU_EINVAL } },
	{ 401, { .result = STORE_REFUSED, .error = SLU_EFORBIDDEN } },
	{ 403, { .result = STORE_REFUSED, .error = SLU_EFORBIDDEN } },
	{ 405, { .result = STORE_REFUSED, .error = SLU_EINVAL } },
	{ 501, { .result = STORE_REFUSED, .error = SLU_EINVAL } },
};

static struct objects_meaning
find_meaning(const struct objects_meaning *codes, const char *code, unsigned status)
{
	for (const struct objects_meaning *m = codes; m->code; m++)
		if (strcmp(m->code, code) == 0)
			return *m;
	for (size_t i = 0; i < COUNT(statuses); i++)
		if (statuses[i].status == status)
			return statuses[i].meaning;
	return (struct objects_meaning){ .result = STORE_FAILED, .error = SLU_EDOWN };
}

static bool
is_one_of(const char *code, const char *const *codes)
{
	while (*codes && strcmp(*codes, code) != 0)
		codes++;
	return *codes != NULL;
}

/* The answer to a HEAD has no body, so some stores repeat the code in a field. */
static void
read_code(const struct objects_dialect *d, struct objects_call *c)
{
	const struct slice field = d->code_field ? web_head(&c->web, d->code_field) : (struct slice){ 0 };

	if (field.n > 0 && field.n < sizeof c->code)
		snprintf(c->code, sizeof c->code, "%.*s", (int)field.n, field.p);
	else if (!xml_text(xml_find(buf_slice(&c->web.why), "Code"), c->code, sizeof c->code))
		c->code[0] = '\0';
}

static void
note_skew(struct web_objects *o, struct objects_call *c, slu_time signed_at)
{
	const slu_time date = web_date(&c->web);
	const slu_time apart = date > signed_at ? date - signed_at : signed_at - date;

	if (c->web.status != 403 || date == 0 || apart < SKEW_MAX)
		return;
	c->skewed = true;
	atomic_store(&o->skew, date - clock_wall(&clock_system));
}

static void
explain(const struct web_objects *o, const struct objects_call *c, enum slu_code code, struct slu_err *err)
{
	char message[200] = "";

	if (o->dialect->explain && o->dialect->explain(c, code, err))
		return;
	if (!xml_text(xml_find(buf_slice(&c->web.why), "Message"), message, sizeof message))
		message[0] = '\0';
	message[strcspn(message, "\r\n")] = '\0';
	slu_fail(err, code, "status %u%s%s%s%s", c->web.status, c->code[0] ? " " : "", c->code,
		 message[0] ? ": " : "", message);
}

static enum store_result
judge(struct web_objects *o, struct objects_call *c, slu_time signed_at, struct slu_err *err)
{
	struct objects_meaning m;

	if (c->web.status >= 200 && c->web.status < 300)
		return STORE_OK;
	read_code(o->dialect, c);
	note_skew(o, c, signed_at);
	c->stale = is_one_of(c->code, o->dialect->stale);
	m = find_meaning(o->dialect->meanings, c->code, c->web.status);
	explain(o, c, m.error, err);
	return m.result;
}

/* ---- A request ---- */

static void
write_url(const struct web_objects *o, const struct objects_call *c, const char *path, struct buf *url)
{
	const char *const query = c->query ? c->query : "";

	buf_printf(url, "%s%s%s%s", o->host, path, query[0] ? "?" : "", query);
	if (c->proof[0])
		buf_printf(url, "%s%s", query[0] ? "&" : "?", c->proof);
}

static int
send_signed(struct web_objects *o, struct objects_call *c, const char *path, struct slu_err *err)
{
	struct buf url;
	int rc;

	buf_init(&url, OBJECTS_QUERY_MAX + 2 * PATH_MAX_BYTES);
	write_url(o, c, path, &url);
	c->web.url = buf_str(&url);
	rc = url.failed ? slu_fail(err, SLU_ENOMEM, "out of memory") : web_run(o->web, &c->web, err);
	if (rc)
		atomic_fetch_add(&o->base.breaks, 1);
	c->web.url = NULL;
	buf_release(&url);
	return rc;
}

static enum store_result
send_once(struct web_objects *o, struct objects_call *c, struct slu_err *err)
{
	const slu_time wall = clock_wall(&clock_system) + atomic_load(&o->skew);
	const bool renew = c->stale;
	char path[PATH_MAX_BYTES];
	int rc;

	if (c->name)
		snprintf(path, sizeof path, "%s/%s%s", o->root, o->prefix, c->name);
	else
		snprintf(path, sizeof path, "%s", o->root[0] ? o->root : "/");
	c->skewed = c->stale = false;
	c->web = (struct web_call){
		.method = c->method,
		.body = c->body,
		.out = c->out,
		.expected = c->expected,
	};
	if (c->if_absent)
		web_field(&c->web, "If-None-Match: *");
	if (c->if_match)
		web_field(&c->web, "If-Match: %s", c->if_match);
	if (c->range)
		web_field(&c->web, "Range: %s", c->range);
	rc = o->dialect->sign(o, c, path, wall, renew, err);
	if (!rc)
		rc = send_signed(o, c, path, err);
	if (rc == SLU_EINVAL || rc == SLU_EFORBIDDEN)
		return STORE_REFUSED;
	return rc ? STORE_FAILED : judge(o, c, wall, err);
}

static enum store_result
run(struct web_objects *o, struct objects_call *c, struct slu_err *err)
{
	enum store_result r = send_once(o, c, err);

	for (unsigned i = 1; i < TRIES && (c->skewed || c->stale); i++) {
		web_call_release(&c->web);
		r = send_once(o, c, err);
	}
	return r;
}

enum store_result
objects_run(struct web_objects *o, struct objects_call *c, struct slu_err *err)
{
	const enum store_result r = run(o, c, err);

	if (r != STORE_ABSENT && r != STORE_EXISTS)
		return r;
	explain(o, c, r == STORE_ABSENT ? SLU_ENOTFOUND : SLU_EINVAL, err);
	return STORE_REFUSED;
}

/* ---- Objects ---- */

enum store_result
objects_put(struct store *store, const char *name, struct slice object, enum store_mode mode,
	    struct slu_err *err)
{
	struct objects_call c = {
		.method = "PUT",
		.name = name,
		.body = object,
		.if_absent = mode == STORE_IF_ABSENT,
	};
	enum store_result r = run(of(store), &c, err);

	if (r == STORE_ABSENT || (r == STORE_EXISTS && !c.if_absent)) {
		err->code = SLU_ENOTFOUND;
		r = STORE_REFUSED;
	}
	web_call_release(&c.web);
	return r;
}

/* The number behind the last "/" of Content-Range, or Content-Length. */
static bool
whole_size(const struct web_call *web, uint64_t *size)
{
	struct slice text = web_head(web, "content-range"), part;
	char digits[24];
	char *end;

	if (text.n == 0)
		text = web_head(web, "content-length");
	else
		(void)slice_cut(&text, '/', &part);
	if (text.n == 0 || text.n >= sizeof digits)
		return false;
	memcpy(digits, text.p, text.n);
	digits[text.n] = '\0';
	*size = strtoull(digits, &end, 10);
	return *end == '\0';
}

static enum store_result
get_size(struct web_objects *o, const char *name, uint64_t *size, struct slu_err *err)
{
	struct objects_call c = { .method = "HEAD", .name = name };
	enum store_result r = run(o, &c, err);

	if (r == STORE_OK && !whole_size(&c.web, size)) {
		slu_fail(err, SLU_EDOWN, "the answer has no size");
		r = STORE_FAILED;
	}
	web_call_release(&c.web);
	return r;
}

enum store_result
objects_get(struct store *store, const char *name, uint64_t at, size_t max, struct buf *out,
	    uint64_t *size, struct slu_err *err)
{
	struct web_objects *const o = of(store);
	const bool whole = at == 0 && max == SIZE_MAX;
	const size_t room = out->max - out->n;
	char range[64];
	struct objects_call c = {
		.method = "GET",
		.name = name,
		.range = whole ? NULL : range,
		.out = out,
		.expected = max < room ? max : room,
	};
	enum store_result r;

	if (max == 0 || at >= STORE_OBJECT_MAX)
		return get_size(o, name, size, err);
	if (max == SIZE_MAX)
		snprintf(range, sizeof range, "bytes=%" PRIu64 "-", at);
	else
		snprintf(range, sizeof range, "bytes=%" PRIu64 "-%" PRIu64, at, at + max - 1);
	r = run(o, &c, err);
	if (r == STORE_FAILED && c.web.status == 416) {
		r = get_size(o, name, size, err); /* behind the end */
	} else if (r == STORE_OK && (c.web.status != (whole ? 200 : 206) || !whole_size(&c.web, size))) {
		slu_fail(err, SLU_ECORRUPT, "the store ignored the range of a request");
		r = STORE_REFUSED;
	}
	web_call_release(&c.web);
	return r;
}

enum store_result
objects_remove(struct store *store, const char *name, struct slu_err *err)
{
	struct objects_call c = { .method = "DELETE", .name = name };
	const enum store_result r = run(of(store), &c, err);

	web_call_release(&c.web);
	return r;
}

enum store_result
objects_remove_if(struct store *store, const char *name, const char *tag, struct slu_err *err)
{
	char etag[OBJECTS_TAG_MAX];
	struct objects_call c = { .method = "DELETE", .name = name, .if_match = etag };
	enum store_result r;

	snprintf(etag, sizeof etag, "%.*s", (int)strcspn(tag, " "), tag);
	r = run(of(store), &c, err);
	web_call_release(&c.web);
	return r;
}

enum store_result
objects_clock(struct web_objects *o, struct objects_call *c, slu_time *wall, struct slu_err *err)
{
	enum store_result r = objects_run(o, c, err);

	*wall = r == STORE_OK ? web_date(&c->web) : 0;
	if (r == STORE_OK && *wall == 0) {
		slu_fail(err, SLU_EDOWN, "the answer has no date");
		r = STORE_FAILED;
	}
	web_call_release(&c->web);
	return r;
}

/* ---- Lists ---- */

void
objects_encode(struct buf *query, const char *text)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

	for (; *text; text++)
		if (strchr(plain, *text))
			buf_putc(query, *text);
		else
			buf_printf(query, "%%%02X", (unsigned char)*text);
}

/* "ETAG time"; "" if the page has none. */
static void
read_tag(const struct objects_dialect *d, struct slice item, char out[static OBJECTS_TAG_MAX])
{
	char etag[OBJECTS_TAG_MAX / 2], time[OBJECTS_TAG_MAX / 2];

	if (!xml_text(xml_find(item, d->etag), etag, sizeof etag) || !xml_text(xml_find(item, d->time), time, sizeof time))
		etag[0] = time[0] = '\0';
	snprintf(out, OBJECTS_TAG_MAX, "%s %s", etag, time);
}

static enum store_result
read_page(const struct web_objects *o, struct slice text, const char *after, uint32_t max,
	  struct objects_page *page, struct store_names *out, struct slu_err *err)
{
	const size_t skip = strlen(o->prefix);
	struct slice item, key;

	*page = (struct objects_page){ .truncated = slice_eq(xml_find(text, "IsTruncated"), SLICE("true")) };
	if (!xml_text(xml_find(text, "NextMarker"), page->marker, sizeof page->marker)) {
		slu_fail(err, SLU_ECORRUPT, "invalid marker of the list");
		return STORE_REFUSED;
	}
	while (xml_next(&text, o->dialect->item, &item)) {
		char name[OBJECTS_KEY_MAX], tag[OBJECTS_TAG_MAX] = "";

		key = xml_find(item, o->dialect->key);
		if (!xml_text(key, name, sizeof name) || strncmp(name, o->prefix, skip) != 0) {
			slu_fail(err, SLU_ECORRUPT, "invalid name in the list: %.*s", key.n < 60 ? (int)key.n : 60, key.p);
			return STORE_REFUSED;
		}
		page->moved = true;
		snprintf(page->last, sizeof page->last, "%s", name + skip);
		if (!store_name_is_valid(name + skip) || strcmp(name + skip, after) <= 0)
			continue;
		page->cut |= out->n == max;
		if (out->with_tags)
			read_tag(o->dialect, item, tag);
		if (out->n < max)
			store_names_add_tagged(out, name + skip, tag);
	}
	return STORE_OK;
}

enum store_result
objects_page(struct web_objects *o, const char *query, const char *after, uint32_t max,
	     struct objects_page *page, struct store_names *out, struct slu_err *err)
{
	struct buf text;
	struct objects_call c = { .method = "GET", .query = query, .out = &text, .expected = LIST_MAX };
	enum store_result r;

	buf_init(&text, LIST_MAX);
	r = objects_run(o, &c, err);
	if (r == STORE_OK && text.failed) {
		slu_fail(err, SLU_ENOMEM, "out of memory");
		r = STORE_FAILED;
	}
	if (r == STORE_OK)
		r = read_page(o, buf_slice(&text), after, max, page, out, err);
	web_call_release(&c.web);
	buf_release(&text);
	return r;
}
