/*
 * child.h - a process that handles a message, and the pipes to it.
 *
 *      payload ──> stdin                     ┌──> stdout: ours, or (lines, whole) read here
 *                     └── command, its own ──┤
 *                         process group      ├──> stderr: passed on, its tail kept
 *                                            └──> descriptor 3 (children): stored as a whole
 *
 * A signal of the terminal does not reach the command: the owner decides whether the command may
 * finish. A supervisor (supervisor.h) runs between owner and command. It ends the command and all its
 * descendants when the owner asks for it, when the command has ended, and when the owner was
 * killed, so that a message that is delivered again has no second worker. The thread that starts a
 * child also waits for it, and outlives it.
 */
#ifndef CLI_WORK_CHILD_H
#define CLI_WORK_CHILD_H

#include "base/bytes.h"

#include <sluice/err.h>

#include <sys/types.h>

enum {
	CHILD_TAIL = 1000,         /* bytes of stderr that are stored */
	CHILD_LINE_MAX = 16 << 20, /* the longest line that the child may write */
	CHILD_DEATH_TEXT = 80
};

enum child_event {
	CHILD_ENDED, /* the child and its descendants have ended; `status` is set */
	CHILD_LINE,  /* the child wrote a line: child_line */
	CHILD_WROTE, /* the child ended a line on descriptor 3: `written` */
	CHILD_TIME,  /* the time `until` was reached */
	CHILD_STOP   /* stop_fd is readable */
};

struct child {
	pid_t pid; /* the supervisor's process; 0 = no child */
	int pidfd;
	int socket;         /* the socket to the supervisor */
	int in, out, err;   /* our ends of the child's pipes; -1 = closed, or not a pipe */
	int three;          /* our end of its descriptor 3; the same */
	struct slice input; /* bytes that stdin has not accepted yet; borrowed */
	bool more_input;    /* stdin stays open after the input */
	int status;         /* the status as waitpid returns it */
	bool whole;         /* stdout is stored as a whole; no CHILD_LINE */
	struct buf lines;   /* what the child wrote and child_line did not return yet */
	size_t taken;       /* bytes of `lines` that child_line returned */
	struct buf written; /* what the child wrote to descriptor 3; the owner may remove lines */
	bool wrote;         /* CHILD_WROTE is due */
	char tail[CHILD_TAIL];
	size_t tail_n;
};

void child_init(struct child *c);

/* Kills the child, if any, and waits for it. The struct is then as after child_init. */
void child_release(struct child *c);

struct child_start {
	char *const *argv; /* argv[0] is searched in PATH */
	char *const *env;
	bool lines;     /* stdin stays open and stdout is read */
	bool whole;     /* stdout is read and stored: child_output */
	bool children;  /* descriptor 3 is read and stored: `written` */
	slu_time grace; /* the time between SIGTERM and SIGKILL */
};

/* The grace for a command that runs under a lease: the command ends before the lease does. */
slu_time child_grace(slu_time lease);

/* Returns SLU_EFAILED, with the reason, if the command cannot be run. */
int child_start(struct child *c, const struct child_start *how, struct slu_err *err);

/* Sets the input. child_wait writes it to the child's stdin, and closes stdin after it unless the
 * child was started with `lines`. */
void child_feed(struct child *c, struct slice input);
void child_close_input(struct child *c);

/* Transfers bytes until an event occurs. */
enum child_event child_wait(struct child *c, slu_time until, int stop_fd);

/* The line of CHILD_LINE without its newline; valid until the next wait. */
struct slice child_line(struct child *c);

/* All that the child wrote to stdout; valid until child_release. */
struct slice child_output(const struct child *c);

/* Has the child read all input, and has child_line returned all its output? */
bool child_is_quiet(const struct child *c);

/* child_wait reports the end. Kill: SIGKILL to the command and its descendants. End: SIGTERM to them,
 * and SIGKILL after the grace. Signal: a signal to the process group of the command. */
void child_kill(struct child *c);
void child_end(struct child *c);
void child_signal(struct child *c, int signo);

/* "exit status 3", "killed by signal 11 (Segmentation fault)". Returns out. */
const char *child_death(const struct child *c, char out[static CHILD_DEATH_TEXT]);

/* Returns SLU_EFAILED, with the reason, if the program cannot be run. */
int child_check(const char *program, struct slu_err *err);

#endif
