#include "api/sqs/queue.h"

#include "api/queue/known.h"
#include "base/parse.h"

_Static_assert(sizeof(struct sqs_facts) <= KNOWN_VALUE, "the facts fit");

struct sqs_finding {
	struct op_queue seen;
	uint64_t changes;
	void (*then)(struct apicall *a);
};

static uint32_t
number(const struct sqs_document *d, const char *name, uint32_t otherwise)
{
	uint64_t value;

	return parse_u64(sqs_pairs_find(&d->attributes, name), 0, UINT32_MAX, &value, NULL) ? otherwise
											    : (uint32_t)value;
}

static void
take_facts(struct sqs_facts *f, const struct sqs_document *d)
{
	*f = (struct sqs_facts){
		.content_based = slice_eq(sqs_pairs_find(&d->attributes, "ContentBasedDeduplication"), SLICE("true")),
		.group_scope = slice_eq(sqs_pairs_find(&d->attributes, "DeduplicationScope"), SLICE("messageGroup")),
		.delay = number(d, "DelaySeconds", 0),
		.wait = number(d, "ReceiveMessageWaitTimeSeconds", 0),
		.max_bytes = number(d, "MaximumMessageSize", SQS_MESSAGE_MAX),
	};
}

static void
found(struct apicall *a)
{
	struct sqs_call *const s = sqs_of(a);
	const struct sqs_finding *const f = s->own;

	take_facts(&s->facts, sqs_document(a));
	known_put(a->api->known, exchange_thread(a->x), slice_of(s->space), slice_of(s->queue),
		  clock_mono(a->api->clock), f->changes, &s->facts, sizeof s->facts);
	f->then(a);
}

static void
exists(struct apicall *a)
{
	sqs_store_load(a, found);
}

static void
seen(struct apicall *a)
{
	struct sqs_call *const s = sqs_of(a);

	if (a->op.rc == SLU_ENOTFOUND)
		sqs_refuse(a, SQS_NO_QUEUE, "The specified queue does not exist: %s", s->queue);
	else if (a->op.rc)
		apicall_refuse_op(a, &a->op);
	else
		s->then(a);
}

void
sqs_queue_look(struct apicall *a, struct op_queue *out, void (*then)(struct apicall *a))
{
	struct sqs_call *const s = sqs_of(a);

	s->then = then;
	apicall_op(a, &a->op, OP_STATS, slice_of(s->space), slice_of(s->queue));
	a->op.queues = out;
	a->op.max_queues = 1;
	apicall_run(a, seen);
}

void
sqs_queue_find(struct apicall *a, void (*then)(struct apicall *a))
{
	struct sqs_call *const s = sqs_of(a);
	struct sqs_finding *f;

	if (known_find(a->api->known, exchange_thread(a->x), slice_of(s->space), slice_of(s->queue),
		       clock_mono(a->api->clock), &s->facts, sizeof s->facts)) {
		then(a);
		return;
	}
	f = arena_alloc(&a->memory, sizeof *f);
	if (!f) {
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return;
	}
	*f = (struct sqs_finding){ .changes = known_changes(a->api->known), .then = then };
	s->own = f;
	sqs_queue_look(a, &f->seen, exists);
}
