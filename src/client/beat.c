#include "client/beat.h"

#include "base/clock.h"
#include "base/json/json.h"
#include "base/json/json_out.h"
#include "base/json/json_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

void
beat_instance(char out[static BEAT_INSTANCE])
{
	(void)snprintf(out, BEAT_INSTANCE, "%ld-%" PRIx64, (long)getpid(), (uint64_t)clock_wall(&clock_system)); /* fits */
}

/* A part of the field ends at a semicolon. */
static const char *
plain(const char *text, char *out, size_t size)
{
	size_t n = 0;

	for (; text[n] && n + 1 < size; n++)
		out[n] = text[n] > ' ' && text[n] <= '~' && text[n] != ';' ? text[n] : '_';
	out[n] = '\0';
	return out;
}

static void
write_beat(struct client_request *a, const struct client_beat *b)
{
	char name[128], host[128], value[480];
	struct utsname machine;
	struct json_out w;

	if (uname(&machine))
		machine.nodename[0] = '\0';
	(void)snprintf(value, sizeof value, "name=%s; host=%s; version=%s; instance=%s; slots=%u; used=%u; lost=%u; late=%u%s",
		       plain(b->name, name, sizeof name), plain(machine.nodename, host, sizeof host), SLU_VERSION_TEXT,
		       b->instance, b->slots, b->used, b->lost, b->late, b->ends ? "; ends=1" : ""); /* fits */
	client_request_field(a, "Sluice-Worker", value);
	json_out_open(&w, &a->body);
	json_out_str(&w, "namespace", slice_of(b->space ? b->space : a->space));
	if (b->queue)
		json_out_str(&w, "queue", slice_of(b->queue));
	json_out_finish(&w);
}

struct answer_row {
	struct slice state;
};

static const struct json_field fields[] = {
	JSON_FIELD(text, struct answer_row, state),
};

static enum beat_asked
read_answer(struct slice body)
{
	struct answer_row row = { 0 };
	char room[64];
	struct json r;

	json_init(&r, body, JSON_DEPTH);
	json_room(&r, room, sizeof room);
	json_fields(&r, fields, COUNT(fields), JSON_LENIENT, &row);
	if (json_end(&r, NULL))
		return BEAT_NOTHING;
	if (slice_eq(row.state, SLICE("quiet")))
		return BEAT_QUIET;
	return slice_eq(row.state, SLICE("stop")) ? BEAT_STOP : BEAT_RUNNING;
}

enum beat_asked
client_beat(struct slu_client *c, const struct client_beat *b, int cancel_fd, slu_time timeout)
{
	const struct slu_call call = {
		SLU_OPTIONS_INIT(struct slu_call),
		.timeout = timeout,
		.cancel_fd = cancel_fd > 0 ? cancel_fd : 0,
	};
	enum beat_asked asked = BEAT_NOTHING;
	struct client_request a;
	int rc;

	client_request_init(&a, c, &call, "POST", "/worker");
	a.repeatable = true;
	a.patience = -1;
	write_beat(&a, b);
	rc = client_request_run(&a, NULL);
	if (!rc)
		asked = read_answer(client_request_body(&a));
	else if (a.status == 404 || a.status == 405 || a.status == 403 || a.status == 401)
		asked = BEAT_UNKNOWN;
	client_request_release(&a);
	return asked;
}
