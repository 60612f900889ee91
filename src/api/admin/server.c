/*
 * server.c - the log level, the settings in force, and other ones.
 */
#include "api/admin/admin.h"

#include "api/audit/audit.h"
#include "api/audit/change.h"
#include "api/handler.h"
#include "base/log.h"
#include "conf/reload.h"

struct state {
	struct slice level;
	char text[16];
	unsigned was; /* the level before */
	struct slu_err err;
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
answer_level(struct apicall *a)
{
	struct json_out w;

	apicall_object(a, &w);
	json_out_str(&w, "level", slice_of(levels[log_level(a->api->log)]));
	apicall_reply_object(a, &w, 200);
}

const struct handler admin_level_get = { .run = answer_level };

/* --- set ---------------------------------------------------------------------- */

/* On a file thread: a reload may wait for the disk. */
static int
set_level(struct apicall *a)
{
	struct state *const s = a->state;

	return reload_set(a->api->reload, "log.level", s->text, "admin", &s->err);
}

static void
level_set(struct apicall *a, int rc)
{
	const struct state *const s = a->state;
	struct change_note n;

	if (change_begin(a, &n)) {
		json_out_str(&n.before, "level", slice_of(levels[s->was]));
		json_out_str(&n.after, "level", slice_of(levels[log_level(a->api->log)]));
		change_end(a, &n);
	}
	audit_action(a, "log_level", rc);
	if (rc)
		apicall_refuse(a, rc, s->err.text);
	else
		answer_level(a);
}

static void
put_level(struct apicall *a)
{
	struct state *const s = a->state;

	if (s->level.n >= sizeof s->text || !a->api->reload) {
		apicall_refuse(a, SLU_EINVAL, "level: expected debug, info, warn, error or off");
		return;
	}
	memcpy(s->text, s->level.p, s->level.n);
	s->was = log_level(a->api->log);
	apicall_job(a, set_level, level_set);
}

const struct handler admin_level_put = { put_level, sizeof(struct state), BODY_ROWS(params) };

/* --- settings ----------------------------------------------------------------- */

static int
reload_all(struct apicall *a)
{
	struct state *const s = a->state;

	return reload_now(a->api->reload, &s->err);
}

static void
all_reloaded(struct apicall *a, int rc)
{
	const struct state *const s = a->state;
	struct json_out w;

	audit_action(a, "reload", rc);
	if (apicall_refused(a, rc, s->err.text))
		return;
	apicall_object(a, &w);
	json_out_bool(&w, "reloaded", true);
	apicall_reply_object(a, &w, 200);
}

static void
reload(struct apicall *a)
{
	if (a->api->reload)
		apicall_job(a, reload_all, all_reloaded);
	else
		apicall_refuse(a, SLU_ENOTFOUND, "this server has no settings to read again");
}

const struct handler admin_reload = { reload, sizeof(struct state), .body = params, .n = 0 };

static void
config(struct apicall *a)
{
	if (!a->api->reload) {
		apicall_refuse(a, SLU_ENOTFOUND, "this server does not show its settings");
		return;
	}
	reload_show(a->api->reload, &a->x->out);
	apicall_reply(a, 200);
}

const struct handler admin_config = { .run = config };
