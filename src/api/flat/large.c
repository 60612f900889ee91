/*
 * large.c - payloads of an enqueue that have files of their own: the files come first, then the ops that name them.
 */
#include "api/flat/enqueue.h"
#include "api/handler.h"

#include "engine/payload.h"

struct engine *
flat_engine_of(struct apicall *a, const struct message *m)
{
	return broker_engine_of(a->api->broker, apicall_routes(a), m->space, m->queue);
}

void
flat_large_close(const struct flat_enqueue *e)
{
	for (uint32_t i = 0; e->stored && i < e->in.n; i++)
		payload_close(e->stored[i]);
}

bool
flat_has_large(struct apicall *a)
{
	const struct flat_enqueue *const e = a->state;

	for (uint32_t i = 0; i < e->in.n; i++)
		if (payload_is_large(flat_engine_of(a, &e->in.puts[i].m), e->in.puts[i].m.payload.n))
			return true;
	return false;
}

/* On a file thread. */
static int
store_all(struct apicall *a)
{
	struct flat_enqueue *const e = a->state;
	int rc = 0;

	for (uint32_t i = 0; i < e->in.n && !rc; i++) {
		struct message *const m = &e->in.puts[i].m;

		if (payload_is_large(flat_engine_of(a, m), m->payload.n))
			rc = payload_store(flat_engine_of(a, m), m, &e->stored[i], &e->err);
	}
	return rc;
}

static void
stored(struct apicall *a, int rc)
{
	const struct flat_enqueue *const e = a->state;

	if (!rc) {
		e->then(a);
		return;
	}
	flat_large_close(e);
	apicall_refuse(a, rc, e->err.text);
}

void
flat_large_store(struct apicall *a, void (*then)(struct apicall *a))
{
	struct flat_enqueue *const e = a->state;

	e->then = then;
	e->stored = arena_array(&a->memory, e->in.n, sizeof(struct payload *));
	if (!e->stored) {
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return;
	}
	memset(e->stored, 0, e->in.n * sizeof(struct payload *));
	apicall_job(a, store_all, stored);
}
