#include "api/flat.h"

#include "api/flat_claim.h"
#include "api/flat_enqueue.h"
#include "api/flat_policy.h"
#include "api/flat_settle.h"
#include "api/home.h"
#include "api/limits.h"
#include "api/plain.h"
#include "api/scrape.h"
#include "auth/guard.h"

/* clang-format off */
const struct route flat_routes[] = {
	{ "POST", "/enqueue",     flat_enqueue,     .query = QUERY_READ, .needs = RIGHT_WRITE, .max_body = API_BODY_MAX },
	{ "GET",  "/dequeue",     flat_claim,       .query = QUERY_READ, .needs = RIGHT_WRITE, .no_head = true, .alone = true },
	{ "POST", "/dequeue",     flat_claim,       .query = QUERY_READ, .needs = RIGHT_WRITE, .max_body = API_SMALL_BODY, .alone = true },
	{ "POST", "/ack",         flat_ack,         .needs = RIGHT_WRITE, .max_body = API_BODY_MAX, .settles = true },
	{ "POST", "/nack",        flat_nack,        .needs = RIGHT_WRITE, .max_body = API_BODY_MAX, .settles = true },
	{ "POST", "/extend",      flat_extend,      .needs = RIGHT_WRITE, .max_body = API_BODY_MAX, .settles = true },
	{ "GET",  "/result",      flat_result,      .query = QUERY_READ, .needs = RIGHT_READ, .alone = true },
	{ "GET",  "/stats",       flat_stats,       .query = QUERY_READ, .needs = RIGHT_READ },
	{ "GET",  "/peek",        flat_peek,        .query = QUERY_READ, .needs = RIGHT_READ, .alone = true },
	{ "GET",  "/topics",      flat_topics,      .query = QUERY_READ, .needs = RIGHT_READ },
	{ "GET",  "/dlq",         flat_dlq,         .query = QUERY_READ, .needs = RIGHT_READ, .alone = true },
	{ "POST", "/dlq/redrive", flat_redrive,     .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY },
	{ "POST", "/dlq/delete",  flat_delete,      .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY },
	{ "GET",  "/policy",      flat_policy_get,  .query = QUERY_READ, .needs = RIGHT_READ },
	{ "PUT",  "/policy",      flat_policy_put,  .query = QUERY_READ, .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY },
	{ "POST", "/policy",      flat_policy_post, .query = QUERY_READ, .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY },
	{ "GET",  "/",            home,             .query = QUERY_ANY, .needs = NEEDS_NOTHING, .early = true },
	{ "GET",  "/healthz",     plain_healthz,    .query = QUERY_ANY, .needs = NEEDS_NOTHING, .early = true, .vital = true },
	{ "GET",  "/readyz",      plain_readyz,     .query = QUERY_ANY, .needs = NEEDS_NOTHING, .early = true, .vital = true },
	{ "GET",  "/metrics",     scrape_metrics,   .needs = NEEDS_METRICS, .vital = true },
	{ "GET",  "/openapi.json", plain_openapi,   .needs = NEEDS_NOTHING, .early = true },
};
/* clang-format on */

const unsigned flat_n_routes = sizeof flat_routes / sizeof flat_routes[0];
