/*
 * sign.h - AWS Signature Version 4: proves with a secret key who sends a request. Pure.
 */
#ifndef STORE_S3_SIGN_H
#define STORE_S3_SIGN_H

#include "base/bytes.h"

enum {
	S3_KEY_MAX = 256,    /* bytes of a key, with the NUL */
	S3_TOKEN_MAX = 4096, /* of a session token */
	S3_DATE_TEXT = 17,   /* "20130524T000000Z" */
	S3_SUM_TEXT = 65,    /* hex digits of a SHA-256 */
	S3_AUTH_TEXT = 512   /* the value of the field Authorization */
};

struct s3_keys {
	char id[S3_KEY_MAX];
	char secret[S3_KEY_MAX];
	char token[S3_TOKEN_MAX]; /* "": the keys are permanent */
	slu_time until;           /* end of the keys; SLU_NEVER: none */
};

struct s3_signed {
	/* The question. */
	const char *method;
	const char *host;  /* with the port, if it is not the usual one */
	const char *path;  /* as in the URL */
	const char *query; /* as in the URL: parameters in byte order, values encoded */
	struct slice body;
	const char *region;
	const char *service; /* "s3" */
	slu_time wall;

	/* Fields that the request must have. */
	char date[S3_DATE_TEXT];          /* X-Amz-Date */
	char sum[S3_SUM_TEXT];            /* X-Amz-Content-Sha256 */
	char authorization[S3_AUTH_TEXT]; /* Authorization */
};

/* Fills the fields. Returns false if they do not fit. */
bool s3_sign(struct s3_signed *s, const struct s3_keys *keys);

#endif
