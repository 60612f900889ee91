/*
 * terminal.h - the alternate screen of the terminal, and single keys.
 *
 *         terminal_open(&t);
 *         while (wanted) {
 *                 draw, by escape sequences, to stdout
 *                 key = terminal_wait(&t, 1000);
 *         }
 *         terminal_close(&t);
 *
 * Signals that would end the process (SIGINT, SIGTERM, SIGHUP, SIGQUIT) arrive as a key, so that
 * terminal_close is always called and restores the terminal.
 */
#ifndef CLI_TOP_TERMINAL_H
#define CLI_TOP_TERMINAL_H

#include <sluice/api.h>

#include <signal.h>
#include <termios.h>

/* Results of terminal_wait besides characters. */
enum terminal_key {
	KEY_NONE,       /* no key in time */
	KEY_STOP = 256, /* a signal (Ctrl-C too), or the terminal was closed */
	KEY_RESIZED,
	KEY_UP,
	KEY_DOWN,
	KEY_LEFT,
	KEY_RIGHT,
	KEY_ENTER,
	KEY_ESCAPE
};

struct terminal {
	struct termios before;
	sigset_t mask; /* the state to restore */
	int signals;   /* readable when a signal arrived; -1 = not open */
	bool screen;
	unsigned rows, columns;
};

/* Returns false, and changes nothing, if stdin or stdout is not a terminal. */
bool terminal_open(struct terminal *t);
void terminal_close(struct terminal *t); /* may be called again */

/* Returns the next key, or KEY_NONE after that many milliseconds. */
int terminal_wait(struct terminal *t, int ms);

#endif
