/*
 * unique.h - the member "unique" of a message: {"key": "k", "until": "started", "mode": "replace"}.
 */
#ifndef FORM_UNIQUE_H
#define FORM_UNIQUE_H

#include "base/json/json_table.h"

#include <sluice/api.h>

struct form_unique {
	struct slice key;
	uint64_t until; /* enum unique of core/queue/terms.h */
	slu_time time;  /* UNIQUE_TIME: for how long */
	bool replace;
};

/* A reader of a row (base/json/json_table.h) whose member is a struct form_unique. */
void form_unique_read(struct json *r, const struct json_field *f, void *place);

#endif
