/*
 * terminal.h - a screen of its own on the terminal, and keys as they are typed.
 *
 *         terminal_open(&t);
 *         while (wanted) {
 *                 draw, by escape sequences, to stdout
 *                 key = terminal_wait(&t, 1000);
 *         }
 *         terminal_close(&t);
 *
 * Signals that would end the process (SIGINT, SIGTERM, SIGHUP, SIGQUIT) are taken as a
 * key, so that terminal_close is always reached: the terminal is as it was before.
 */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <sluice/api.h>

#include <signal.h>
#include <termios.h>

/* What terminal_wait returns beside characters. */
enum terminal_key {
	KEY_NONE,       /* the time is over */
	KEY_STOP = 256, /* a signal, also by Ctrl-C, or the terminal is gone */
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
	sigset_t mask; /* before */
	int signals;   /* readable when one came; -1: not open */
	bool screen;
	unsigned rows, columns;
};

/* False: stdin or stdout is no terminal, and nothing has changed. */
bool terminal_open(struct terminal *t);
void terminal_close(struct terminal *t); /* again is fine */

/* How large it is now. */
void terminal_measure(struct terminal *t);

/* The next key, or KEY_NONE after so many milliseconds. */
int terminal_wait(struct terminal *t, int ms);

#endif
