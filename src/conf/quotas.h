/*
 * quotas.h - one item of limits.quotas: what a namespace may hold.
 *
 *      NAMESPACE:messages=N:bytes=SIZE        either part may be left out; 0: no limit
 */
#ifndef CONF_QUOTAS_H
#define CONF_QUOTAS_H

#include "core/names.h"

#include <sluice/err.h>

struct conf_quota {
	char name[NAME_TEXT]; /* folded */
	uint64_t messages, bytes;
	bool has_messages, has_bytes; /* false: the item does not say it */
};

/* SLU_EINVAL, and in err what is wrong with the item. */
int conf_quota_parse(const char *item, struct conf_quota *out, struct slu_err *err);

#endif
