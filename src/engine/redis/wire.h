/*
 * wire.h - a connection to a Redis server: commands out, answers in, in order.
 *
 *         rwire_begin(w, 3);
 *         rwire_arg(w, SLICE("SET"));
 *         rwire_arg(w, key);
 *         rwire_arg(w, value);            ... as many commands as there are
 *         rc = rwire_send(w, err);
 *         rc = rwire_answer(w, &reply, err);      one for each, in the same order
 *         freeReplyObject(reply);
 *
 * Calls block, with a deadline for each send and each answer. The reader of hiredis parses
 * the protocol; the socket is our own.
 *
 *  REDISWIRE-1  A failure closes the connection. The call returns SLU_EUNKNOWN if a command
 *      was sent and has no answer: it may or may not have happened. Otherwise it returns
 *      SLU_EDOWN.
 *  REDISWIRE-2  The connection fails if a reply has more than REPLY_BYTES_MAX bytes, or comes
 *      before its command.
 *
 * Owned by one thread.
 */
#ifndef ENGINE_REDIS_WIRE_H
#define ENGINE_REDIS_WIRE_H

#include "base/bytes.h"
#include "base/clock.h"
#include "engine/redis/reply.h"

#include <sluice/err.h>

struct rwire_conf {
	const char *address;  /* "host:port", or "unix:PATH"; borrowed, and may change */
	const char *username; /* NULL = the default user */
	const char *password; /* NULL = no login */
	unsigned db;
	slu_time timeout;               /* of a connect, a send, an answer; 0 = 5 s */
	bool tls;                       /* tls.h; not for a unix socket */
	const char *tls_ca;             /* PEM file; NULL = the authorities of the system */
	const char *tls_cert, *tls_key; /* our certificate, PEM files; NULL = none */
	const char *tls_name;           /* name of the server; NULL = the host of the address */
};

/* The words of one command: WORDS(SLICE("GET"), key). */
struct rwords {
	const struct slice *at;
	size_t n;
};

#define WORDS(...)                                                        \
	((struct rwords){ (const struct slice[]){ __VA_ARGS__ },          \
			  sizeof((const struct slice[]){ __VA_ARGS__ }) / \
				  sizeof(struct slice) })

struct rtls;

struct rwire {
	struct rwire_conf conf; /* borrowed */
	int fd;                 /* -1 = closed */
	struct rtls *tls;       /* NULL = without TLS */
	short events;           /* what the last send or fill waits for */
	redisReader *reader;
	struct buf out;  /* commands not sent yet */
	unsigned owed;   /* answers that the server owes */
	size_t received; /* bytes since the last whole answer */
};

/* The i-th address of a list with commas. Returns false if the list is shorter. An address
 * that is too long is cut, and cannot be reached. */
bool rwire_address(const char *list, unsigned i, char *out, size_t size);

void rwire_init(struct rwire *w, const struct rwire_conf *conf);
void rwire_close(struct rwire *w); /* again is fine */
void rwire_release(struct rwire *w);

/* Checks all addresses of the list and the files of TLS, without connecting. Returns
 * SLU_EINVAL if rwire_open would refuse them on every server. */
int rwire_check(const struct rwire_conf *conf, struct slu_err *err);

/* Connects and logs in. Returns SLU_EDOWN, SLU_EAUTH or SLU_EINVAL; the text names the
 * address. */
int rwire_open(struct rwire *w, struct slu_err *err);

void rwire_begin(struct rwire *w, size_t n_args);
void rwire_arg(struct rwire *w, struct slice arg);
void rwire_number(struct rwire *w, int64_t n);
void rwire_u64(struct rwire *w, uint64_t n);

/* Sends all commands since the last send. Returns SLU_ENOMEM, or REDISWIRE-1. */
int rwire_send(struct rwire *w, struct slu_err *err);

/* Passes received bytes to the reader, without waiting, for a caller that polls the socket.
 * REDISWIRE-1. */
int rwire_fill(struct rwire *w, struct slu_err *err);

/* Whether the timeout of a step that began then is over. */
static inline bool
rwire_is_late(const struct rwire *w, slu_time began)
{
	return clock_mono(&clock_system) - began >= w->conf.timeout;
}

/* Reads the next answer, which the caller frees. REDISWIRE-1. */
int rwire_answer(struct rwire *w, redisReply **out, struct slu_err *err);

/* Sends one command and reads its answer, which may be an error. *out is NULL after a
 * failure. REDISWIRE-1. */
int rwire_ask(struct rwire *w, struct rwords words, redisReply **out, struct slu_err *err);

#endif
