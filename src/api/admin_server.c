/*
 * admin_server.c - the log level, the settings in force, and other ones.
 */
#include "api/admin.h"

#include "api/ask.h"
#include "base/log.h"
#include "conf/reload.h"

struct state {
	struct slice level;
	char text[16];

	uv_work_t work;
	struct ask *ask;
	struct slu_err err;
	int rc;
};

static const struct param params[] = {
	PARAM(word, struct state, level, .required = true),
};

static const char *const levels[] = {
	[SLU_LOG_DEBUG] = "debug",
	[SLU_LOG_INFO] = "info",
	[SLU_LOG_WARN] = "warn",
	[SLU_LOG_ERROR] = "error",
	[SLU_LOG_OFF] = "off",
};

static void
answer_level(struct ask *a)
{
	struct json_out w;

	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	json_out_str(&w, "level", slice_of(levels[log_level(a->api->log)]));
	json_out_close(&w);
	ask_reply(a, 200);
}

void
admin_level_get(struct call *c, void *api)
{
	struct ask *const a = ask_new(api, c);

	if (a)
		answer_level(a);
}

/* --- set ---------------------------------------------------------------------- */

/* On a file thread: a reload may wait for the disk. */
static void
set_level(uv_work_t *work)
{
	struct state *const s = work->data;

	s->rc = reload_set(s->ask->api->reload, "log.level", s->text, "admin", &s->err);
}

static void
level_set(uv_work_t *work, int status)
{
	struct state *const s = work->data;

	(void)status; /* nobody cancels it */
	if (s->rc)
		ask_refuse(s->ask, s->rc, s->err.text);
	else
		answer_level(s->ask);
}

void
admin_level_put(struct call *c, void *arg)
{
	struct api *const api = arg;
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;

	if (!s || !ask_body(a, params, sizeof params / sizeof params[0], s))
		return;
	if (s->level.n >= sizeof s->text || !api->reload) {
		ask_refuse(a, SLU_EINVAL, "level: expected debug, info, warn, error or off");
		return;
	}
	memcpy(s->text, s->level.p, s->level.n);
	s->ask = a;
	s->work.data = s;
	if (uv_queue_work(loop_uv(call_loop(c)), &s->work, set_level, level_set))
		ask_refuse(a, SLU_ENOMEM, NULL);
}

/* --- settings ----------------------------------------------------------------- */

static void
reload_all(uv_work_t *work)
{
	struct state *const s = work->data;

	s->rc = reload_now(s->ask->api->reload, &s->err);
}

static void
all_reloaded(uv_work_t *work, int status)
{
	struct state *const s = work->data;
	struct json_out w;

	(void)status; /* nobody cancels it */
	if (s->rc) {
		ask_refuse(s->ask, s->rc, s->err.text);
		return;
	}
	json_out_init(&w, &s->ask->call->out);
	json_out_object(&w, NULL);
	json_out_bool(&w, "reloaded", true);
	json_out_close(&w);
	ask_reply(s->ask, 200);
}

void
admin_reload(struct call *c, void *arg)
{
	struct api *const api = arg;
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;

	if (!s || !ask_body(a, NULL, 0, s))
		return;
	if (!api->reload) {
		ask_refuse(a, SLU_ENOTFOUND, "this server has no settings to read again");
		return;
	}
	s->ask = a;
	s->work.data = s;
	if (uv_queue_work(loop_uv(call_loop(c)), &s->work, reload_all, all_reloaded))
		ask_refuse(a, SLU_ENOMEM, NULL);
}

void
admin_config(struct call *c, void *arg)
{
	struct api *const api = arg;
	struct ask *const a = ask_new(api, c);

	if (!a)
		return;
	if (!api->reload) {
		ask_refuse(a, SLU_ENOTFOUND, "this server does not tell its settings");
		return;
	}
	reload_show(api->reload, &c->out);
	ask_reply(a, 200);
}
