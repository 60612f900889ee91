/*
 * supervisor.h - a small process between a worker and its command. It ends all descendants of the
 * command, even if the worker was killed.
 *
 *      worker ──fork──> supervisor ──fork──> command ──> what it starts
 *         └── socket ──────┘  a byte is a signal number for the command's process group;
 *                             SIGKILL kills everything at once;
 *                             SUPERVISOR_END, or the end of the socket (the worker is gone),
 *                             ends everything: SIGTERM, after `grace` SIGKILL
 *
 *  SUPERVISOR-1  The supervisor is a subreaper: a process that the command started stays below it,
 *      whatever group or session that process made for itself.
 *  SUPERVISOR-2  When the command has ended, the supervisor ends what the command left in the
 *      background: first SIGTERM, after `grace` SIGKILL.
 *  SUPERVISOR-3  The supervisor ends when no process is left below it. Its own wait status is the status of
 *      the command.
 *
 * The worker has threads, so the supervisor makes system calls alone: no allocation, no stdio.
 * A process of another user (sudo) cannot be signalled; the supervisor waits until it ends.
 */
#ifndef CLI_WORK_SUPERVISOR_H
#define CLI_WORK_SUPERVISOR_H

#include <sluice/api.h>

#include <sys/types.h>

enum {
	SUPERVISOR_END = 0 /* not the number of a signal */
};

/* Call in the new process, before it forks the command: SUPERVISOR-1, and no signal but SIGKILL ends
 * the supervisor. */
void supervisor_prepare(void);

/* Supervise until SUPERVISOR-3. `socket` is the supervisor's end; every other descriptor is closed. */
_Noreturn void supervisor_run(int socket, pid_t command, slu_time grace);

#endif
