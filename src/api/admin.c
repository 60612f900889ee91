#include "api/admin.h"

#include "api/flat_policy.h"
#include "api/limits.h"
#include "auth/guard.h"

/* clang-format off */
const struct route admin_routes[] = {
	{ "GET",  "/v1/admin/queues",         admin_queues,       .query = QUERY_READ, .needs = NEEDS_VIEW, .vital = true },
	{ "DELETE", "/v1/admin/queues/",      admin_forget,       .query = QUERY_READ, .needs = RIGHT_ADMIN, .below = true, .vital = true },
	{ "GET",  "/v1/admin/queue",          admin_queue,        .query = QUERY_READ, .needs = NEEDS_VIEW, .vital = true },
	{ "POST", "/v1/admin/queue/pause",    admin_pause,        .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/queue/resume",   admin_resume,       .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/queue/purge",    admin_purge,        .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "GET",  "/v1/admin/queue/policy",   flat_policy_get,    .query = QUERY_READ, .needs = NEEDS_VIEW, .vital = true },
	{ "PUT",  "/v1/admin/queue/policy",   flat_policy_put,    .query = QUERY_READ, .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/queue/policy",   flat_policy_post,   .query = QUERY_READ, .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "GET",  "/v1/admin/messages",       admin_messages,     .query = QUERY_READ, .needs = NEEDS_VIEW, .alone = true, .vital = true },
	{ "GET",  "/v1/admin/message",        admin_message,      .query = QUERY_READ, .needs = NEEDS_VIEW, .alone = true, .vital = true },
	{ "POST", "/v1/admin/message/delete", admin_delete,       .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "GET",  "/v1/admin/dlq",            admin_dlq,          .query = QUERY_READ, .needs = NEEDS_VIEW, .alone = true, .vital = true },
	{ "POST", "/v1/admin/dlq/redrive",    admin_dead_redrive, .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/dlq/delete",     admin_dead_delete,  .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/backup",         admin_backup_begin, .needs = NEEDS_SERVER, .max_body = API_SMALL_BODY, .vital = true },
	{ "GET",  "/v1/admin/backup",         admin_backup_read,  .query = QUERY_READ, .needs = NEEDS_SERVER, .alone = true, .vital = true },
	{ "POST", "/v1/admin/backup/end",     admin_backup_end,   .needs = NEEDS_SERVER, .max_body = API_SMALL_BODY, .vital = true },
	{ "GET",  "/v1/admin/log-level",      admin_level_get,    .needs = NEEDS_SERVER, .vital = true },
	{ "PUT",  "/v1/admin/log-level",      admin_level_put,    .needs = NEEDS_SERVER, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/shards/move",    admin_move,         .needs = NEEDS_SERVER, .max_body = API_SMALL_BODY, .vital = true },
	{ "GET",  "/v1/admin/config",         admin_config,       .needs = NEEDS_SERVER, .vital = true },
	{ "POST", "/v1/admin/reload",         admin_reload,       .needs = NEEDS_SERVER, .max_body = API_SMALL_BODY, .vital = true },
};
/* clang-format on */

const unsigned admin_n_routes = sizeof admin_routes / sizeof admin_routes[0];
