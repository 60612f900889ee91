/*
 * refusal.h - why a caller is not let in: one word each, for metrics, logs and the audit.
 *
 * The words are few and fixed, so that they can be labels. The sentence for the caller is in
 * struct slu_err.
 */
#ifndef AUTH_REFUSAL_H
#define AUTH_REFUSAL_H

/* clang-format off */
#define REFUSALS(X) \
	X(NO_TOKEN,    "no_token")    /* neither a token nor a certificate */ \
	X(BAD_TOKEN,   "bad_token")   /* no token, an unknown key, a wrong signature */ \
	X(EXPIRED,     "expired") \
	X(NOT_YET,     "not_yet")     /* nbf is in the future */ \
	X(LIFETIME,    "lifetime")    /* longer than auth.max_age */ \
	X(ISSUER,      "issuer") \
	X(AUDIENCE,    "audience") \
	X(CERTIFICATE, "certificate") /* its claims cannot be read */ \
	X(WEB_PAGE,    "web_page")    /* web.h */ \
	X(SCOPE,       "scope")       /* a good caller without the right */
/* clang-format on */

enum refusal {
#define X(name, text) REFUSAL_##name,
	REFUSALS(X)
#undef X
	REFUSALS_COUNT,
	REFUSAL_NONE = REFUSALS_COUNT
};

const char *refusal_name(enum refusal r); /* a literal; of REFUSAL_NONE too */

#endif
