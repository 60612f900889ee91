/*
 * secret.h - what proves to Azure who sends a request: a shared key, or a SAS (shared access
 * signature).
 *
 *      1. credentials=FILE in the URL
 *      2. AZURE_STORAGE_KEY, or AZURE_STORAGE_SAS_TOKEN
 *      3. AZURE_STORAGE_CONNECTION_STRING
 *
 * The first that is there is used. A file has the form of a connection string, with ";" or line
 * breaks between its parts: AccountKey=... or SharedAccessSignature=...; other parts are left
 * alone. A secret is never part of an error.
 */
#ifndef STORE_AZURE_SECRET_H
#define STORE_AZURE_SECRET_H

#include <sluice/err.h>

enum {
	AZURE_KEY_MAX = 128, /* bytes of a decoded key */
	AZURE_SAS_MAX = 1024,
	AZURE_DATE_TEXT = 30, /* "Fri, 24 May 2013 00:00:00 GMT" */
	AZURE_AUTH_TEXT = 160 /* the value of the field Authorization */
};

#define AZURE_VERSION "2021-08-06" /* of the protocol */

struct azure_secret {
	unsigned char key[AZURE_KEY_MAX];
	size_t key_n;            /* 0: a SAS */
	char sas[AZURE_SAS_MAX]; /* parameters of a query, without "?"; "": a key */
	slu_time until;          /* end of the SAS; SLU_NEVER: it does not say */
};

/* A request that is signed with a key. */
struct azure_signed {
	/* The question. */
	const char *account;
	const char *method;
	const char *path;  /* as in the URL */
	const char *query; /* as in the URL: parameters in byte order, values encoded */
	const char *range; /* value of the field Range, or "" */
	size_t body;       /* bytes */
	bool if_absent;
	const char *if_match; /* "": none */
	slu_time wall;

	/* Fields that the request must have, beside x-ms-version: AZURE_VERSION. */
	char date[AZURE_DATE_TEXT];          /* x-ms-date */
	char authorization[AZURE_AUTH_TEXT]; /* Authorization */
};

/* file: of credentials; NULL: the environment. Returns 0, SLU_EFORBIDDEN if there is no secret, or
 * SLU_EINVAL. */
int azure_secret_read(struct azure_secret *out, const char *file, struct slu_err *err);

/* Fills the fields. A PUT has the field x-ms-blob-type: BlockBlob. Returns false if they do not fit. */
bool azure_sign(struct azure_signed *s, const struct azure_secret *secret);

#endif
