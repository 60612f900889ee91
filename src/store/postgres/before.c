#include "store/postgres/before.h"

#include "base/le.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	DIGITS = 20,
	HEAD = 88,       /* bytes before the body of a group */
	NUMBER_AT = 16,  /* in a group */
	PUT_BEFORE = 72, /* in a group: put of the group before, 8 bytes */
	SUM_BEFORE = 80, /* and its sum, 4 bytes */
	PUT_SIZE = 8,
	SUM_SIZE = 4
};

static const char magic[8] = { 's', 'l', 'u', 'i', 'c', 'e', 'g', 'r' };
static const char folder[] = "/group/";

/* The number at the end of SHARD/group/NUMBER; 0 if the name has another form. *shard: length of SHARD. */
static uint64_t
find_number(const char *name, int *shard)
{
	const char *const slash = strchr(name, '/');
	const char *const digits = slash ? slash + strlen(folder) : NULL;

	if (!slash || strncmp(slash, folder, strlen(folder)) != 0 || strlen(digits) != DIGITS ||
	    strspn(digits, "0123456789") != DIGITS)
		return 0;
	*shard = (int)(slash - name);
	return strtoull(digits, NULL, 10);
}

bool
group_before_find(const char *name, struct slice object, struct group_before *out)
{
	int shard = 0;
	const uint64_t number = find_number(name, &shard);

	if (number < 2 || object.n < HEAD || memcmp(object.p, magic, sizeof magic) != 0 ||
	    le64_get(object.p + NUMBER_AT) != number)
		return false;
	out->number = number - 1;
	snprintf(out->name, sizeof out->name, "%.*s%s%0*" PRIu64, shard, name, folder, DIGITS, out->number);
	snprintf(out->spans, sizeof out->spans, "%.*s/span/", shard, name);
	snprintf(out->last_span, sizeof out->last_span, "%.*s/span/%0*" PRIu64, shard, name, DIGITS, out->number);
	memcpy(out->mark, object.p + PUT_BEFORE, PUT_SIZE);
	memcpy(out->mark + PUT_SIZE, object.p + SUM_BEFORE, SUM_SIZE);
	return true;
}
