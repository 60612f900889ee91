#include "api/mask/mask.h"

#include "api/apicall.h"
#include "auth/identity.h"
#include "base/json/json.h"
#include "base/mem.h"
#include "base/parse.h"

#define SHOWN "***"
const struct slice mask_shown = { SHOWN, sizeof SHOWN - 1 };

/* ---- The rules ---- */

static int
read_rule(struct mask_rule *r, const char *text, struct slu_err *err)
{
	struct slice rest = slice_of(text), name;
	char shown[SHOWN_TEXT];
	bool more = rest.n > 0 && rest.n <= MASK_RULE_MAX;

	if (more)
		memcpy(r->text, text, rest.n);
	rest.p = r->text;
	while (more && r->n < MASK_NAMES) {
		more = slice_cut(&rest, '.', &name);
		r->names[r->n++] = name;
		if (name.n == 0)
			break;
		if (!more)
			return 0;
	}
	return slu_fail(err, SLU_EINVAL, "invalid mask: %s; expected names with dots between, at most %d, as password or card.number",
			parse_shown(slice_of(text), shown), MASK_NAMES);
}

static bool
is_any(struct slice name)
{
	return slice_eq(name, SLICE("*"));
}

static int
check_rule(const struct mask_rule *r, struct slu_err *err)
{
	if (!is_any(r->names[r->n - 1]))
		return 0;
	for (unsigned i = 0; i < r->n; i++)
		if (!is_any(r->names[i]))
			return 0;
	return slu_fail(err, SLU_EINVAL, "invalid mask: %s; expected a name besides *", r->text);
}

int
mask_new(char *const *rules, unsigned n, struct mask **out, struct slu_err *err)
{
	struct mask *m;
	int rc = 0;

	*out = NULL;
	if (n == 0)
		return 0;
	m = mem_zalloc(sizeof *m + n * sizeof m->rules[0]);
	if (!m)
		return slu_fail(err, SLU_ENOMEM, "no memory for the rules of mask");
	atomic_init(&m->refs, 1);
	m->n = n;
	for (unsigned i = 0; i < n && !rc; i++) {
		rc = read_rule(&m->rules[i], rules[i], err);
		if (!rc)
			rc = check_rule(&m->rules[i], err);
	}
	if (rc)
		mem_free(m);
	else
		*out = m;
	return rc;
}

void
mask_unref(struct mask *m)
{
	if (m && atomic_fetch_sub(&m->refs, 1) == 1)
		mem_free(m);
}

void
masks_init(struct masks *s)
{
	pthread_mutex_init(&s->mtx, NULL); /* cannot fail without attributes */
	s->now = NULL;
}

void
masks_release(struct masks *s)
{
	mask_unref(s->now);
	s->now = NULL;
}

void
masks_set(struct masks *s, struct mask *m)
{
	struct mask *was;

	pthread_mutex_lock(&s->mtx);
	was = s->now;
	s->now = m;
	pthread_mutex_unlock(&s->mtx);
	mask_unref(was);
}

bool
mask_may_see(const struct apicall *a, struct slice namespace)
{
	const struct identity *const who = a->x->who;

	return identity_may(who, namespace, RIGHT_ADMIN) || identity_may(who, namespace, RIGHT_CONSUME);
}

struct mask *
mask_for(const struct apicall *a, struct slice namespace, bool asked)
{
	struct masks *const s = &a->api->masks;
	struct mask *m;

	if (!asked && mask_may_see(a, namespace))
		return NULL;
	pthread_mutex_lock(&s->mtx);
	m = s->now;
	if (m)
		atomic_fetch_add(&m->refs, 1);
	pthread_mutex_unlock(&s->mtx);
	return m;
}

/* ---- A body ---- */

struct masking {
	const struct mask *m;
	struct json r;
	unsigned level;                            /* open objects */
	struct json_str names[JSON_DEPTH_MAX + 1]; /* of the member that is read in each */
	const char *copied;                        /* the document is in out up to here */
	struct buf *out;
	bool hidden;
	bool is_put; /* the document is a message to enqueue: its payload is base64 */
};

static bool
rule_hides(const struct mask_rule *rule, const struct masking *s)
{
	if (s->level < rule->n)
		return false;
	for (unsigned i = 0; i < rule->n; i++)
		if (!is_any(rule->names[i]) && !json_str_is(&s->names[s->level - rule->n + i], rule->names[i]))
			return false;
	return true;
}

static bool
hides(const struct masking *s)
{
	if (s->is_put && s->level == 1 && json_str_is(&s->names[0], SLICE("payload")))
		return true;
	for (unsigned i = 0; i < s->m->n; i++)
		if (rule_hides(&s->m->rules[i], s))
			return true;
	return false;
}

static bool
contains(struct slice text, const char *before, struct slice name)
{
	const size_t skip = strlen(before);
	struct slice rest = text;

	for (const char *at; rest.n > 0 && (at = memmem(rest.p, rest.n, name.p, name.n)); slice_skip(&rest, (size_t)(at - rest.p) + 1))
		if ((size_t)(at - text.p) >= skip && memcmp(at - skip, before, skip) == 0)
			return true;
	return false;
}

/* Whether the text has a name of a rule, behind these characters. */
static bool
has_name(const struct mask *m, struct slice text, const char *before)
{
	for (unsigned i = 0; i < m->n; i++)
		for (unsigned k = 0; k < m->rules[i].n; k++)
			if (!is_any(m->rules[i].names[k]) && contains(text, before, m->rules[i].names[k]))
				return true;
	return false;
}

/* Writes *** instead of a value of the document. */
static void
hide(struct masking *s, struct slice value)
{
	if (!value.p)
		return;
	buf_put(s->out, s->copied, (size_t)(value.p - s->copied));
	buf_puts(s->out, "\"" SHOWN "\"");
	s->copied = value.p + value.n;
	s->hidden = true;
}

static void
see(struct masking *s, const struct json_event *e)
{
	switch (e->type) {
	case JSON_OBJECT:
		s->level++;
		break;
	case JSON_CLOSE:
		s->level -= *e->raw.p == '}';
		break;
	case JSON_MEMBER:
		s->names[s->level - 1] = e->str;
		if (hides(s))
			hide(s, json_skip(&s->r)); /* after a failure there is nothing, and all of it is dropped */
		break;
	case JSON_STRING:
		if (has_name(s->m, e->raw, "\\\"")) /* MASK-2 */
			hide(s, e->raw);
		break;
	default:
		break;
	}
}

static bool
hide_all(struct slice body, struct buf *out, bool hidden)
{
	if (hidden)
		buf_puts(out, SHOWN);
	else
		buf_put(out, body.p, body.n);
	return hidden;
}

static bool
mask_document(const struct mask *m, struct slice body, bool is_put, struct buf *out)
{
	const size_t begin = out->n;
	struct json_event e;
	struct masking s; /* large: initialised only as far as it is used */

	s.m = m;
	s.level = 0;
	s.copied = body.p;
	s.out = out;
	s.hidden = false;
	s.is_put = is_put;
	json_init(&s.r, body, JSON_DEPTH_MAX);
	while (json_next(&s.r, &e))
		see(&s, &e);
	if (s.r.state == JSON_FAILED || json_end(&s.r, NULL)) {
		out->n = begin;
		return hide_all(body, out, has_name(m, body, ""));
	}
	buf_put(out, s.copied, (size_t)(body.p + body.n - s.copied));
	return s.hidden;
}

bool
mask_body(const struct mask *m, struct slice body, struct buf *out)
{
	return mask_document(m, body, false, out);
}

int
mask_message(const struct mask *m, struct message *message, struct buf *room, bool *hidden)
{
	const bool payload = message->payload.n && mask_body(m, message->payload, room);
	const size_t n = room->n;
	const bool attributes = message->attributes.n && mask_body(m, message->attributes, room);

	if (room->failed)
		return SLU_ENOMEM;
	if (payload)
		message->payload = (struct slice){ room->p, n };
	if (attributes)
		message->attributes = (struct slice){ room->p + n, room->n - n };
	*hidden = payload || attributes;
	return 0;
}

static int
mask_copy(struct apicall *a, struct slice namespace, bool is_put, struct slice *body)
{
	struct mask *const m = body->n ? mask_for(a, namespace, false) : NULL;
	struct slice copy = *body;
	struct buf room;

	if (!m)
		return 0;
	buf_init(&room, MASKED_MAX);
	if (mask_document(m, *body, is_put, &room))
		copy = arena_copy(&a->memory, buf_slice(&room));
	if (room.failed)
		copy.p = NULL;
	buf_release(&room);
	mask_unref(m);
	if (copy.p)
		*body = copy;
	return copy.p ? 0 : SLU_ENOMEM;
}

int
mask_for_caller(struct apicall *a, struct slice namespace, struct slice *body)
{
	return mask_copy(a, namespace, false, body);
}

int
mask_put_for_caller(struct apicall *a, struct slice namespace, struct slice *put)
{
	return mask_copy(a, namespace, true, put);
}
