/*
 * quotas.h - one item of limits.quotas: the limits of a namespace.
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
	bool has_messages, has_bytes; /* false: the item lacks that part */
};

/* SLU_EINVAL if the item is invalid. */
int conf_quota_parse(const char *item, struct conf_quota *out, struct slu_err *err);

#endif
