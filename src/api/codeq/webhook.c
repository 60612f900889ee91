#include "api/codeq/webhook.h"

#include "base/id.h"

void
codeq_webhook_open(struct apicall *a, struct json_out *w, struct buf *b, const struct codeq_task *t, const char *status)
{
	char uuid[ID_UUID_TEXT];
	struct codeq_extras x;

	codeq_extras_read(&a->memory, t->m.attributes, &x);
	json_out_open(w, b);
	json_out_plain(w, "taskId", slice_of(id_to_uuid(t->id, uuid)));
	json_out_str(w, "eventType", x.command.n ? x.command : t->m.queue);
	json_out_str(w, "status", slice_of(status));
}

bool
codeq_webhook_put(struct apicall *a, const struct codeq_task *t, struct slice body, struct op_put *out)
{
	struct codeq_extras x;

	codeq_extras_read(&a->memory, t->m.attributes, &x);
	if (x.webhook.n == 0 || body.n == 0)
		return false;
	x.command.n = 0;
	*out = (struct op_put){
		.m = {
			.space = SLICE(WEBHOOK_SPACE),
			.queue = SLICE(WEBHOOK_QUEUE),
			.max_attempts = WEBHOOK_TRIES,
			.type = SLICE("application/json"),
			.attributes = codeq_extras_write(a, &x),
			.trace = t->m.trace,
			.payload = body,
			.payload_size = body.n,
		},
	};
	return out->m.attributes.n > 0;
}

void
codeq_webhook_kick(const struct apicall *a)
{
	if (a->api->webhooks.kick)
		a->api->webhooks.kick(a->api->webhooks.arg);
}
