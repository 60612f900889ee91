#include "store/store.h"

#include "base/mem.h"

#include <stdio.h>
#include <time.h>

/* Bytes of the store and of the name in the text of an error, so that the cause always fits. */
#define LABEL_SHOWN 70
#define CHECK_SHOWN 120 /* the same for store_check_url, whose text has no more than the cause behind it */
#define NAME_SHOWN  80

static const char *const result_names[] = {
	[STORE_OK] = "ok",
	[STORE_EXISTS] = "exists",
	[STORE_ABSENT] = "absent",
	[STORE_FAILED] = "failed",
	[STORE_REFUSED] = "refused",
};

const char *
store_result_name(enum store_result r)
{
	return result_names[r];
}

static bool
is_legal(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-';
}

bool
store_name_is_valid(const char *name)
{
	size_t n = strnlen(name, STORE_NAME_MAX);
	unsigned segments = 1;

	if (n == STORE_NAME_MAX)
		return false;
	for (size_t i = 0; i <= n; i++) {
		bool begins = i == 0 || name[i - 1] == '/';

		if (begins && (i == n || name[i] == '/' || name[i] == '.'))
			return false;
		if (i < n && name[i] == '/')
			segments++;
		else if (i < n && !is_legal(name[i]))
			return false;
	}
	return segments <= STORE_SEGMENTS;
}

/* Whether names can begin with it: what follows may complete the last segment. */
static bool
is_prefix(const char *prefix)
{
	char whole[STORE_NAME_MAX];
	size_t n = strnlen(prefix, STORE_NAME_MAX);

	if (n + 1 >= STORE_NAME_MAX)
		return false;
	snprintf(whole, sizeof whole, "%s-", prefix);
	return store_name_is_valid(whole);
}

static enum store_result
refuse(struct slu_err *err, enum slu_code code, const char *why)
{
	slu_fail(err, code, "%s", why);
	return STORE_REFUSED;
}

/* Adds the store, the verb and the name to the cause that the driver gave. */
static enum store_result
report(const struct store *s, const char *verb, const char *name, enum store_result r,
       const struct slu_err *cause, struct slu_err *err)
{
	if (r == STORE_FAILED || r == STORE_REFUSED)
		slu_fail(err, cause->code, "%.*s: %s%s%.*s: %s", LABEL_SHOWN, s->label, verb,
			 *name ? " " : "", NAME_SHOWN, name, cause->text);
	return r;
}

/* The reason why a call with this name is refused before it reaches the driver. */
static enum store_result
check(const struct store *s, const char *name, bool changes, struct slu_err *err)
{
	if (!store_name_is_valid(name))
		return refuse(err, SLU_EINVAL,
			      "invalid name of an object; expected letters, digits, . _ - /");
	if (changes && s->read_only)
		return refuse(err, SLU_EFORBIDDEN, "the store is open for reading only");
	return STORE_OK;
}

/* Counts the request. store_conf.delay */
static void
travel(struct store *s, enum store_verb verb)
{
	const struct timespec delay = { .tv_sec = s->delay / SLU_SEC, .tv_nsec = s->delay % SLU_SEC };

	atomic_fetch_add_explicit(&s->requests[verb], 1, memory_order_relaxed);
	if (s->delay)
		(void)nanosleep(&delay, NULL); /* less if a signal ends it */
}

/* ---- Open ---- */

/* The URL behind its scheme without user, password and query, which may hold secrets. */
static struct slice
shown_part(const char *rest)
{
	const char *const at = memrchr(rest, '@', strcspn(rest, "/?"));
	const char *const shown = at ? at + 1 : rest;

	return (struct slice){ shown, strcspn(shown, "?") };
}

static char *
label_new(const struct store_ops *ops, const char *rest)
{
	const struct slice shown = shown_part(rest);
	size_t size = strlen(ops->name) + 3 + shown.n + 1;
	char *label = mem_alloc(size);

	if (label)
		snprintf(label, size, "%s://%.*s", ops->name, (int)shown.n, shown.p);
	return label;
}

/* The driver for the URL; *rest is what follows the scheme. NULL if the URL has no known one. */
static const struct store_ops *
find(const struct store_ops *const *rows, const char *url, const char **rest)
{
	const char *colon = strstr(url, "://");

	if (!colon)
		return NULL;
	*rest = colon + 3;
	for (; *rows; rows++)
		if (slice_eq(slice_of((*rows)->name), (struct slice){ url, (size_t)(colon - url) }))
			return *rows;
	return NULL;
}

static enum store_result
refuse_url(const struct store_ops *const *rows, const char *url, struct slu_err *err)
{
	char schemes[100] = "";
	size_t n = 0;

	for (; *rows && n < sizeof schemes; rows++)
		n += (size_t)snprintf(schemes + n, sizeof schemes - n, "%s%s://", n ? " or " : "",
				      (*rows)->name);
	slu_fail(err, SLU_EINVAL, "invalid URL of a store: %.*s; expected %s...", LABEL_SHOWN, url,
		 schemes);
	return STORE_REFUSED;
}

enum store_result
store_open(struct store **out, const struct store_ops *const *rows, const struct store_conf *conf,
	   struct slu_err *err)
{
	const char *rest = "";
	bool fits = strnlen(conf->url, STORE_URL_MAX) < STORE_URL_MAX;
	const struct store_ops *ops = fits ? find(rows, conf->url, &rest) : NULL;
	struct slu_err cause = { 0 };

	*out = NULL;
	if (!ops)
		return refuse_url(rows, conf->url, err);
	char *label = label_new(ops, rest);

	if (!label) {
		slu_fail(err, SLU_ENOMEM, "open a store: out of memory");
		return STORE_FAILED;
	}
	enum store_result r = ops->open(out, rest, conf, &cause);

	if (r != STORE_OK) {
		report(&(struct store){ .label = label }, "open", "", r, &cause, err);
		mem_free(label);
		return r;
	}
	(*out)->ops = ops;
	(*out)->label = label;
	(*out)->read_only = conf->read_only;
	(*out)->delay = conf->delay;
	return STORE_OK;
}

int
store_check_url(const struct store_ops *const *rows, const struct store_conf *conf, struct slu_err *err)
{
	const char *rest = "";
	const bool fits = strnlen(conf->url, STORE_URL_MAX) < STORE_URL_MAX;
	const struct store_ops *const ops = fits ? find(rows, conf->url, &rest) : NULL;
	struct slu_err cause = { 0 };
	struct slice shown;

	if (!ops) {
		refuse_url(rows, conf->url, err);
		return SLU_EINVAL;
	}
	if (!ops->check || !ops->check(rest, conf, &cause))
		return 0;
	shown = shown_part(rest);
	return slu_fail(err, SLU_EINVAL, "store %s://%.*s%s: %s", ops->name,
			(int)(shown.n < CHECK_SHOWN ? shown.n : CHECK_SHOWN), shown.p,
			shown.n > CHECK_SHOWN ? "..." : "", cause.text);
}

int
store_sql(const struct store_ops *const *rows, const char *url, struct buf *out, struct slu_err *err)
{
	const char *rest = "";
	const struct store_ops *const ops = find(rows, url, &rest);

	if (!ops) {
		refuse_url(rows, url, err);
		return SLU_EINVAL;
	}
	return ops->sql ? ops->sql(rest, out, err)
			: slu_fail(err, SLU_EINVAL, "invalid URL: a store of %s:// needs no SQL", ops->name);
}

void
store_close(struct store *s)
{
	if (!s)
		return;
	mem_free(s->label);
	s->ops->close(s);
}

/* ---- Objects ---- */

enum store_result
store_put(struct store *s, const char *name, struct slice object, enum store_mode mode,
	  struct slu_err *err)
{
	size_t max = mode == STORE_REPLACE ? STORE_REPLACE_MAX : STORE_OBJECT_MAX;
	struct slu_err cause = { 0 };
	enum store_result r = check(s, name, true, &cause);

	if (r == STORE_OK && object.n > max)
		r = refuse(&cause, SLU_ETOOBIG, "the object is too large");
	travel(s, STORE_PUT);
	if (r == STORE_OK)
		r = s->ops->put(s, name, object, mode, &cause);
	return report(s, "put", name, r, &cause, err);
}

/* A get filled the buffer up: because of its limit, or because memory is out. */
static enum store_result
overflow(const struct buf *out, size_t wanted, struct slu_err *err)
{
	if (wanted > out->max - out->n)
		return refuse(err, SLU_ETOOBIG, "the object is larger than expected");
	slu_fail(err, SLU_ENOMEM, "out of memory");
	return STORE_FAILED;
}

enum store_result
store_get(struct store *s, const char *name, uint64_t at, size_t max, struct buf *out,
	  uint64_t *size, struct slu_err *err)
{
	struct slu_err cause = { 0 };
	enum store_result r = check(s, name, false, &cause);
	size_t before = out->n;
	uint64_t whole = 0;

	travel(s, STORE_GET);
	if (r == STORE_OK)
		r = s->ops->get(s, name, at, max, out, &whole, &cause);
	if (r != STORE_OK)
		out->n = before;
	if (r == STORE_OK && out->failed) {
		uint64_t behind = whole > at ? whole - at : 0;

		out->n = before;
		r = overflow(out, behind < max ? (size_t)behind : max, &cause);
	}
	if (size)
		*size = whole;
	return report(s, "get", name, r, &cause, err);
}

enum store_result
store_remove(struct store *s, const char *name, struct slu_err *err)
{
	struct slu_err cause = { 0 };
	enum store_result r = check(s, name, true, &cause);

	travel(s, STORE_REMOVE);
	if (r == STORE_OK)
		r = s->ops->remove(s, name, &cause);
	return report(s, "remove", name, r, &cause, err);
}

/* Every name has its NUL. */
static enum store_result
check_all(const struct store *s, const char *name, struct slice more, struct slu_err *err)
{
	enum store_result r = check(s, name, true, err);

	if (r == STORE_OK && more.n > 0 && more.p[more.n - 1])
		return refuse(err, SLU_EINVAL, "a name without its end");
	while (r == STORE_OK && more.n > 0) {
		r = check(s, more.p, true, err);
		slice_skip(&more, strlen(more.p) + 1);
	}
	return r;
}

enum store_result
store_remove_all(struct store *s, const char *name, struct slice more, struct slu_err *err)
{
	struct slu_err cause = { 0 };
	enum store_result r = check_all(s, name, more, &cause);

	if (r == STORE_OK && !s->ops->remove_all)
		r = refuse(&cause, SLU_EINVAL, "the store removes one object at a time");
	travel(s, STORE_REMOVE);
	if (r == STORE_OK)
		r = s->ops->remove_all(s, name, more, &cause);
	return report(s, "remove", name, r, &cause, err);
}

enum store_result
store_remove_if(struct store *s, const char *name, const char *tag, struct slu_err *err)
{
	struct slu_err cause = { 0 };
	enum store_result r = check(s, name, true, &cause);

	if (r == STORE_OK && !s->ops->remove_if)
		r = refuse(&cause, SLU_EINVAL, "the store has no tags of objects");
	travel(s, STORE_REMOVE);
	if (r == STORE_OK)
		r = s->ops->remove_if(s, name, tag, &cause);
	return report(s, "remove", name, r, &cause, err);
}

enum store_result
store_clock(struct store *s, slu_time *wall, struct slu_err *err)
{
	struct slu_err cause = { 0 };

	travel(s, STORE_CLOCK);
	enum store_result r = s->read_only
				      ? refuse(&cause, SLU_EFORBIDDEN,
					       "the store is open for reading only")
				      : s->ops->clock(s, wall, &cause);

	return report(s, "clock", "", r, &cause, err);
}

/* ---- Lists ---- */

void
store_names_add(struct store_names *out, const char *name)
{
	if (!out->text.max)
		buf_init(&out->text, (size_t)STORE_PAGE_MAX * 2 * STORE_NAME_MAX);
	buf_put(&out->text, name, strlen(name) + 1);
	out->n++;
}

void
store_names_add_tagged(struct store_names *out, const char *name, const char *tag)
{
	store_names_add(out, name);
	if (out->with_tags)
		buf_put(&out->text, tag, strlen(tag) + 1);
}

void
store_names_clear(struct store_names *n)
{
	if (n->text.max)
		buf_clear(&n->text);
	n->n = 0;
	n->more = false;
}

void
store_names_release(struct store_names *n)
{
	if (n->text.max)
		buf_release(&n->text);
	mem_free(n->names);
	mem_free(n->tags);
	*n = (struct store_names){ 0 };
}

/* Points names at the texts, which do not move any more. */
static bool
index_names(struct store_names *out)
{
	if (out->text.failed)
		return false;
	if (out->n > out->size) {
		const char **const names = mem_realloc(out->names, out->n * sizeof *names);
		const char **tags;

		if (!names)
			return false;
		out->names = names;
		tags = out->with_tags ? mem_realloc(out->tags, out->n * sizeof *tags) : NULL;
		if (out->with_tags && !tags)
			return false;
		out->tags = tags;
		out->size = out->n;
	}
	const char *p = out->text.p;

	for (uint32_t i = 0; i < out->n; i++) {
		out->names[i] = p;
		p += strlen(p) + 1;
		if (!out->with_tags)
			continue;
		out->tags[i] = p;
		p += strlen(p) + 1;
	}
	return true;
}

/* STORE-6: a driver that breaks it would make the line miss groups. */
static bool
in_order(const struct store_names *out, const char *prefix, const char *after, uint32_t max)
{
	size_t n = strlen(prefix);

	if (out->n > max)
		return false;
	for (uint32_t i = 0; i < out->n; i++) {
		if (strcmp(out->names[i], i ? out->names[i - 1] : after) <= 0 ||
		    strncmp(out->names[i], prefix, n) != 0 || !store_name_is_valid(out->names[i]))
			return false;
	}
	return out->n || !out->more;
}

static enum store_result
list(struct store *s, const char *prefix, const char *after, uint32_t max,
     struct store_names *out, struct slu_err *err)
{
	if (!is_prefix(prefix))
		return refuse(err, SLU_EINVAL, "invalid prefix of names");
	if (max < 1 || max > STORE_PAGE_MAX || strnlen(after, STORE_NAME_MAX) == STORE_NAME_MAX)
		return refuse(err, SLU_EINVAL, "invalid page of a list");
	enum store_result r = s->ops->list(s, prefix, after, max, out, err);

	if (r != STORE_OK)
		return r;
	if (!index_names(out)) {
		slu_fail(err, SLU_ENOMEM, "out of memory");
		return STORE_FAILED;
	}
	return in_order(out, prefix, after, max)
		       ? STORE_OK
		       : refuse(err, SLU_ECORRUPT, "the store returned names out of order");
}

enum store_result
store_list(struct store *s, const char *prefix, const char *after, uint32_t max,
	   struct store_names *out, struct slu_err *err)
{
	struct slu_err cause = { 0 };

	store_names_clear(out);
	travel(s, STORE_LIST);
	enum store_result r = list(s, prefix, after, max, out, &cause);

	if (r != STORE_OK)
		store_names_clear(out);
	return report(s, "list", prefix, r, &cause, err);
}
