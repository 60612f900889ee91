#include "auth/jwt.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/json/json_table.h"

#include <assert.h>

static const struct slice alg_names[JWT_N_ALGS] = {
#define X(alg, text, ...) [JWT_##alg] = { text, sizeof(text) - 1 },
	JWT_ALGS(X)
#undef X
};

enum jwt_alg
jwt_alg_of(struct slice name)
{
	for (unsigned i = JWT_NO_ALG + 1; i < JWT_N_ALGS; i++)
		if (slice_eq(alg_names[i], name))
			return i;
	return JWT_NO_ALG;
}

const char *
jwt_alg_name(enum jwt_alg alg)
{
	return alg == JWT_NO_ALG ? "none" : alg_names[alg].p;
}

/* --- parts ---------------------------------------------------------------------- */

static char *
take_room(struct jwt *t, size_t n)
{
	char *const p = t->room;

	assert(n <= t->room_left); /* JWT_ROOM: each part decoded, and its texts */
	t->room += n;
	t->room_left -= n;
	return p;
}

static int
decode(struct jwt *t, struct slice text, struct slice *out, struct slu_err *err)
{
	char *const p = take_room(t, base64url_room(text.n));
	size_t n;

	if (base64url_decode(text, p, &n, NULL))
		return slu_fail(err, SLU_EAUTH, "invalid token; expected base64url");
	*out = (struct slice){ p, n };
	return 0;
}

/* The bytes up to the next dot, and takes the dot too. .p is NULL without a dot. */
static struct slice
take_part(struct slice *rest)
{
	const char *const dot = rest->n ? memchr(rest->p, '.', rest->n) : NULL;
	const struct slice part = { dot ? rest->p : NULL, dot ? (size_t)(dot - rest->p) : 0 };

	if (dot)
		*rest = (struct slice){ dot + 1, rest->n - part.n - 1 };
	return part;
}

/* --- the header ------------------------------------------------------------------ */

struct header {
	struct slice alg, kid, crit;
};

static const struct json_field header_fields[] = {
	JSON_FIELD(text, struct header, alg, .required = true),
	JSON_FIELD(text, struct header, kid, .max = JWT_KID_MAX),
	JSON_FIELD(raw, struct header, crit),
};

/* A reader of JSON with room for its texts. */
static void
reader(struct json *r, struct jwt *t, struct slice json)
{
	json_init(r, json, JWT_DEPTH);
	json_room(r, take_room(t, json.n), json.n);
}

static int
read_header(struct jwt *t, struct slice json, struct slu_err *err)
{
	struct header h = { 0 };
	struct json r;

	reader(&r, t, json);
	json_fields(&r, header_fields, sizeof header_fields / sizeof header_fields[0],
		    JSON_LENIENT, &h);
	if (json_end(&r, NULL))
		return slu_fail(err, SLU_EAUTH, "invalid token header");
	if (h.crit.n > 0)
		return slu_fail(err, SLU_EAUTH, "unknown critical extension in the token header");
	t->alg = jwt_alg_of(h.alg);
	t->kid = h.kid;
	if (t->alg == JWT_NO_ALG)
		return slu_fail(err, SLU_EAUTH, "token algorithm not accepted");
	return 0;
}

int
jwt_split(struct jwt *t, struct slice token, char room[static JWT_ROOM], struct slu_err *err)
{
	struct slice rest = token, header;
	int rc;

	*t = (struct jwt){ .room_left = JWT_ROOM };
	t->room = room;
	if (token.n > JWT_MAX)
		return slu_fail(err, SLU_EAUTH, "the token is longer than %d bytes", JWT_MAX);
	header = take_part(&rest);
	t->claims = take_part(&rest);
	if (header.n == 0 || t->claims.n == 0 || rest.n == 0)
		return slu_fail(err, SLU_EAUTH, "invalid token; expected three parts separated by dots");
	t->signing = (struct slice){ token.p, token.n - rest.n - 1 };
	rc = decode(t, rest, &t->signature, err);
	if (!rc)
		rc = decode(t, header, &header, err);
	return rc ? rc : read_header(t, header, err);
}

/* --- the claims ------------------------------------------------------------------ */

/* Seconds since 1970, perhaps with a fraction. */
static void
read_date(struct json *r, const struct json_field *f, void *place)
{
	const double seconds = json_double(r);

	(void)f;
	if (seconds < 0)
		json_fail(r, SLU_EINVAL, NULL, "expected seconds since 1970");
	else
		*(slu_time *)place = seconds < (double)(SLU_NEVER / SLU_SEC)
					     ? (slu_time)(seconds * (double)SLU_SEC)
					     : SLU_NEVER - 1;
}

static void
add_audience(struct json *r, struct jwt_claims *c)
{
	const struct slice text = json_text(r);

	if (c->n_aud == JWT_AUDIENCES)
		json_fail(r, SLU_EINVAL, NULL, "expected at most %d audiences", JWT_AUDIENCES);
	else
		c->aud[c->n_aud++] = text;
}

static void
read_audience(struct json *r, const struct json_field *f, void *place)
{
	struct jwt_claims *const c = place;

	(void)f;
	if (json_peek(r) != JSON_ARRAY) {
		add_audience(r, c);
		return;
	}
	json_array(r);
	while (json_element(r))
		add_audience(r, c);
}

/* Scopes of other services are ignored. */
static void
add_scope(struct jwt_claims *c, struct slice scope)
{
	codeq_claims_scope(&c->codeq, scope);
	(void)grants_add_scope(&c->grants, scope);
}

static void
add_scopes(struct jwt_claims *c, struct slice scopes)
{
	struct slice scope;

	while (scopes.n > 0) {
		(void)slice_cut(&scopes, ' ', &scope);
		add_scope(c, scope);
	}
}

static void
read_scope(struct json *r, const struct json_field *f, void *place)
{
	struct jwt_claims *const c = place;

	(void)f;
	add_scopes(c, json_text(r));
}

static void
read_scopes(struct json *r, const struct json_field *f, void *place)
{
	struct jwt_claims *const c = place;

	(void)f;
	json_array(r);
	while (json_element(r))
		add_scope(c, json_text(r));
}

/* A claim that other services may use in another form: then it is not there. */
static void
read_any_text(struct json *r, const struct json_field *f, void *place)
{
	(void)f;
	if (json_peek(r) == JSON_STRING)
		*(struct slice *)place = json_text(r);
}

static void
read_types(struct json *r, const struct json_field *f, void *place)
{
	struct codeq_claims *const c = place;

	(void)f;
	if (json_peek(r) != JSON_ARRAY)
		return;
	c->has_types = true;
	json_array(r);
	while (json_element(r)) {
		if (json_peek(r) != JSON_STRING)
			continue;
		if (c->n_types == CODEQ_TYPES)
			json_fail(r, SLU_EINVAL, NULL, "expected at most %d eventTypes", CODEQ_TYPES);
		else
			c->types[c->n_types++] = json_text(r);
	}
}

/* Read by the whole struct: they add to it. */
#define CLAIM(text, reader)                                        \
	{                                                          \
		.name = { text, sizeof(text) - 1 }, .read = reader \
	}

#define OF_CODEQ(text, reader, member) JSON_ROW(text, reader, struct jwt_claims, codeq.member)

static const struct json_field claim_fields[] = {
	JSON_FIELDS(text, struct jwt_claims, sub, iss),
	{ .name = { "exp", 3 }, .read = read_date, .offset = offsetof(struct jwt_claims, exp) },
	{ .name = { "iat", 3 }, .read = read_date, .offset = offsetof(struct jwt_claims, iat) },
	{ .name = { "nbf", 3 }, .read = read_date, .offset = offsetof(struct jwt_claims, nbf) },
	CLAIM("aud", read_audience),
	CLAIM("scope", read_scope),
	CLAIM("scopes", read_scopes),
	OF_CODEQ("tid", read_any_text, tenants[0]),
	OF_CODEQ("tenantId", read_any_text, tenants[1]),
	OF_CODEQ("tenant_id", read_any_text, tenants[2]),
	OF_CODEQ("organizationId", read_any_text, tenants[3]),
	OF_CODEQ("organization_id", read_any_text, tenants[4]),
	OF_CODEQ("role", read_any_text, role),
	JSON_ROW("eventTypes", read_types, struct jwt_claims, codeq),
};

int
jwt_claims(struct jwt_claims *c, struct jwt *t, struct slu_err *err)
{
	struct slice json = { 0 };
	struct json r;
	int rc;

	*c = (struct jwt_claims){ .exp = SLU_NEVER };
	rc = decode(t, t->claims, &json, err);
	if (rc)
		return rc;
	reader(&r, t, json);
	json_fields(&r, claim_fields, sizeof claim_fields / sizeof claim_fields[0],
		    JSON_LENIENT, c);
	if (json_end(&r, NULL))
		return slu_fail(err, SLU_EAUTH, "invalid token claims");
	if (c->grants.too_many)
		return slu_fail(err, SLU_EAUTH, "the token has more than %d scopes", GRANTS_MAX);
	return 0;
}

static bool
has_audience(const struct jwt_claims *c, struct slice audience)
{
	for (unsigned i = 0; i < c->n_aud; i++)
		if (slice_eq(c->aud[i], audience))
			return true;
	return false;
}

/* A token without iat was issued now, at the latest. */
static bool
is_too_long(const struct jwt_claims *c, const struct jwt_rules *rules, slu_time now)
{
	const slu_time issued = c->iat > 0 && c->iat < now ? c->iat : now;

	return rules->max_age > 0 && c->exp - issued > time_add(rules->max_age, rules->leeway);
}

enum refusal
jwt_judge(const struct jwt_claims *c, const struct jwt_rules *rules, slu_time now)
{
	if (c->exp == SLU_NEVER)
		return REFUSAL_BAD_TOKEN;
	if (now >= time_add(c->exp, rules->leeway))
		return REFUSAL_EXPIRED;
	if (c->nbf > time_add(now, rules->leeway))
		return REFUSAL_NOT_YET;
	if (is_too_long(c, rules, now))
		return REFUSAL_LIFETIME;
	if (rules->issuer.n > 0 && !slice_eq(rules->issuer, c->iss))
		return REFUSAL_ISSUER;
	if (rules->audience.n > 0 && !has_audience(c, rules->audience))
		return REFUSAL_AUDIENCE;
	return REFUSAL_NONE;
}

int
jwt_check(const struct jwt_claims *c, const struct jwt_rules *rules, slu_time now,
	  struct slu_err *err)
{
	switch (jwt_judge(c, rules, now)) {
	case REFUSAL_NONE:
		return 0;
	case REFUSAL_EXPIRED:
		return slu_fail(err, SLU_EAUTH, "the token has expired");
	case REFUSAL_NOT_YET:
		return slu_fail(err, SLU_EAUTH, "the token is not valid yet");
	case REFUSAL_LIFETIME:
		return slu_fail(err, SLU_EAUTH,
				"the token is valid for too long: this server takes at most %lld "
				"seconds (auth.max_age)",
				(long long)(rules->max_age / SLU_SEC));
	case REFUSAL_ISSUER:
		return slu_fail(err, SLU_EAUTH, "token issuer not accepted");
	case REFUSAL_AUDIENCE:
		return slu_fail(err, SLU_EAUTH, "the token is not for this audience");
	default:
		return slu_fail(err, SLU_EAUTH, "the token has no expiry (exp)");
	}
}
