#include "duty/reserved.h"

#define NEVER_DUE (7258118400 * SLU_SEC) /* 2200-01-01: nobody claims a document */

int
reserved_put(struct slice space, struct slice queue, struct buf *text, struct arena *memory, struct op_put *out)
{
	const struct slice doc = !text->failed ? arena_copy(memory, buf_slice(text)) : (struct slice){ 0 };

	buf_release(text);
	if (!doc.n)
		return SLU_ENOMEM;
	*out = (struct op_put){
		.m = {
			.space = space,
			.queue = queue,
			.type = SLICE("application/json"),
			.due = NEVER_DUE,
			.payload = doc,
			.payload_size = doc.n,
		},
	};
	return 0;
}
