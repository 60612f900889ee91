/*
 * s3.h - a store in a bucket of Amazon S3, or of another store that speaks its protocol.
 *
 *      s3://jobs/prod?region=eu-central-1
 *      s3://jobs?endpoint=https://ceph.example:7480&ca=/etc/ssl/ceph.pem
 *
 * place.h explains the URL, keys.h where the keys come from. A put if absent has the field
 * If-None-Match: *. What the answers mean:
 *
 *      412   the name is taken
 *      409   nothing was decided: another put of the name is under way. Put again
 *      5xx   unknown, also 503 SlowDown
 *      403   RequestTimeTooSkewed: the clock of this machine is wrong. The store's clock is in
 *            the answer; the request is signed once more with it
 *
 * Some stores accept If-None-Match and ignore it. store_probe notices that, not this driver.
 */
#ifndef STORE_S3_S3_H
#define STORE_S3_S3_H

#include "store/store.h"

extern const struct store_ops store_s3;

#endif
