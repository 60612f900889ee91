/*
 * admin_forget.c - DELETE /v1/admin/queues/NAMESPACE/QUEUE: a queue goes, with all it has.
 *
 *      OP_FORGET ──> not yet (a slice of its messages has gone): OP_FORGET again
 *                └─> gone
 */
#include "api/admin.h"

#include "api/ask.h"
#include "api/flat_view.h"
#include "core/names.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	/* Slices; more come only while somebody puts messages in as fast as they go out. */
	FORGET_ROUNDS = 1000000,
	FORGET_TEXT = 512
};

static const struct slice prefix = SLICE("/v1/admin/queues/");

struct state {
	char space[NAME_TEXT];
	char queue[NAME_TEXT];
	bool force;
	uint64_t messages; /* that went */
	uint32_t rounds;
};

static const struct param params[] = {
	PARAM(flag, struct state, force),
};

static void
refuse(struct ask *a)
{
	const struct state *const s = a->state;
	char text[FORGET_TEXT];

	if (a->op.rc != SLU_ENOTFOUND) {
		ask_refuse_op(a, &a->op);
		return;
	}
	(void)snprintf(text, sizeof text, "namespace %s has no queue %s", s->space, s->queue);
	ask_refuse(a, a->op.rc, text);
}

static void answer_step(struct ask *a);

static void
run_step(struct ask *a)
{
	struct state *const s = a->state;

	ask_op(a, &a->op, OP_FORGET, slice_of(s->space), slice_of(s->queue));
	a->op.force = s->force;
	ask_run(a, answer_step);
}

/* A queue that another call deleted between two steps is gone, too. */
static bool
is_gone(const struct ask *a)
{
	const struct state *const s = a->state;

	return a->op.rc == 0 || (a->op.rc == SLU_ENOTFOUND && s->rounds > 0);
}

static void
answer_step(struct ask *a)
{
	struct state *const s = a->state;
	struct json_out w;

	if (!is_gone(a)) {
		refuse(a);
		return;
	}
	s->messages += a->op.count;
	if (a->op.cursor && ++s->rounds < FORGET_ROUNDS) {
		run_step(a);
		return;
	}
	if (a->op.cursor) {
		ask_refuse(a, SLU_ENOTEMPTY, "messages come faster than they are deleted; stop the producers");
		return;
	}
	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	flat_view_place(&w, slice_of(s->space), slice_of(s->queue));
	json_out_bool(&w, "deleted", true);
	json_out_u64(&w, "messages", s->messages);
	json_out_close(&w);
	ask_reply(a, 200);
}

/* The two names behind the prefix. */
static int
read_names(struct slice path, struct state *s, struct slu_err *err)
{
	const struct slice rest = { path.p + prefix.n, path.n - prefix.n };
	const char *const slash = memchr(rest.p, '/', rest.n);
	const size_t n = slash ? (size_t)(slash - rest.p) : 0;
	int rc;

	if (!slash)
		return slu_fail(err, SLU_EINVAL,
				"invalid path; expected /v1/admin/queues/NAMESPACE/QUEUE");
	rc = name_fold((struct slice){ rest.p, n }, "namespace", s->space, err);
	if (rc)
		return rc;
	return name_fold((struct slice){ slash + 1, rest.n - n - 1 }, "queue", s->queue, err);
}

void
admin_forget(struct call *c, void *api)
{
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;
	struct slu_err err = { 0 };

	if (!s || !ask_params(a, params, sizeof params / sizeof params[0], s))
		return;
	if (read_names(c->path, s, &err))
		ask_refuse(a, SLU_EINVAL, err.text);
	else
		run_step(a);
}
