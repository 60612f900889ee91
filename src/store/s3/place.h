/*
 * place.h - where an S3 store is: its URL, taken apart. Pure but for the environment.
 *
 *      s3://BUCKET[/PREFIX][?endpoint=URL&region=NAME&style=path|virtual&ca=FILE&proxy=URL
 *                            &credentials=FILE&profile=NAME]
 *
 *      endpoint     AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, https://s3.REGION.amazonaws.com
 *      region       AWS_REGION, AWS_DEFAULT_REGION, us-east-1
 *      style        path if an endpoint is given, otherwise virtual (BUCKET.s3...)
 *      credentials  AWS_SHARED_CREDENTIALS_FILE, ~/.aws/credentials: store/s3/keys.h
 *
 * Each line says where a missing parameter is taken from.
 */
#ifndef STORE_S3_PLACE_H
#define STORE_S3_PLACE_H

#include "store/web/place.h"

struct s3_place {
	char text[2 * STORE_URL_MAX]; /* memory of the following texts */

	const char *bucket;
	const char *endpoint;
	const char *region;
	const char *style, *ca, *proxy, *credentials, *profile; /* NULL: not given */

	struct place_host at;
	char prefix[STORE_NAME_MAX + 1]; /* of every name: "" or "a/b/" */
	char root[STORE_URL_MAX];        /* path of the bucket: "" or "/bucket" */
};

/* rest: the URL behind "s3://". unsafe: also an endpoint on another machine without TLS. Returns 0
 * or SLU_EINVAL. */
int s3_place_parse(struct s3_place *p, const char *rest, bool unsafe, struct slu_err *err);

#endif
