#include "api/flat.h"

#include "api/flat_claim.h"
#include "api/flat_enqueue.h"
#include "api/flat_policy.h"
#include "api/flat_settle.h"
#include "api/limits.h"
#include "api/plain.h"

/* clang-format off */
const struct route flat_routes[] = {
	{ "POST", "/enqueue",     flat_enqueue,     .max_body = API_BODY_MAX },
	{ "GET",  "/dequeue",     flat_claim,       .no_head = true },
	{ "POST", "/dequeue",     flat_claim,       .max_body = API_SMALL_BODY },
	{ "POST", "/ack",         flat_ack,         .max_body = API_BODY_MAX },
	{ "POST", "/nack",        flat_nack,        .max_body = API_BODY_MAX },
	{ "POST", "/extend",      flat_extend,      .max_body = API_BODY_MAX },
	{ "GET",  "/result",      flat_result,      .max_body = 0 },
	{ "GET",  "/stats",       flat_stats,       .max_body = 0 },
	{ "GET",  "/peek",        flat_peek,        .max_body = 0 },
	{ "GET",  "/topics",      flat_topics,      .max_body = 0 },
	{ "GET",  "/dlq",         flat_dlq,         .max_body = 0 },
	{ "POST", "/dlq/redrive", flat_redrive,     .max_body = API_SMALL_BODY },
	{ "POST", "/dlq/delete",  flat_delete,      .max_body = API_SMALL_BODY },
	{ "GET",  "/policy",      flat_policy_get,  .max_body = 0 },
	{ "PUT",  "/policy",      flat_policy_put,  .max_body = API_SMALL_BODY },
	{ "POST", "/policy",      flat_policy_post, .max_body = API_SMALL_BODY },
	{ "GET",  "/healthz",     plain_healthz,    .max_body = 0 },
	{ "GET",  "/readyz",      plain_readyz,     .max_body = 0 },
	{ "GET",  "/metrics",     plain_metrics,    .max_body = 0 },
};
/* clang-format on */

const unsigned flat_n_routes = sizeof flat_routes / sizeof flat_routes[0];
