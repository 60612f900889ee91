/*
 * sigv4.h - checks AWS Signature Version 4, with which clients of AWS sign their requests.
 *
 *      Authorization: AWS4-HMAC-SHA256 Credential=KEY/20261118/us-east-1/sqs/aws4_request,
 *                     SignedHeaders=content-type;host;x-amz-date, Signature=5d1a...
 *      X-Amz-Date: 20261118T120000Z
 *
 *      secret ── day, region, service ──> signing key ── method, path, fields, body ──> Signature
 *
 *  SIGV4-1  The signature covers the body, the time and Host: a signature for another host is refused.
 *  SIGV4-2  The time of a request is at most SIGV4_WINDOW away from the server's.
 *  SIGV4-3  The signing key of a secret depends on day, region and service only. A thread keeps the last ones.
 *
 * Pure: the caller knows the secret and passes `now`.
 */
#ifndef AUTH_SIGV4_H
#define AUTH_SIGV4_H

#include "base/bytes.h"

#include <sluice/err.h>

#define SIGV4_WINDOW (15 * 60 * SLU_SEC)

enum {
	SIGV4_SUM = 32,       /* bytes of SHA-256 */
	SIGV4_KEY_MAX = 128,  /* bytes of an access key */
	SIGV4_REGION_MAX = 64 /* bytes of a region */
};

/* What Authorization says; all of it points into the field. */
struct sigv4 {
	struct slice key;         /* the access key */
	struct slice day, region; /* of the scope */
	struct slice scope;       /* day/region/service/aws4_request */
	struct slice fields;      /* names, in lower case, with ; between */
	struct slice signature;   /* in hex */
};

/* A request as the server got it. */
struct sigv4_request {
	struct slice method, path, body;
	struct slice service; /* the service that it is for: "sqs" */

	/* A field of the head by its name in lower case; .p NULL: not sent. */
	struct slice (*field)(const void *arg, const char *name);
	const void *arg;
};

/* SIGV4-3. Zeroed: empty. */
struct sigv4_cache {
	char key[SIGV4_KEY_MAX], region[SIGV4_REGION_MAX], day[8];
	size_t key_n, region_n;
	uint64_t generation; /* of the secrets */
	unsigned char signing[SIGV4_SUM];
	bool filled;
};

/* Whether the field begins like a signature. */
bool sigv4_is(struct slice authorization);

/* Returns SLU_EAUTH if it is malformed. */
int sigv4_parse(struct sigv4 *out, struct slice authorization, struct slu_err *err);

/* Returns SLU_EAUTH if the secret has another signature, or the signature is too old. */
int sigv4_check(const struct sigv4 *s, const struct sigv4_request *q, struct slice secret, uint64_t generation,
		slu_time now, struct sigv4_cache *cache, struct slu_err *err);

#endif
