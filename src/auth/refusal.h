/*
 * refusal.h - the reasons why a caller is refused: one word each, for metrics, logs and audit.
 *
 * The words are few and fixed, so that they can be labels. struct slu_err has the text for the
 * client.
 */
#ifndef AUTH_REFUSAL_H
#define AUTH_REFUSAL_H

/* clang-format off */
#define REFUSALS(X) \
	X(NO_TOKEN,    "no_token")    /* neither a token nor a certificate */ \
	X(BAD_TOKEN,   "bad_token")   /* malformed, an unknown key, a wrong signature */ \
	X(EXPIRED,     "expired") \
	X(NOT_YET,     "not_yet")     /* nbf is in the future */ \
	X(LIFETIME,    "lifetime")    /* longer than auth.max_age */ \
	X(ISSUER,      "issuer") \
	X(AUDIENCE,    "audience") \
	X(CERTIFICATE, "certificate") /* invalid claims */ \
	X(WEB_PAGE,    "web_page")    /* web.h */ \
	X(SCOPE,       "scope")       /* a valid caller without the right */
/* clang-format on */

enum refusal {
#define X(name, text) REFUSAL_##name,
	REFUSALS(X)
#undef X
	REFUSALS_COUNT,
	REFUSAL_NONE = REFUSALS_COUNT
};

const char *refusal_name(enum refusal r); /* a literal, also for REFUSAL_NONE */

#endif
