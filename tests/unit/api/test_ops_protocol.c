/*
 * A protocol of one page that runs ops, in a whole server: identity, rights and refusals without
 * HTTP. No other file knows it. A line is a request:
 *
 *      <token> put <namespace> <queue> <text>   -> OK
 *      <token> take <namespace> <queue>         -> OK <text>, or NONE
 *      errors                                   -> NO <name> <text>
 *
 * A caller without a token writes - in its place.
 */
#include "nodekit.h"
#include "test.h"

#include "api/apicall.h"
#include "api/authorize.h"
#include "auth/guard.h"
#include "auth/mint.h"
#include "base/mem.h"
#include "engine/engine.h"
#include "net/front.h"
#include "net/protocol.h"

/* --- the protocol ------------------------------------------------------------------- */

enum {
	LINE_BYTES = 4096
};

struct ops_conn {
	struct conn c;
	struct buf line; /* that is not whole */
};

struct request {
	char space[NAME_TEXT], queue[NAME_TEXT]; /* folded */
	struct slice text;
	struct op_put put;
};

static void
refuse(struct exchange *x, const struct slu_err *err, int64_t index)
{
	(void)index; /* a request has one message */
	buf_clear(&x->out);
	buf_printf(&x->out, "NO %s %s\n", slu_err_row((int)err->code)->flat_name, err->text);
	exchange_answer(x);
}

static const struct apicall_form form = { .refuse = refuse };

static void
answer_put(struct apicall *a)
{
	if (apicall_failed(a))
		return;
	buf_puts(&a->x->out, "OK\n");
	exchange_answer(a->x);
}

/* The memory engine never waits. */
static int
write_text(struct apicall *a, struct slu_err *err)
{
	const struct op_ref *const record = &a->op.rows[0].record;
	char *const bytes = arena_alloc(&a->memory, record->size);
	struct message m;
	int rc = bytes ? 0 : SLU_ENOMEM;

	if (!rc)
		rc = engine_read(a->op.engine, record, 0, record->size, bytes, false, err);
	if (!rc)
		rc = message_decode((struct slice){ bytes, record->size }, &m, err);
	if (!rc)
		buf_printf(&a->x->out, "OK %.*s\n", (int)m.payload.n, m.payload.p);
	return rc;
}

static void
answer_take(struct apicall *a)
{
	struct slu_err err = { 0 };
	int rc = 0;

	if (apicall_failed(a))
		return;
	if (a->op.n_rows == 0)
		buf_puts(&a->x->out, "NONE\n");
	else
		rc = write_text(a, &err);
	op_unpin(&a->op);
	if (rc)
		apicall_refuse(a, rc, err.text);
	else
		exchange_answer(a->x);
}

static void
put(struct apicall *a, struct request *r)
{
	r->put.m.payload = r->text;
	apicall_op(a, &a->op, OP_ENQUEUE, slice_of(r->space), slice_of(r->queue));
	a->op.puts = &r->put;
	a->op.n_puts = 1;
	apicall_run(a, answer_put);
}

static void
take(struct apicall *a, struct request *r)
{
	apicall_op(a, &a->op, OP_CLAIM, slice_of(r->space), slice_of(r->queue));
	apicall_run_rows(a, 1, answer_take);
}

static const struct command {
	const char *name;
	unsigned needs;
	void (*run)(struct apicall *a, struct request *r);
} commands[] = {
	{ "put", RIGHT_WRITE, put },
	{ "take", RIGHT_CONSUME, take },
};

static struct slice
next_word(struct slice *rest)
{
	const char *const end = memchr(rest->p, ' ', rest->n);
	const size_t n = end ? (size_t)(end - rest->p) : rest->n;
	const struct slice word = { rest->p, n };

	*rest = (struct slice){ rest->p + n + !!end, rest->n - n - !!end };
	return word;
}

static const struct command *
command_of(struct slice name)
{
	EACH(i, commands)
		if (slice_eq(name, slice_of(commands[i].name)))
			return &commands[i];
	return NULL;
}

/* Who calls: the guard reads a token as HTTP sends it. */
static int
identify(struct api *api, struct exchange *x, struct slice token, unsigned needs, struct slu_err *err)
{
	struct guard_request q = { .needs = needs };
	char text[LINE_BYTES];

	if (!slice_eq(token, SLICE("-"))) {
		(void)snprintf(text, sizeof text, "Bearer %.*s", (int)token.n, token.p); /* a line fits */
		q.authorization = slice_of(text);
	}
	return authorize_caller(api, x, &q, err);
}

static void
run(struct exchange *x, struct slice line)
{
	struct api *const api = exchange_arg(x);
	const struct slice token = next_word(&line);
	const struct command *const cmd = command_of(next_word(&line));
	struct slu_err err = { 0 };
	struct apicall *a;
	struct request *r;
	int rc = cmd ? identify(api, x, token, cmd->needs, &err) : slu_fail(&err, SLU_EINVAL, "what?");

	if (rc) {
		refuse(x, &err, -1);
		return;
	}
	a = apicall_open(api, x, &(struct apicall_terms){ &form, cmd->name, cmd->needs, false });
	r = a ? apicall_state(a, sizeof *r) : NULL;
	if (!r)
		return;
	rc = name_fold(next_word(&line), "namespace", r->space, &err);
	if (!rc)
		rc = name_fold(next_word(&line), "queue", r->queue, &err);
	r->text = arena_copy(&a->memory, line); /* APICALL-1 */
	if (rc)
		apicall_refuse(a, rc, err.text);
	else
		cmd->run(a, r);
}

static int
ops_open(void **shared, const void *own, const struct server_conf *conf)
{
	(void)own;
	(void)conf;
	*shared = NULL; /* all is in the connection */
	return 0;
}

static int
ops_conn_open(struct conn *c)
{
	buf_init(&CONTAINER(c, struct ops_conn, c)->line, LINE_BYTES);
	return 0;
}

static void
ops_conn_close(struct conn *c)
{
	buf_release(&CONTAINER(c, struct ops_conn, c)->line);
}

static void
ops_parse(struct conn *c)
{
	struct buf *const line = &CONTAINER(c, struct ops_conn, c)->line;

	while (c->rest.n > 0 && conn_may_begin(c)) {
		const char *const end = memchr(c->rest.p, '\n', c->rest.n);
		const size_t n = end ? (size_t)(end - c->rest.p) : c->rest.n;
		struct exchange *const x = end ? conn_add(c) : NULL;

		buf_put(line, c->rest.p, n);
		c->begun = !end;
		c->rest = (struct slice){ c->rest.p + n + !!end, c->rest.n - n - !!end };
		if (!x)
			continue;
		x->arrived = true;
		x->state = EXCHANGE_RUNNING;
		run(x, buf_slice(line));
		buf_clear(line);
	}
}

static void
ops_refuse(struct conn *c, enum conn_refusal why)
{
	(void)why;
	conn_close(c);
}

static void
ops_format(struct conn *c, struct exchange *x, bool ends)
{
	(void)c;
	(void)ends;
	x->has_body = true;
}

static const struct protocol ops_protocol = {
	.name = "ops",
	.conn_size = sizeof(struct ops_conn),
	.exchange_size = sizeof(struct exchange),
	.open = ops_open,
	.conn_open = ops_conn_open,
	.conn_close = ops_conn_close,
	.parse = ops_parse,
	.refuse = ops_refuse,
	.format = ops_format,
};

/* --- tests -------------------------------------------------------------------------- */

#define SECRET "a secret of at least thirty-two bytes"

static struct nodekit kit;

static void
start(const char *secret)
{
	nodekit_init(&kit, NODEKIT_MEMORY);
	kit.protocol = &ops_protocol;
	if (secret) {
		mem_free(kit.conf.auth_secret);
		kit.conf.auth_secret = mem_strdup(secret);
	}
	CHECK_EQ(0, nodekit_start(&kit), kit.err.text);
}

static void
stop(void)
{
	CHECK_EQ(0, nodekit_stop(&kit));
	nodekit_release(&kit);
}

static const char *
ask(const char *token, const char *request)
{
	static char answer[LINE_BYTES];
	char line[LINE_BYTES];
	struct kit_caller w;

	(void)snprintf(line, sizeof line, "%s %s\n", token, request);
	caller_open(&w, &kit);
	caller_send(&w, slice_of(line));
	nodekit_settle(&kit);
	(void)snprintf(answer, sizeof answer, "%s", w.got.p ? w.got.p : "");
	caller_release(&w);
	return answer;
}

static const char *
token_for(const char *scope)
{
	static char text[LINE_BYTES];
	const struct mint m = { .sub = "ada", .scope = scope, .now = clock_wall(&clock_system), .ttl = SLU_HOUR };
	struct key key = { 0 };
	struct buf out;

	buf_init(&out, LINE_BYTES);
	CHECK_EQ(0, key_secret(&key, JWT_HS256, SLICE(SECRET), NULL));
	CHECK_EQ(0, mint_token(&m, &key, &out, NULL));
	(void)snprintf(text, sizeof text, "%.*s", (int)out.n, out.p);
	buf_release(&out);
	key_release(&key);
	return text;
}

TEST(a_protocol_that_is_not_http_runs_ops)
{
	start(NULL);
	CHECK_STR("OK\n", ask("-", "put acme mail hello world"));
	CHECK_STR("OK hello world\n", ask("-", "take acme mail"));
	CHECK_STR("NONE\n", ask("-", "take acme mail"));
	CHECK_CONTAINS("NO invalid invalid queue ", ask("-", "put acme a/b text"));
	CHECK_CONTAINS("NO invalid what?", ask("-", "go acme mail"));
	stop();
}

TEST(its_callers_need_a_token_and_the_rights_of_the_command)
{
	start(SECRET);
	CHECK_CONTAINS("NO unauthorized ", ask("-", "put acme mail hello"));
	CHECK_CONTAINS("NO unauthorized ", ask("nonsense", "put acme mail hello"));
	CHECK_CONTAINS("NO forbidden needs the scope acme:write", ask(token_for("acme:consume"), "put acme mail hello"));
	CHECK_STR("OK\n", ask(token_for("acme:write"), "put acme mail hello"));
	CHECK_CONTAINS("NO forbidden needs the scope other:consume", ask(token_for("acme:consume"), "take other mail"));
	CHECK_STR("OK hello\n", ask(token_for("acme:consume"), "take acme mail"));
	stop();
}
