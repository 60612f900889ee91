/*
 * line.h - the command lines of the beanstalkd protocol.
 *
 *      "put 1024 0 60 5\r\n"   ──> BEAN_PUT, numbers 1024 0 60 5
 *      "watch mail\r\n"        ──> BEAN_WATCH, tube "mail"
 *
 * A command is one row of bean_commands. Pure: no I/O and no memory; the tube points into the line.
 */
#ifndef BEANSTALK_LINE_H
#define BEANSTALK_LINE_H

#include "base/bytes.h"

#include <stdint.h>

enum {
	BEAN_LINE = 224, /* most bytes of a line, with CR LF */
	BEAN_ARGS = 4    /* most arguments of a command */
};

/*   name, arguments (i: 64-bit id, n: 32-bit number, t: tube), name in stats or "" */
/* clang-format off */
#define BEAN_COMMANDS(X) \
	X(PUT,          "put",                  "nnnn", "put") \
	X(USE,          "use",                  "t",    "use") \
	X(RESERVE,      "reserve",              "",     "reserve") \
	X(RESERVE_FOR,  "reserve-with-timeout", "n",    "reserve-with-timeout") \
	X(RESERVE_JOB,  "reserve-job",          "i",    "") \
	X(DELETE,       "delete",               "i",    "delete") \
	X(RELEASE,      "release",              "inn",  "release") \
	X(BURY,         "bury",                 "in",   "bury") \
	X(TOUCH,        "touch",                "i",    "touch") \
	X(WATCH,        "watch",                "t",    "watch") \
	X(IGNORE,       "ignore",               "t",    "ignore") \
	X(PEEK,         "peek",                 "i",    "peek") \
	X(PEEK_READY,   "peek-ready",           "",     "peek-ready") \
	X(PEEK_DELAYED, "peek-delayed",         "",     "peek-delayed") \
	X(PEEK_BURIED,  "peek-buried",          "",     "peek-buried") \
	X(KICK,         "kick",                 "n",    "kick") \
	X(KICK_JOB,     "kick-job",             "i",    "") \
	X(STATS,        "stats",                "",     "stats") \
	X(STATS_JOB,    "stats-job",            "i",    "stats-job") \
	X(STATS_TUBE,   "stats-tube",           "t",    "stats-tube") \
	X(LIST,         "list-tubes",           "",     "list-tubes") \
	X(LIST_USED,    "list-tube-used",       "",     "list-tube-used") \
	X(LIST_WATCHED, "list-tubes-watched",   "",     "list-tubes-watched") \
	X(PAUSE,        "pause-tube",           "tn",   "pause-tube") \
	X(QUIT,         "quit",                 "",     "")
/* clang-format on */

enum bean_command {
#define X(id, name, args, stat) BEAN_##id,
	BEAN_COMMANDS(X)
#undef X
	BEAN_KINDS
};

struct bean_command_row {
	const char *name;
	const char *args;
	const char *stat; /* behind "cmd-" in the answer of stats; empty: not shown */
};

extern const struct bean_command_row bean_commands[BEAN_KINDS];

enum bean_error {
	BEAN_OK,
	BEAN_UNKNOWN,    /* no such command */
	BEAN_BAD_FORMAT, /* invalid arguments */
	BEAN_HTTP        /* the first line of an HTTP request: a web page may have sent it */
};

struct bean_line {
	enum bean_command command;
	uint64_t numbers[BEAN_ARGS]; /* ids and numbers, in order */
	struct slice tube;           /* unchecked; n 0: none */
};

/* Reads a line without its CR LF. Fills *out if it returns BEAN_OK. */
enum bean_error bean_line_parse(struct slice line, struct bean_line *out);

/* Returns true if the bytes begin like an HTTP request. */
bool bean_line_is_http(struct slice line);

/*
 * Ids of jobs. A client may keep ids in doubles, so the id of a message of node 0 is sent without its node
 * bits: 53 bits. Other ids are sent whole; they are above 2^53.
 */
uint64_t bean_id_out(uint64_t id);
uint64_t bean_id_in(uint64_t number); /* 0: no message has this number */

#endif
