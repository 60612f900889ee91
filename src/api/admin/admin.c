#include "api/admin/admin.h"

#include "api/api.h"
#include "api/console/console.h"
#include "api/flat/error.h"
#include "api/flat/flat.h"
#include "api/limits.h"
#include "auth/guard.h"

/* clang-format off */
static const struct route routes[] = {
	{ "GET",  "/v1/admin/queues",         .handler = &admin_queues,       .query = QUERY_READ, .needs = NEEDS_VIEW, .vital = true },
	{ "DELETE", "/v1/admin/queues/",      .handler = &admin_forget,       .query = QUERY_READ, .needs = RIGHT_ADMIN, .below = true, .vital = true },
	{ "GET",  "/v1/admin/queue",          .handler = &admin_queue,        .query = QUERY_READ, .needs = NEEDS_VIEW, .vital = true },
	{ "POST", "/v1/admin/queue/pause",    .handler = &admin_pause,        .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/queue/resume",   .handler = &admin_resume,       .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/queue/purge",    .handler = &admin_purge,        .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "GET",  "/v1/admin/queue/limits",   .handler = &admin_limits,       .query = QUERY_READ, .needs = NEEDS_VIEW, .vital = true },
	{ "POST", "/v1/admin/queue/breaker",  .handler = &admin_breaker,      .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/queue/hold",     .handler = &admin_hold,         .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "GET",  "/v1/admin/queue/policy",   .handler = &flat_policy_get,    .query = QUERY_READ, .needs = NEEDS_VIEW, .vital = true },
	{ "PUT",  "/v1/admin/queue/policy",   .handler = &flat_policy_put,    .query = QUERY_READ, .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/queue/policy",   .handler = &flat_policy_post,   .query = QUERY_READ, .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "GET",  "/v1/admin/messages",       .handler = &admin_messages,     .query = QUERY_READ, .needs = NEEDS_VIEW, .alone = true, .vital = true },
	{ "GET",  "/v1/admin/search",         .handler = &admin_search,       .query = QUERY_READ, .needs = NEEDS_VIEW, .alone = true, .vital = true },
	{ "GET",  "/v1/admin/message",        .handler = &admin_message,      .query = QUERY_READ, .needs = NEEDS_VIEW, .alone = true, .vital = true },
	{ "POST", "/v1/admin/message/delete", .handler = &admin_delete,       .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/message/cancel", .handler = &admin_cancel,       .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/message/run",    .handler = &admin_message_run,  .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/message/delay",  .handler = &admin_message_delay, .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/message/priority", .handler = &admin_message_priority, .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/message/move",   .handler = &admin_message_move, .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/message/edit",   .handler = &admin_message_edit, .needs = RIGHT_ADMIN, .max_body = 2 << 20, .vital = true },
	{ "GET",  "/v1/admin/dlq",            .handler = &admin_dlq,          .query = QUERY_READ, .needs = NEEDS_VIEW, .alone = true, .vital = true },
	{ "GET",  "/v1/admin/dlq/groups",     .handler = &admin_dlq_groups,   .query = QUERY_READ, .needs = NEEDS_VIEW, .alone = true, .vital = true },
	{ "POST", "/v1/admin/dlq/redrive",    admin_dead_redrive, .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/dlq/delete",     admin_dead_delete,  .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/backup",         .handler = &admin_backup_begin, .needs = NEEDS_SERVER, .max_body = API_SMALL_BODY, .vital = true },
	{ "GET",  "/v1/admin/backup",         .handler = &admin_backup_read,  .query = QUERY_READ, .needs = NEEDS_SERVER, .alone = true, .vital = true },
	{ "POST", "/v1/admin/backup/end",     .handler = &admin_backup_end,   .needs = NEEDS_SERVER, .max_body = API_SMALL_BODY, .vital = true },
	{ "GET",  "/v1/admin/log-level",      .handler = &admin_level_get,    .needs = NEEDS_SERVER, .vital = true },
	{ "PUT",  "/v1/admin/log-level",      .handler = &admin_level_put,    .needs = NEEDS_SERVER, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/shards/move",    .handler = &admin_move,         .needs = NEEDS_SERVER, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/intake",         .handler = &admin_intake,       .needs = NEEDS_SERVER, .max_body = API_BODY_MAX },
	{ "POST", "/v1/admin/intake/places",  .handler = &admin_intake_places, .needs = NEEDS_SERVER, .max_body = API_BODY_MAX },
	{ "GET",  "/v1/admin/schedules",      .handler = &admin_schedules,    .query = QUERY_READ, .needs = NEEDS_VIEW, .alone = true, .vital = true },
	{ "GET",  "/v1/admin/schedule",       .handler = &admin_schedule,     .query = QUERY_READ, .needs = NEEDS_VIEW, .vital = true },
	{ "PUT",  "/v1/admin/schedule",       .handler = &admin_schedule_set, .needs = RIGHT_ADMIN, .max_body = 2 * API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/schedule/delete", .handler = &admin_schedule_delete, .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/schedule/pause", .handler = &admin_schedule_pause, .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/schedule/resume", .handler = &admin_schedule_resume, .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/schedule/run",   .handler = &admin_schedule_run, .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "GET",  "/v1/admin/tasks",          .handler = &admin_tasks,        .query = QUERY_READ, .needs = NEEDS_VIEW, .vital = true },
	{ "GET",  "/v1/admin/task",           .handler = &admin_task,         .query = QUERY_READ, .needs = NEEDS_VIEW, .vital = true },
	{ "POST", "/v1/admin/task",           .handler = &admin_task_begin,   .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/task/cancel",    .handler = &admin_task_cancel,  .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "GET",  "/v1/admin/nodes",          .handler = &admin_nodes,        .needs = NEEDS_SERVER, .vital = true },
	{ "POST", "/v1/admin/nodes/drain",    .handler = &admin_node_drain,   .needs = NEEDS_SERVER, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/nodes/resume",   .handler = &admin_node_resume,  .needs = NEEDS_SERVER, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/nodes/flush",    .handler = &admin_front_flush,  .needs = NEEDS_SERVER, .max_body = API_SMALL_BODY, .vital = true },
	{ "GET",  "/v1/admin/config",         .handler = &admin_config,       .needs = NEEDS_SERVER, .vital = true },
	{ "GET",  "/v1/admin/me",             console_me,                     .needs = NEEDS_SOME, .vital = true },
	{ "POST", "/v1/admin/reload",         .handler = &admin_reload,       .needs = NEEDS_SERVER, .max_body = API_SMALL_BODY, .vital = true },
	{ "GET",  "/v1/admin/audit",          .handler = &admin_audit,        .query = QUERY_READ, .needs = NEEDS_SERVER, .vital = true },
	{ "GET",  "/v1/admin/locks",          .handler = &admin_locks,        .query = QUERY_READ, .needs = NEEDS_VIEW, .vital = true },
	{ "POST", "/v1/admin/lock/release",   .handler = &admin_lock_release, .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "GET",  "/v1/admin/workers",        .handler = &admin_workers,      .query = QUERY_READ, .needs = NEEDS_VIEW, .vital = true },
	{ "POST", "/v1/admin/worker/quiet",   .handler = &admin_worker_quiet, .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/worker/resume",  .handler = &admin_worker_resume, .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "POST", "/v1/admin/worker/stop",    .handler = &admin_worker_stop,  .needs = RIGHT_ADMIN, .max_body = API_SMALL_BODY, .vital = true },
	{ "GET",  "/v1/admin/history",        .handler = &admin_history,      .query = QUERY_READ, .needs = NEEDS_VIEW, .vital = true },
};
/* clang-format on */

const struct dialect admin_dialect = {
	.name = "admin",
	.prefix = "/v1/admin/",
	.routes = routes,
	.n_routes = COUNT(routes),
	.type = api_json,
	.begin = flat_begin,
	.refuse = flat_refuse,
	.describe = flat_describe,
};
