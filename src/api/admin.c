#include "api/admin.h"

#include "api/flat_policy.h"
#include "api/limits.h"

/* clang-format off */
const struct route admin_routes[] = {
	{ "GET",  "/v1/admin/queues",         admin_queues,       .max_body = 0 },
	{ "GET",  "/v1/admin/queue",          admin_queue,        .max_body = 0 },
	{ "POST", "/v1/admin/queue/pause",    admin_pause,        .max_body = API_SMALL_BODY },
	{ "POST", "/v1/admin/queue/resume",   admin_resume,       .max_body = API_SMALL_BODY },
	{ "POST", "/v1/admin/queue/purge",    admin_purge,        .max_body = API_SMALL_BODY },
	{ "GET",  "/v1/admin/queue/policy",   flat_policy_get,    .max_body = 0 },
	{ "PUT",  "/v1/admin/queue/policy",   flat_policy_put,    .max_body = API_SMALL_BODY },
	{ "POST", "/v1/admin/queue/policy",   flat_policy_post,   .max_body = API_SMALL_BODY },
	{ "GET",  "/v1/admin/messages",       admin_messages,     .max_body = 0 },
	{ "GET",  "/v1/admin/message",        admin_message,      .max_body = 0 },
	{ "POST", "/v1/admin/message/delete", admin_delete,       .max_body = API_SMALL_BODY },
	{ "GET",  "/v1/admin/dlq",            admin_dlq,          .max_body = 0 },
	{ "POST", "/v1/admin/dlq/redrive",    admin_dead_redrive, .max_body = API_SMALL_BODY },
	{ "POST", "/v1/admin/dlq/delete",     admin_dead_delete,  .max_body = API_SMALL_BODY },
	{ "POST", "/v1/admin/backup",         admin_backup_begin, .max_body = API_SMALL_BODY },
	{ "GET",  "/v1/admin/backup",         admin_backup_read,  .max_body = 0 },
	{ "POST", "/v1/admin/backup/end",     admin_backup_end,   .max_body = API_SMALL_BODY },
	{ "GET",  "/v1/admin/log-level",      admin_level_get,    .max_body = 0 },
	{ "PUT",  "/v1/admin/log-level",      admin_level_put,    .max_body = API_SMALL_BODY },
	{ "GET",  "/v1/admin/config",         admin_config,       .max_body = 0 },
};
/* clang-format on */

const unsigned admin_n_routes = sizeof admin_routes / sizeof admin_routes[0];
