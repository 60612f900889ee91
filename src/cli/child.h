/*
 * child.h - a process that works on a message, and the pipes to it.
 *
 *      payload ──> stdin                     ┌──> stdout: ours, or (lines, whole) read here
 *                     └── command, its own ──┤
 *                         process group      └──> stderr: passed on, its tail kept
 *
 * A signal of the terminal does not reach the command: its owner decides whether it may
 * finish. A supervisor (supervisor.h) stands between owner and command. It ends the command and
 * everything the command started when the owner says so, when the command has ended, and when
 * the owner was killed: a message that is delivered again has no second worker. One thread
 * starts a child, waits for it and ends after it.
 */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include "base/bytes.h"

#include <sluice/err.h>

#include <sys/types.h>

enum {
	CHILD_TAIL = 1000,         /* bytes of stderr that are kept */
	CHILD_LINE_MAX = 16 << 20, /* the longest line it may answer with */
	CHILD_DEATH_TEXT = 80
};

enum child_event {
	CHILD_ENDED, /* status is set; no process is left of it */
	CHILD_LINE,  /* it wrote a line: child_line */
	CHILD_TIME,  /* `until` has come */
	CHILD_STOP   /* stop_fd is readable */
};

struct child {
	pid_t pid; /* of the supervisor; 0: there is none */
	int pidfd;
	int socket;         /* to the supervisor */
	int in, out, err;   /* our ends; -1: closed, or not ours */
	struct slice input; /* what stdin has not taken yet; borrowed */
	bool more_input;    /* stdin stays open behind it */
	int status;         /* as waitpid has it */
	bool whole;         /* stdout is kept to its end, no line is told of */
	struct buf lines;   /* what it wrote and nobody took */
	size_t taken;       /* bytes of lines that child_line gave out */
	char tail[CHILD_TAIL];
	size_t tail_n;
};

void child_init(struct child *c);

/* Kill it and wait; as after init. Nothing, if there is none. */
void child_release(struct child *c);

struct child_start {
	char *const *argv; /* argv[0] is found in PATH */
	char *const *env;
	bool lines;     /* stdin stays open and stdout is read */
	bool whole;     /* stdout is read and kept: child_output */
	slu_time grace; /* between SIGTERM and SIGKILL */
};

/* For a command that runs under a lease: it ends before the lease does. */
slu_time child_grace(slu_time lease);

/* SLU_EFAILED: it cannot be run, with the reason. */
int child_start(struct child *c, const struct child_start *how, struct slu_err *err);

/* Write input to its stdin: as it takes it, by child_wait. Its end closes stdin unless
 * it was started with lines. */
void child_feed(struct child *c, struct slice input);
void child_close_input(struct child *c);

/* Move bytes until something happens. */
enum child_event child_wait(struct child *c, slu_time until, int stop_fd);

/* The line of CHILD_LINE, without its end; good until the next wait. */
struct slice child_line(struct child *c);

/* All that it wrote to stdout; good until it is released. */
struct slice child_output(const struct child *c);

/* It has read all it was told, and said nothing that was not taken. */
bool child_is_quiet(const struct child *c);

/* child_wait then tells of its end. Kill: everything, at once. End: SIGTERM to everything, and
 * SIGKILL after the grace. Signal: to the process group of the command. */
void child_kill(struct child *c);
void child_end(struct child *c);
void child_signal(struct child *c, int signo);

/* "exit status 3", "killed by signal 11 (Segmentation fault)". Returns out. */
const char *child_death(const struct child *c, char out[static CHILD_DEATH_TEXT]);

/* Can this be run? SLU_EFAILED says why not. */
int child_check(const char *program, struct slu_err *err);

#endif
