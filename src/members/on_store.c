#include "members/on_store.h"

#include <stdio.h>

static const enum store_verb verbs[] = {
	[LINE_PUT] = STORE_PUT,
	[LINE_GET] = STORE_GET,
	[LINE_LIST] = STORE_LIST,
	[LINE_REMOVE] = STORE_REMOVE,
	[LINE_REPLACE] = STORE_PUT,
};

static const enum line_result results[] = {
	[STORE_OK] = LINE_OK,
	[STORE_EXISTS] = LINE_EXISTS,
	[STORE_ABSENT] = LINE_ABSENT,
	[STORE_FAILED] = LINE_FAILED,
	[STORE_REFUSED] = LINE_FAILED,
};

void
on_store_ask(struct store_request *to, const struct line_request *r)
{
	to->verb = verbs[r->verb];
	to->mode = r->verb == LINE_REPLACE ? STORE_REPLACE : STORE_IF_ABSENT;
	snprintf(to->name, sizeof to->name, "%s", r->name);
	snprintf(to->after, sizeof to->after, "%s", r->after);
	to->object = r->object;
	to->more = r->verb == LINE_REMOVE ? r->object : (struct slice){ 0 };
	to->max = r->max;
}

struct line_answer
on_store_answer(const struct store_request *r)
{
	return (struct line_answer){
		.result = results[r->result],
		.object = buf_slice(&r->bytes),
		.names = r->names.names,
		.n_names = r->names.n,
		.more = r->names.more,
	};
}
