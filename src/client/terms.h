/*
 * terms.h - members of a message that both ways of sending one write as JSON.
 */
#ifndef CLIENT_TERMS_H
#define CLIENT_TERMS_H

#include "base/json/json_out.h"

#include <sluice/retry.h>

/* A duration; 0: nothing. */
void terms_out_time(struct json_out *w, const char *name, slu_time t);

/* b NULL: nothing. */
void terms_out_retry(struct json_out *w, const struct slu_backoff *b);

/* key NULL: nothing. time 0: `until` is a word. */
void terms_out_unique(struct json_out *w, const char *key, const char *until, slu_time time, bool replace);

/* Returns SLU_EINVAL if a server cannot have the policy. b may be NULL. */
int terms_check_retry(const struct slu_backoff *b, struct slu_err *err);

#endif
