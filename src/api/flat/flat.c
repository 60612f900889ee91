#include "api/flat/flat.h"

#include "api/api.h"
#include "api/console/console.h"
#include "api/flat/error.h"
#include "api/health.h"
#include "api/home.h"
#include "api/limits.h"
#include "api/scrape.h"
#include "api/upgrade/upgrade.h"
#include "auth/guard.h"

/* clang-format off */
static const struct route routes[] = {
	{ "POST", "/enqueue",     .handler = &flat_enqueue,     .query = QUERY_READ, .needs = RIGHT_WRITE, .max_body = API_BODY_MAX, .framed = true },
	{ "GET",  "/dequeue",     .handler = &flat_claim,       .query = QUERY_READ, .needs = RIGHT_WRITE, .no_head = true, .alone = true, .worker = true },
	{ "POST", "/dequeue",     .handler = &flat_claim,       .query = QUERY_READ, .needs = RIGHT_WRITE, .max_body = API_SMALL_BODY, .alone = true, .worker = true, .framed = true },
	{ "POST", "/ack",         .handler = &flat_ack,         .needs = RIGHT_WRITE, .max_body = API_BODY_MAX, .settles = true, .framed = true },
	{ "POST", "/nack",        .handler = &flat_nack,        .needs = RIGHT_WRITE, .max_body = API_BODY_MAX, .settles = true, .framed = true },
	{ "POST", "/extend",      .handler = &flat_extend,      .needs = RIGHT_WRITE, .max_body = API_BODY_MAX, .settles = true, .worker = true, .framed = true },
	{ "POST", "/worker",      .handler = &flat_worker,      .needs = RIGHT_CONSUME, .max_body = API_SMALL_BODY, .worker = true, .framed = true },
	{ "GET",  "/stream",      upgrade_enter,    .query = QUERY_NONE, .needs = NEEDS_ANY },
	{ "GET",  "/result",      .handler = &flat_result,      .query = QUERY_READ, .needs = RIGHT_READ, .alone = true },
	{ "GET",  "/why",         .handler = &flat_why,         .query = QUERY_READ, .needs = RIGHT_READ, .alone = true },
	{ "POST", "/batches",     .handler = &flat_batch_create, .needs = RIGHT_WRITE, .max_body = API_SMALL_BODY },
	{ "GET",  "/batches",     .handler = &flat_batches,     .query = QUERY_READ, .needs = RIGHT_READ },
	{ "POST", "/batches/close", .handler = &flat_batch_close, .needs = RIGHT_WRITE, .max_body = API_SMALL_BODY },
	{ "GET",  "/batch",       .handler = &flat_batch,       .query = QUERY_READ, .needs = RIGHT_READ },
	{ "GET",  "/stats",       .handler = &flat_stats,       .query = QUERY_READ, .needs = RIGHT_READ },
	{ "GET",  "/peek",        .handler = &flat_peek,        .query = QUERY_READ, .needs = RIGHT_READ, .alone = true },
	{ "GET",  "/topics",      .handler = &flat_topics,      .query = QUERY_READ, .needs = RIGHT_READ },
	{ "GET",  "/dlq",         .handler = &flat_dlq,         .query = QUERY_READ, .needs = RIGHT_READ, .alone = true },
	{ "POST", "/dlq/redrive", .handler = &flat_redrive,     .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY },
	{ "POST", "/dlq/delete",  .handler = &flat_delete,      .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY },
	{ "GET",  "/policy",      .handler = &flat_policy_get,  .query = QUERY_READ, .needs = RIGHT_READ },
	{ "PUT",  "/policy",      .handler = &flat_policy_put,  .query = QUERY_READ, .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY },
	{ "POST", "/policy",      .handler = &flat_policy_post, .query = QUERY_READ, .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY },
	{ "GET",  "/",            home,             .query = QUERY_ANY, .needs = NEEDS_NOTHING, .early = true },
	{ "GET",  "/healthz",     health_healthz,    .query = QUERY_ANY, .needs = NEEDS_NOTHING, .early = true, .vital = true },
	{ "GET",  "/readyz",      health_readyz,     .query = QUERY_ANY, .needs = NEEDS_NOTHING, .early = true, .vital = true },
	{ "GET",  "/metrics",     scrape_metrics,   .needs = NEEDS_METRICS, .vital = true },
	{ "GET",  "/console",     console_enter,    .needs = NEEDS_NOTHING, .early = true },
	{ "GET",  "/console/",    console_file,     .needs = NEEDS_NOTHING, .below = true, .early = true, .vital = true },
	{ "GET",  "/openapi.json", health_openapi,   .needs = NEEDS_NOTHING, .early = true },
};
/* clang-format on */

const struct dialect flat_dialect = {
	.name = "flat",
	.prefix = "/",
	.routes = routes,
	.n_routes = COUNT(routes),
	.type = api_json,
	.begin = flat_begin,
	.refuse = flat_refuse,
	.describe = flat_describe,
};
