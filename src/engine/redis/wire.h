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
 * Blocking, with a deadline for each send and each answer. The words of the protocol are
 * hiredis' reader's; the socket is ours.
 *
 *  W2  A reply has at most REPLY_BYTES_MAX bytes, and none comes before it is asked for:
 *      else the connection has failed.
 *  W1  After a failure the connection is closed. What was sent and has no answer may or
 *      may not have happened: SLU_EUNKNOWN. When nothing was sent it is SLU_EDOWN.
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
	const char *username; /* NULL: that of who says nothing */
	const char *password; /* NULL: none is asked for */
	unsigned db;
	slu_time timeout;               /* of a connect, a send, an answer; 0: 5 s */
	bool tls;                       /* secure.h; not for a unix socket */
	const char *tls_ca;             /* PEM files. NULL: the authorities of the system */
	const char *tls_cert, *tls_key; /* NULL: we show none */
	const char *tls_name;           /* of the server; NULL: the host of the address */
};

struct rtls;

struct rwire {
	struct rwire_conf conf; /* borrowed */
	int fd;                 /* -1: closed */
	struct rtls *tls;       /* NULL: there is none */
	short events;           /* what the last send or fill waits for */
	redisReader *reader;
	struct buf out;
	unsigned owed; /* answers */
	size_t heard;  /* bytes since the last whole answer */
};

/* The i-th of addresses with commas between them. False: there are fewer. One that is too
 * long is cut, and so leads nowhere. */
bool rwire_address(const char *list, unsigned i, char *out, size_t size);

void rwire_init(struct rwire *w, const struct rwire_conf *conf);
void rwire_close(struct rwire *w); /* again is fine */
void rwire_release(struct rwire *w);

/* Would rwire_open refuse these settings, whatever the server says? All addresses of the list
 * and the files of TLS. SLU_EINVAL. */
int rwire_check(const struct rwire_conf *conf, struct slu_err *err);

/* Connect, and say who we are. SLU_EDOWN, SLU_EAUTH, SLU_EINVAL: the sentence names the
 * address. */
int rwire_open(struct rwire *w, struct slu_err *err);

void rwire_begin(struct rwire *w, size_t n_args);
void rwire_arg(struct rwire *w, struct slice arg);
void rwire_number(struct rwire *w, int64_t n);
void rwire_u64(struct rwire *w, uint64_t n);

/* Everything since the last send. SLU_ENOMEM, or W1. */
int rwire_send(struct rwire *w, struct slu_err *err);

/* For who waits for the socket itself: what has come goes to the reader, without waiting.
 * W1. */
int rwire_fill(struct rwire *w, struct slu_err *err);

/* What was begun then has taken as long as it may. */
static inline bool
rwire_is_late(const struct rwire *w, slu_time began)
{
	return clock_mono(&clock_system) - began >= w->conf.timeout;
}

/* The next answer, the caller's to free. W1. */
int rwire_answer(struct rwire *w, redisReply **out, struct slu_err *err);

#endif
