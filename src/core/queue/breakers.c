#include "core/queue/breakers.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/parse.h"

#include <assert.h>
#include <string.h>

enum {
	CHUNK_BITS = 4, /* items of a chunk: most queues have few circuits */
	MANY = 1024     /* circuits, from which on old failures are looked for */
};

/* ---- Rules ---- */

static void
skip_space(struct slice *s)
{
	while (s->n && *s->p == ' ')
		slice_skip(s, 1);
}

static bool
is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c && strchr("._-", c));
}

static struct slice
take_word(struct slice *s)
{
	struct slice out = { s->p, 0 };

	skip_space(s);
	out.p = s->p;
	while (out.n < s->n && is_word(out.p[out.n]))
		out.n++;
	slice_skip(s, out.n);
	return out;
}

static bool
take_sign(struct slice *s, char sign)
{
	skip_space(s);
	if (!s->n || *s->p != sign)
		return false;
	slice_skip(s, 1);
	return true;
}

static bool
take_count(struct slice *s, uint32_t *out)
{
	const struct slice digits = take_word(s);

	*out = 0;
	for (size_t i = 0; i < digits.n && digits.n <= 6; i++) {
		if (digits.p[i] < '0' || digits.p[i] > '9')
			return false;
		*out = *out * 10 + (uint32_t)(digits.p[i] - '0');
	}
	return *out > 0;
}

static bool
take_time(struct slice *s, slu_time *out)
{
	return parse_duration(take_word(s), out, NULL) == 0 && *out > 0 && *out <= BREAKER_TIME_MAX;
}

static bool
take_scope(struct slice *s, enum gate_kind *out)
{
	static const struct {
		struct slice name;
		enum gate_kind kind;
	} scopes[] = {
		{ { "queue", 5 }, GATE_QUEUE },
		{ { "share", 5 }, GATE_SHARE },
		{ { "key", 3 }, GATE_KEY },
		{ { "attribute", 9 }, GATE_VALUE },
	};
	const struct slice word = take_word(s);

	for (size_t i = 0; i < sizeof scopes / sizeof scopes[0]; i++)
		if (slice_eq(word, scopes[i].name)) {
			*out = scopes[i].kind;
			return true;
		}
	return false;
}

static bool
read_rule(struct slice s, struct breaker_rule *out)
{
	*out = (struct breaker_rule){ .name = take_word(&s), .scope = GATE_QUEUE };
	if (!out->name.n || out->name.n >= BREAKER_NAME || !take_sign(&s, ':') || !take_count(&s, &out->failures) ||
	    !slice_eq(take_word(&s), SLICE("in")) || !take_time(&s, &out->window) || !take_sign(&s, ',') ||
	    !slice_eq(take_word(&s), SLICE("open")) || !take_time(&s, &out->open))
		return false;
	if (take_sign(&s, ',') && (!slice_eq(take_word(&s), SLICE("by")) || !take_scope(&s, &out->scope)))
		return false;
	skip_space(&s);
	return s.n == 0;
}

static struct slice
cut_rule(struct slice *text)
{
	const char *const end = text->n ? memchr(text->p, ';', text->n) : NULL;
	const struct slice rule = { text->p, end ? (size_t)(end - text->p) : text->n };

	slice_skip(text, rule.n + (end != NULL));
	return rule;
}

bool
breakers_next(struct slice *text, struct breaker_rule *out)
{
	skip_space(text);
	return text->n && read_rule(cut_rule(text), out);
}

bool
breakers_rule(struct slice text, struct slice name, struct breaker_rule *out)
{
	while (breakers_next(&text, out))
		if (slice_eq(out->name, name))
			return true;
	return false;
}

int
breakers_check(struct slice text, struct slu_err *err)
{
	const struct slice all = text;
	struct breaker_rule rule, first;
	unsigned n = 0;

	for (skip_space(&text); text.n; skip_space(&text)) {
		const struct slice s = cut_rule(&text);

		if (!read_rule(s, &rule) || ++n > BREAKERS_MAX || !breakers_rule(all, rule.name, &first) ||
		    first.name.p != rule.name.p)
			return slu_fail(err, SLU_EINVAL,
					"invalid breaker: %.*s; expected at most %d breakers such as smtp: 5 in 1m, open 30s, by share with different names and times of at most 24h",
					(int)(s.n < 80 ? s.n : 80), s.p, BREAKERS_MAX);
	}
	return 0;
}

/* ---- Circuits ---- */

struct circuit_key {
	uint64_t hash, scope;
	struct slice name;
	uint8_t kind;
};

static uint64_t
hash_key(uint64_t hash, uint8_t kind, uint64_t scope)
{
	return hash_number(hash ^ hash_number(scope + kind));
}

static uint64_t
circuit_hash(const void *b, uint32_t h)
{
	const struct circuit *c = circuit_at(b, h);

	return hash_key(c->hash, c->kind, c->scope);
}

static bool
circuit_is(const void *b, uint32_t h, const void *key)
{
	const struct circuit *c = circuit_at(b, h);
	const struct circuit_key *k = key;

	return c->kind == k->kind && c->scope == k->scope && slice_eq(circuit_name(c), k->name);
}

static uint64_t
hash_name(struct slice name)
{
	static const struct hash_key fixed = { 1, 2 }; /* names of operators: no secret is needed */

	return hash_keyed(&fixed, name.p, name.n);
}

int
breakers_new(struct breakers **out)
{
	struct breakers *b = mem_zalloc(sizeof *b);

	if (!b)
		return SLU_ENOMEM;
	slab_init_chunked(&b->slab, sizeof(struct circuit), CHUNK_BITS);
	map_init(&b->names, b, circuit_hash, circuit_is);
	*out = b;
	return 0;
}

void
breakers_free(struct breakers *b)
{
	if (!b)
		return;
	for (uint32_t h = SLAB_NONE; (h = breakers_each(b, h)) != SLAB_NONE;)
		mem_free(circuit_at(b, h)->text);
	map_release(&b->names);
	slab_release(&b->slab);
	mem_free(b);
}

uint32_t
breakers_find(const struct breakers *b, struct slice name, enum gate_kind kind, uint64_t scope)
{
	const struct circuit_key key = { hash_name(name), scope, name, (uint8_t)kind };

	return map_find(&b->names, hash_key(key.hash, key.kind, scope), &key);
}

static size_t
text_size(const struct circuit *c)
{
	return circuit_name(c).n + circuit_scope(c).n + 2;
}

void
breakers_drop(struct breakers *b, uint32_t circuit)
{
	struct circuit *c = circuit_at(b, circuit);

	breakers_mark(b, circuit, false);
	breakers_set(b, circuit, CIRCUIT_CLOSED, 0);
	map_remove(&b->names, circuit_hash(b, circuit), circuit);
	b->text_bytes -= text_size(c);
	mem_free(c->text);
	c->alive = false;
	slab_free(&b->slab, circuit);
}

/* Circuits of keys that failed once would stay for ever. Costs O(1) for each circuit that is made, over time. */
static void
sweep(struct breakers *b)
{
	if (b->slab.used < MANY || (b->slab.used & (b->slab.used - 1)))
		return;
	for (uint32_t h = SLAB_NONE; (h = breakers_each(b, h)) != SLAB_NONE;)
		if (circuit_at(b, h)->state == CIRCUIT_CLOSED && !circuit_at(b, h)->dirty)
			breakers_drop(b, h);
}

uint32_t
breakers_make(struct breakers *b, struct slice name, enum gate_kind kind, uint64_t scope, struct slice scope_name)
{
	uint32_t h = breakers_find(b, name, kind, scope);
	char *text;

	if (h != SLAB_NONE)
		return h;
	sweep(b);
	text = mem_zalloc(name.n + scope_name.n + 2);
	h = text && !map_reserve(&b->names, 1) ? slab_new(&b->slab) : SLAB_NONE;
	if (h == SLAB_NONE) {
		mem_free(text);
		return h;
	}
	memcpy(text, name.p, name.n);
	if (scope_name.n)
		memcpy(text + name.n + 1, scope_name.p, scope_name.n);
	*circuit_at(b, h) = (struct circuit){
		.hash = hash_name(name),
		.scope = scope,
		.text = text,
		.probe = SLAB_NONE,
		.kind = (uint8_t)kind,
		.alive = true,
	};
	b->text_bytes += name.n + scope_name.n + 2;
	(void)map_insert(&b->names, circuit_hash(b, h), h); /* reserved */
	return h;
}

void
breakers_set(struct breakers *b, uint32_t circuit, enum circuit_state state, slu_time until)
{
	struct circuit *c = circuit_at(b, circuit);

	b->open += (state != CIRCUIT_CLOSED) - (uint32_t)(c->state != CIRCUIT_CLOSED);
	c->state = (uint8_t)state;
	c->until = until;
	c->probe = SLAB_NONE;
	c->failures = 0;
}

void
breakers_mark(struct breakers *b, uint32_t circuit, bool dirty)
{
	struct circuit *c = circuit_at(b, circuit);

	b->dirty += (uint32_t)dirty - (uint32_t)c->dirty;
	c->dirty = dirty;
}

bool
breakers_fail(struct breakers *b, uint32_t circuit, const struct breaker_rule *rule, slu_time now)
{
	struct circuit *c = circuit_at(b, circuit);

	assert(c->state == CIRCUIT_CLOSED);
	if (c->until <= now) {
		c->failures = 0;
		c->until = now + rule->window;
	}
	return ++c->failures >= rule->failures;
}

uint32_t
breakers_each(const struct breakers *b, uint32_t circuit)
{
	for (uint32_t h = circuit + 1; h < b->slab.fresh; h++) /* SLAB_NONE + 1 is 0 */
		if (slab_has(&b->slab, h) && circuit_at(b, h)->alive)
			return h;
	return SLAB_NONE;
}

size_t
breakers_bytes(const struct breakers *b)
{
	return sizeof *b + b->text_bytes + slab_bytes(&b->slab) + map_bytes(&b->names);
}
