/*
 * admin.h - administration: a table of routes below /v1/admin/. docs/api.md is its
 * contract.
 *
 *      admin_queues    queues as they stand; pause, resume, purge
 *      admin_forget    a queue goes
 *      admin_messages  browse and search, one message and its history, delete
 *      admin_dead      dead letters: redrive, also to another queue, and delete
 *      admin_backup    the files of a running server
 *      admin_move      a queue from shard to shard
 *      admin_server    log level, settings in force
 *      admin_filter    which messages are meant
 *
 *  A1  Every call does bounded work: it looks at 1,000 entries and reads 16 MiB of
 *      records, then it answers how far it has come, and a cursor to go on with.
 *  A2  What a call says it has done is done, also when it could not do all of it.
 */
#ifndef API_ADMIN_H
#define API_ADMIN_H

#include "http/route.h"

/* Their arg is a struct api. */
extern const struct route admin_routes[];
extern const unsigned admin_n_routes;

typedef void admin_handler(struct call *c, void *api);

admin_handler admin_queues, admin_queue, admin_pause, admin_resume, admin_purge, admin_forget;
admin_handler admin_messages, admin_dlq, admin_message, admin_delete;
admin_handler admin_dead_redrive, admin_dead_delete;
admin_handler admin_backup_begin, admin_backup_read, admin_backup_end;
admin_handler admin_level_get, admin_level_put, admin_config, admin_reload;
admin_handler admin_move;

#endif
