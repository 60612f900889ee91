/*
 * keys.h - finds the keys of an S3 store and renews them before they end.
 *
 *      1. AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
 *      2. the file of credentials: its profile (AWS_PROFILE, default)
 *      3. AWS_CONTAINER_CREDENTIALS_FULL_URI or _RELATIVE_URI: an agent on this machine
 *      4. the metadata service of an EC2 instance (AWS_EC2_METADATA_SERVICE_ENDPOINT; not if
 *         AWS_EC2_METADATA_DISABLED is "true")
 *
 * The first source that is there is used. A file that is there and lacks the profile is an error.
 */
#ifndef STORE_S3_KEYS_H
#define STORE_S3_KEYS_H

#include "store/s3/place.h"
#include "store/s3/sign.h"

struct s3_chain;

/* Finds the keys. Returns NULL and sets err if no source has keys: SLU_EFORBIDDEN; if a service does
 * not answer: SLU_EDOWN. */
struct s3_chain *s3_chain_new(const struct s3_place *place, struct slu_err *err);
void s3_chain_free(struct s3_chain *c); /* NULL is fine */

/* The keys for a request at the moment `wall`. Asks the source again if they end within 5 minutes,
 * or if `renew`: the store refused them as expired. Returns SLU_EDOWN if the source has no new keys
 * and the old ones have ended: the source may have keys later. Any thread; blocks. */
int s3_chain_keys(struct s3_chain *c, slu_time wall, bool renew, struct s3_keys *out,
		  struct slu_err *err);

#endif
