/*
 * beanstalk.c - the commands: which function runs each, and the answers of refusals.
 */
#include "beanstalk/beanstalk_private.h"

#include "api/authorize.h"
#include "auth/guard.h"
#include "base/log.h"
#include "base/mem.h"

/* ---- Answers ---- */

void
bean_answer(struct exchange *x, const char *text)
{
	buf_puts(&x->out, text);
	exchange_answer(x);
}

void
bean_answer_yaml(struct exchange *x, const struct buf *text)
{
	buf_printf(&x->out, "OK %zu\r\n", text->n);
	buf_put(&x->out, text->p, text->n);
	buf_puts(&x->out, "\r\n");
	exchange_answer(x);
}

struct slice
bean_text(struct apicall *a, const char *text)
{
	const struct slice copy = arena_copy(&a->memory, (struct slice){ text, strlen(text) + 1 });

	return (struct slice){ copy.p, copy.n ? copy.n - 1 : 0 };
}

/* What a client reads for a code; others are INTERNAL_ERROR. */
static const struct {
	int rc;
	const char *text;
} refusals[] = {
	{ SLU_ENOTFOUND, "NOT_FOUND\r\n" },
	{ SLU_ELEASE, "NOT_FOUND\r\n" },
	{ SLU_ESTOP, "NOT_FOUND\r\n" },
	{ SLU_ECONFLICT, "NOT_FOUND\r\n" },
	{ SLU_EINVAL, "BAD_FORMAT\r\n" },
	{ SLU_ETOOBIG, "JOB_TOO_BIG\r\n" },
	{ SLU_ECLOSED, "DRAINING\r\n" },
	{ SLU_EDRAINING, "DRAINING\r\n" },
	{ SLU_ENOMEM, "OUT_OF_MEMORY\r\n" },
	{ SLU_EFULL, "OUT_OF_MEMORY\r\n" },
	{ SLU_EQFULL, "OUT_OF_MEMORY\r\n" },
	{ SLU_EMEMORY, "OUT_OF_MEMORY\r\n" },
	{ SLU_EQUOTA, "OUT_OF_MEMORY\r\n" },
	{ SLU_EBUSY, "OUT_OF_MEMORY\r\n" },
};

static void
refuse(struct exchange *x, const struct slu_err *err, int64_t index)
{
	const struct api *const api = exchange_arg(x);
	const char *text = NULL;

	(void)index; /* a command has one job */
	for (unsigned i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
		if (refusals[i].rc == (int)err->code)
			text = refusals[i].text;
	if (!text)
		log_warn(api->log, "beanstalk command failed", F_STR("error", err->text));
	buf_clear(&x->out);
	bean_answer(x, text ? text : "INTERNAL_ERROR\r\n");
}

static const struct apicall_form form = { .refuse = refuse };

/* ---- Commands without an op ---- */

static void
answer_watching(const struct bean_conn *bc, struct exchange *x)
{
	buf_printf(&x->out, "WATCHING %u\r\n", bc->n_watched);
	exchange_answer(x);
}

static void
answer_using(struct bean_conn *bc, struct exchange *x)
{
	buf_printf(&x->out, "USING %s\r\n", bc->used->shown);
	exchange_answer(x);
}

/* The tube that the line names; NULL: it was refused. */
static struct tube *
open_tube(struct exchange *x)
{
	struct slu_err err = { 0 };
	int rc;
	struct tube *const tube = tubes_open(&bean_shared(x)->tubes, bean_call(x)->line.tube, &rc);

	if (tube)
		return tube;
	err.code = (enum slu_code)rc;
	refuse(x, &err, -1);
	return NULL;
}

static void
use(struct bean_conn *bc, struct exchange *x)
{
	struct tube *const tube = open_tube(x);

	if (!tube)
		return;
	atomic_fetch_add(&tube->using, 1);
	atomic_fetch_sub(&bc->used->using, 1);
	tubes_close(&bean_shared(x)->tubes, bc->used);
	bc->used = tube;
	answer_using(bc, x);
}

static unsigned
find_watched(const struct bean_conn *bc, const struct tube *tube)
{
	unsigned i = 0;

	while (i < bc->n_watched && bc->watched[i] != tube)
		i++;
	return i;
}

static void
watch(struct bean_conn *bc, struct exchange *x)
{
	struct tube *const tube = open_tube(x);
	struct tube **watched;

	if (!tube)
		return;
	if (find_watched(bc, tube) < bc->n_watched) {
		tubes_close(&bean_shared(x)->tubes, tube);
		answer_watching(bc, x);
		return;
	}
	watched = bc->n_watched < BEAN_WATCHED ? mem_realloc(bc->watched, (bc->n_watched + 1) * sizeof *watched) : NULL;
	if (!watched) {
		tubes_close(&bean_shared(x)->tubes, tube);
		bean_answer(x, "OUT_OF_MEMORY\r\n");
		return;
	}
	atomic_fetch_add(&tube->watching, 1);
	bc->watched = watched;
	bc->watched[bc->n_watched++] = tube;
	answer_watching(bc, x);
}

static void
ignore(struct bean_conn *bc, struct exchange *x)
{
	struct tubes *const tubes = &bean_shared(x)->tubes;
	struct tube *const tube = open_tube(x);
	unsigned i;

	if (!tube)
		return;
	i = find_watched(bc, tube);
	tubes_close(tubes, tube);
	if (i < bc->n_watched && bc->n_watched == 1) {
		bean_answer(x, "NOT_IGNORED\r\n");
		return;
	}
	if (i < bc->n_watched) {
		atomic_fetch_sub(&tube->watching, 1);
		memmove(&bc->watched[i], &bc->watched[i + 1], (--bc->n_watched - i) * sizeof *bc->watched);
		tubes_close(tubes, tube);
	}
	answer_watching(bc, x);
}

static void
list_watched(struct bean_conn *bc, struct exchange *x)
{
	struct buf out;

	buf_init(&out, 1 << 20);
	buf_puts(&out, "---\n");
	for (unsigned i = 0; i < bc->n_watched; i++)
		buf_printf(&out, "- %s\n", bc->watched[i]->shown);
	bean_answer_yaml(x, &out);
	buf_release(&out);
}

/* ---- All commands ---- */

static const struct {
	unsigned needs;                                        /* rights */
	bool alone;                                            /* BEAN-2 */
	void (*run)(struct apicall *a);                        /* of a command with ops */
	void (*now)(struct bean_conn *bc, struct exchange *x); /* of a command without */
} commands[BEAN_KINDS] = {
	[BEAN_PUT] = { RIGHT_WRITE, false, bean_put, NULL },
	[BEAN_USE] = { 0, false, NULL, use },
	[BEAN_RESERVE] = { RIGHT_CONSUME, false, bean_reserve, NULL },
	[BEAN_RESERVE_FOR] = { RIGHT_CONSUME, false, bean_reserve, NULL },
	[BEAN_RESERVE_JOB] = { RIGHT_CONSUME, true, bean_reserve_job, NULL },
	[BEAN_DELETE] = { RIGHT_CONSUME, false, bean_delete, NULL },
	[BEAN_RELEASE] = { RIGHT_CONSUME, false, bean_release, NULL },
	[BEAN_BURY] = { RIGHT_CONSUME, false, bean_bury, NULL },
	[BEAN_TOUCH] = { RIGHT_CONSUME, false, bean_touch, NULL },
	[BEAN_WATCH] = { 0, false, NULL, watch },
	[BEAN_IGNORE] = { 0, false, NULL, ignore },
	[BEAN_PEEK] = { RIGHT_READ, true, bean_peek, NULL },
	[BEAN_PEEK_READY] = { RIGHT_READ, true, bean_peek_tube, NULL },
	[BEAN_PEEK_DELAYED] = { RIGHT_READ, true, bean_peek_tube, NULL },
	[BEAN_PEEK_BURIED] = { RIGHT_READ, true, bean_peek_tube, NULL },
	[BEAN_KICK] = { RIGHT_ADMIN, true, bean_kick, NULL },
	[BEAN_KICK_JOB] = { RIGHT_ADMIN, true, bean_kick_job, NULL },
	[BEAN_STATS] = { RIGHT_READ, true, bean_stats, NULL },
	[BEAN_STATS_JOB] = { RIGHT_READ, true, bean_stats_job, NULL },
	[BEAN_STATS_TUBE] = { RIGHT_READ, true, bean_stats_tube, NULL },
	[BEAN_LIST] = { RIGHT_READ, true, bean_list, NULL },
	[BEAN_LIST_USED] = { 0, false, NULL, answer_using },
	[BEAN_LIST_WATCHED] = { 0, false, NULL, list_watched },
	[BEAN_PAUSE] = { RIGHT_ADMIN, true, bean_pause, NULL },
};

/* Counts connections by what they do. */
static void
note_role(struct bean_conn *bc, struct bean_shared *s, enum bean_command command)
{
	if (command == BEAN_PUT && !bc->puts) {
		bc->puts = true;
		atomic_fetch_add(&s->producers, 1);
	}
	if ((command == BEAN_RESERVE || command == BEAN_RESERVE_FOR) && !bc->reserves) {
		bc->reserves = true;
		atomic_fetch_add(&s->workers, 1);
	}
}

void
bean_run(struct bean_conn *bc, struct exchange *x)
{
	const enum bean_command command = bean_call(x)->line.command;
	const unsigned needs = commands[command].needs;
	struct api *const api = exchange_arg(x);
	struct guard_request q = { .needs = needs };
	struct slu_err err = { 0 };
	struct apicall *a;

	atomic_fetch_add(&bean_shared(x)->commands[command], 1);
	note_role(bc, bean_shared(x), command);
	if (commands[command].now) {
		commands[command].now(bc, x);
		return;
	}
	if (authorize_caller(api, x, &q, &err)) {
		refuse(x, &err, -1);
		return;
	}
	if (commands[command].alone)
		exchange_hold(x);
	a = apicall_open(api, x, &(struct apicall_terms){ &form, bean_commands[command].name, needs, false });
	if (a)
		commands[command].run(a);
}
