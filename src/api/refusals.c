#include "api/refusals.h"

#include "api/api.h"
#include "api/audit/audit.h"
#include "broker/broker.h"
#include "engine/op.h"
#include "net/exchange.h"

const struct episode_kind refusals_of_callers = {
	.begins = "callers refused",
	.ends = "callers refused no more",
	.place = "address",
};

static const struct episode_kind disk_full = {
	.begins = "disk full: new messages are refused",
	.ends = "disk full no more",
	.place = "shard",
};

static const struct episode_kind no_memory = {
	.begins = "out of memory: requests are refused",
	.ends = "out of memory no more",
	.place = "shard",
};

static const struct metric rows[] = {
	{ "auth_refused_total", METRIC_COUNTER, "requests answered 401 or 403, by reason" },
};

int
refusals_init(struct api *api)
{
	int rc;

	episodes_init(&api->episodes, api->log, api->clock);
	api->episodes.tell = audit_episode;
	api->episodes.arg = api;
	rc = metrics_init(&api->refused, "sluice_", rows, 1, "reason", REFUSALS_COUNT);
	for (unsigned i = 0; i < REFUSALS_COUNT && !rc; i++)
		rc = metrics_name(&api->refused, i, refusal_name((enum refusal)i));
	return rc;
}

void
refusals_release(struct api *api)
{
	metrics_release(&api->refused);
	episodes_release(&api->episodes);
}

void
refusals_caller(struct api *api, const struct exchange *x, enum refusal reason, const char *why)
{
	char address[EXCHANGE_ADDRESS];

	exchange_address(x, address);
	metrics_add(&api->refused, 0, reason, 1);
	episode_note(&api->episodes, &refusals_of_callers, refusal_name(reason), address, why);
}

static const struct episode_kind *
kind_of(int rc)
{
	if (rc == SLU_EFULL)
		return &disk_full;
	return rc == SLU_ENOMEM ? &no_memory : NULL;
}

bool
refusals_op(struct api *api, const struct op *op)
{
	const struct episode_kind *const kind = kind_of(op->rc);

	if (kind)
		episode_note(&api->episodes, kind, NULL, broker_shard_name(api->broker, op->route.lane),
			     op->err.code == (enum slu_code)op->rc ? op->err.text : NULL);
	return kind != NULL;
}

void
refusals_request(struct api *api, int rc, const char *reason)
{
	const struct episode_kind *const kind = kind_of(rc);

	if (kind)
		episode_note(&api->episodes, kind, reason, "requests", NULL);
}

void
refusals_metrics(const struct api *api, struct buf *out)
{
	metrics_write(&api->refused, out);
}
