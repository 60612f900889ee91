/*
 * admin.h - administration: the routes below /v1/admin/. docs/api.md is the contract.
 *
 *      queues    counts of queues; pause, resume, purge
 *      limits    what a queue uses of its limits; holds
 *      forget    delete a queue
 *      messages  browse and search, one message and its history, delete
 *      act       run now, delay, re-prioritise, move or edit a message that waits
 *      groups    dead letters by group of like errors
 *      keys      ordering keys: how deep, and what holds them
 *      dead      dead letters: redrive, also to another queue, and delete
 *      backup    the files of a running server
 *      move      a queue from shard to shard
 *      intake    batches of messages from outside
 *      schedules list, show, set, delete, pause, resume, run schedules
 *      nodes     the nodes of a store: list, drain, resume
 *      server    log level, settings in force
 *      tasks     acts on many messages that the server does by itself: begin, list, show, cancel
 *      locks     lock keys that are held: list, release by force
 *      workers   consumers that say who they are: list, quiet, resume, stop
 *      history   the recent past of a queue, or of the server
 *      live      what changes in the queues, line by line
 *      audit_tail  the last lines of the audit file
 *      search    the same over all queues
 *      filter    selects messages
 *      total     how many messages there are
 *
 *  ADMIN-1  Every request does bounded work: it looks at 1,000 entries and reads 16 MiB of
 *           records. Then it answers with its progress and a cursor for the next request.
 *  ADMIN-2  Work that an answer reports is done, also if the request could not do all of it.
 */
#ifndef API_ADMIN_ADMIN_H
#define API_ADMIN_ADMIN_H

#include "api/dialect.h"

extern const struct dialect admin_dialect; /* its errors have the form of flat_error.h */

extern const struct handler admin_queues, admin_queue, admin_pause, admin_drain, admin_resume, admin_purge, admin_forget;
extern const struct handler admin_limits, admin_priorities, admin_hold, admin_breaker;
extern const struct handler admin_search, admin_keys;
extern const struct handler admin_locks, admin_lock_release;
extern const struct handler admin_messages, admin_dlq, admin_dlq_groups, admin_message, admin_delete, admin_cancel;
extern const struct handler admin_backup_begin, admin_backup_read, admin_backup_end;
extern const struct handler admin_level_get, admin_level_put, admin_config, admin_reload;
extern const struct handler admin_move;
extern const struct handler admin_history, admin_live, admin_audit;
extern const struct handler admin_message_run, admin_message_delay, admin_message_priority, admin_message_move, admin_message_edit;
extern const struct handler admin_workers, admin_worker_quiet, admin_worker_resume, admin_worker_stop;
extern const struct handler admin_intake, admin_intake_places;
extern const struct handler admin_schedules, admin_schedule, admin_schedule_set, admin_schedule_delete, admin_schedule_pause,
	admin_schedule_resume, admin_schedule_run;
extern const struct handler admin_tasks, admin_task, admin_task_begin, admin_task_cancel;
extern const struct handler admin_nodes, admin_node_drain, admin_node_resume, admin_front_flush;

/* Writes the version of a message: ACT-1 of act.c. */
struct json_out;
struct op_row;
void admin_write_version(struct json_out *w, const struct op_row *row);

void admin_dead_redrive(struct call *c, void *api);
void admin_dead_delete(struct call *c, void *api);

#endif
