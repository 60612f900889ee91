#include "cli/top/terminal.h"

#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
	ESCAPE = 27,
	ESCAPE_MS = 50 /* the time limit for the rest of an escape sequence */
};

static const char enter[] = "\033[?1049h\033[?25l"; /* alternate screen, no cursor */
static const char leave[] = "\033[?25h\033[?1049l";

static void
put(const char *text)
{
	const ssize_t n = write(STDOUT_FILENO, text, strlen(text));

	(void)n; /* a closed terminal needs nothing */
}

static int
take_signals(struct terminal *t)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	sigaddset(&set, SIGWINCH);
	sigprocmask(SIG_BLOCK, &set, &t->mask);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Reads the current size. */
static void
measure(struct terminal *t)
{
	struct winsize w = { 0 };

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &w); /* on an error: 80 x 24 */
	t->rows = w.ws_row ? w.ws_row : 24;
	t->columns = w.ws_col ? w.ws_col : 80;
}

bool
terminal_open(struct terminal *t)
{
	struct termios raw;

	*t = (struct terminal){ .signals = -1 };
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ||
	    tcgetattr(STDIN_FILENO, &t->before))
		return false;
	t->signals = take_signals(t);
	if (t->signals < 0) {
		sigprocmask(SIG_SETMASK, &t->mask, NULL);
		return false;
	}
	raw = t->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO); /* Ctrl-C stays a signal, so that it ends waits */
	raw.c_cc[VSUSP] = _POSIX_VDISABLE;
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	put(enter);
	t->screen = true;
	measure(t);
	return true;
}

void
terminal_close(struct terminal *t)
{
	if (!t->screen)
		return;
	t->screen = false;
	put(leave);
	tcsetattr(STDIN_FILENO, TCSANOW, &t->before);
	close(t->signals);
	t->signals = -1;
	sigprocmask(SIG_SETMASK, &t->mask, NULL);
}

static bool
has_input(int ms)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&p, 1, ms) > 0;
}

static int
read_byte(void)
{
	unsigned char c;

	return read(STDIN_FILENO, &c, 1) == 1 ? c : -1;
}

/* Reads ESC alone, or a sequence like ESC [ A. */
static int
read_sequence(void)
{
	static const int arrows[] = { KEY_UP, KEY_DOWN, KEY_RIGHT, KEY_LEFT };
	int c;

	if (!has_input(ESCAPE_MS))
		return KEY_ESCAPE;
	c = read_byte();
	if ((c != '[' && c != 'O') || !has_input(ESCAPE_MS))
		return KEY_ESCAPE;
	c = read_byte();
	return c >= 'A' && c <= 'D' ? arrows[c - 'A'] : KEY_NONE;
}

static int
read_key(void)
{
	const int c = read_byte();

	if (c < 0)
		return KEY_STOP;
	if (c == '\r' || c == '\n')
		return KEY_ENTER;
	return c == ESCAPE ? read_sequence() : c;
}

int
terminal_wait(struct terminal *t, int ms)
{
	struct pollfd p[] = {
		{ .fd = t->signals, .events = POLLIN },
		{ .fd = STDIN_FILENO, .events = POLLIN },
	};
	struct signalfd_siginfo info;

	if (poll(p, 2, ms) <= 0)
		return KEY_NONE;
	if (p[0].revents && read(t->signals, &info, sizeof info) == sizeof info) {
		if (info.ssi_signo != SIGWINCH)
			return KEY_STOP;
		measure(t);
		return KEY_RESIZED;
	}
	return p[1].revents ? read_key() : KEY_NONE;
}
