#include "form/newbatch.h"

static int
check_callback(const struct op_put *put, struct slu_err *err)
{
	if (put->m.terms.batch || put->replace)
		return slu_fail(err, SLU_EINVAL, "callback: batch, unique with replace: expected none");
	if (message_size(&put->m) > MSGBATCH_CALLBACK_MAX)
		return slu_fail(err, SLU_ETOOBIG, "callback: %zu bytes; expected at most %d", message_size(&put->m), MSGBATCH_CALLBACK_MAX);
	return 0;
}

/* The shard of the batch makes a message of the record. */
int
newbatch_callback(struct msgbatch *b, const struct op_put *callback, struct arena *a, struct slu_err *err)
{
	struct message m = callback->m;
	char *record;
	int rc = message_check(&m, err);

	if (!rc)
		rc = check_callback(callback, err);
	if (rc)
		return rc;
	m.id = MSGBATCH_SELF;
	m.expires = callback->deadline;
	record = arena_alloc(a, message_size(&m));
	if (!record)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	message_encode(&m, record);
	b->message = (struct slice){ record, message_size(&m) };
	b->delay = callback->delay;
	b->ttl = callback->ttl;
	return 0;
}

int
newbatch_put(const struct msgbatch *b, struct slice space, struct arena *a, struct op_put *out, struct slu_err *err)
{
	struct slice doc;
	struct buf text;

	buf_init(&text, MSGBATCH_HEAD + MSGBATCH_CALLBACK_MAX);
	msgbatch_encode(b, &text);
	doc = arena_take(a, &text);
	if (!doc.n)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	*out = (struct op_put){ 0 };
	msgbatch_name(&out->m, space);
	out->m.due = msgbatch_due(b);
	out->m.payload = doc;
	out->m.payload_size = doc.n;
	return 0;
}
