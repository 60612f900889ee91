/*
 * aws_keys.h - the access keys of clients of AWS, from a file.
 *
 *      # access key    secret                  scopes
 *      AKIAJOBS        wJalrXUtnFEMI/K7MDENG   jobs:write,jobs:consume
 *      AKIAOPS         bPxRfiCYEXAMPLEKEY      *:*
 *
 * A line has a key, its secret and its scopes (auth/identity.h), with white space between. # begins a comment; empty
 * lines are ignored. Never changed once made: threads may share it.
 */
#ifndef AUTH_AWS_KEYS_H
#define AUTH_AWS_KEYS_H

#include "auth/identity.h"

#include <sluice/err.h>

enum {
	AWS_KEYS_MAX = 1024,
	AWS_SECRET_MAX = 60, /* bytes: with "AWS4" before it a block of SHA-256 */
	AWS_KEYS_FILE = 1 << 20
};

struct aws_key {
	struct slice key, secret;
	struct identity *who;
};

struct aws_keys {
	char *text;
	size_t text_n;
	struct aws_key *items;
	unsigned n;
};

/* Copies text. Returns SLU_EINVAL with the line and its fault, or SLU_ENOMEM; then *k is empty. */
int aws_keys_parse(struct aws_keys *k, struct slice text, struct slu_err *err);
void aws_keys_release(struct aws_keys *k); /* a zeroed one is fine */

/* NULL: no such key. */
const struct aws_key *aws_keys_find(const struct aws_keys *k, struct slice key);

#endif
