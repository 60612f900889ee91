/*
 * tls.h - one TLS session between bytes of the wire and plain bytes. No I/O.
 *
 *      wire ──> tls_take ──────────────────> plain bytes
 *      plain ──> tls_put ──> records ──> tls_out ──> wire
 *                               └── tls_sent: which plain bytes are out whole
 *
 *         s = tls_take(t, (struct slice){ buf, n }, &plain);   after each read
 *         use(plain);
 *         tls_put(t, answer, n);                                16 KiB a record
 *         tls_put_end(t);
 *         k = send(fd, tls_out(t).p, tls_out(t).n, 0);
 *         whole += tls_sent(t, k);
 *         if (tls_out(t).n > 0)
 *                 later(tls_fly(t));           stays where it is until tls_landed
 *
 * A session belongs to one thread, and so does the room that all sessions of the
 * thread share: a session that rests has no buffers.
 *
 *  T1  tls_take uses up all bytes of the wire. What it found lies in the room until the
 *      next call on any session of the room, and is at most TLS_RECORD more than came.
 *  T2  A byte counts as out when its record is, to the last byte.
 *  T3  What the protocol itself wants to say (handshake, tickets, alerts) is in tls_out
 *      as well, also after a failure: the other side learns why.
 *  T4  TLS_ENDED is told by the other side. An end of the connection without it is no
 *      end but a cut.
 *  T5  What is not sent is bounded by TLS_CHUNK of plain bytes and TLS_SLACK; beyond it
 *      the session fails.
 */
#ifndef NET_TLS_H
#define NET_TLS_H

#include "base/bytes.h"
#include "net/tls_context.h"
#include "net/tls_peer.h"

enum {
	TLS_READ = 64 * 1024,  /* bytes of the wire in one tls_take, at most */
	TLS_RECORD = 16384,    /* plain bytes of a record */
	TLS_CHUNK = 64 * 1024, /* plain bytes put and not sent */
	TLS_SLACK = 32 * 1024,
	TLS_WHY = 256,
	TLS_FIRST_BYTE = 0x16 /* of any TLS connection: a handshake */
};

enum tls_state {
	TLS_SHAKING,
	TLS_OPEN,
	TLS_ENDED, /* T4; may still be written */
	TLS_FAILED /* tls_room.fault and why */
};

/* What a person can do something about. */
enum tls_fault {
	TLS_FAULT_OTHER,
	TLS_FAULT_UNKNOWN_CA,   /* nobody known has signed the other's certificate */
	TLS_FAULT_EXPIRED,      /* it is too old, or not valid yet */
	TLS_FAULT_HOST,         /* it is another host's */
	TLS_FAULT_NO_CERT,      /* the other wants to see ours, or the other way round */
	TLS_FAULT_CERT_REFUSED, /* the other refuses ours */
	TLS_FAULT_NOT_TLS,      /* the other speaks something else */
	TLS_FAULT_OUT_OF_MEMORY
};

/* Shared by the sessions of one thread. */
struct tls_room {
	struct buf spare; /* memory for the next tls_out */
	enum tls_fault fault;
	char why[TLS_WHY]; /* of the last failure */
	size_t n_record;
	char record[TLS_RECORD];
	char plain[TLS_READ + 2 * TLS_RECORD];
};

struct tls;

struct tls_room *tls_room_new(void); /* NULL: no memory */
void tls_room_free(struct tls_room *r);

/* host: whom a client wants to reach; NULL for a server. Holds x. NULL: no memory. */
struct tls *tls_new(struct tls_context *x, struct tls_room *r, const char *host);
void tls_free(struct tls *t); /* NULL is fine */

/* T1. A client begins with no bytes. */
enum tls_state tls_take(struct tls *t, struct slice wire, struct slice *plain);

bool tls_is_fresh(const struct tls *t); /* nothing was taken yet */
enum tls_state tls_state(const struct tls *t);

/* Of a client that has shown its certificate, once open; else NULL. */
const struct tls_peer *tls_peer(const struct tls *t);

/* Of a server, once open: does the certificate it has shown have this name, or this
 * address ("[::1]" or "10.0.0.1")? */
bool tls_is_named(struct tls *t, struct slice host);
const char *tls_version(const struct tls *t); /* "TLSv1.3" */

/* Room for this many plain bytes. */
size_t tls_room_for(const struct tls *t);

/* At most tls_room_for. SLU_EDOWN: the session has failed. End with tls_put_end. */
int tls_put(struct tls *t, const char *p, size_t n);
int tls_put_end(struct tls *t);

/* Say that nothing more comes; once open, and once. */
void tls_put_bye(struct tls *t);

/* What waits to be sent. */
struct slice tls_out(const struct tls *t);

/* k bytes of it are sent. Returns how many more plain bytes are out whole: T2. */
size_t tls_sent(struct tls *t, size_t k);

/* Take tls_out away: it stays where it is, and new bytes gather elsewhere, until
 * tls_landed. Not again before. */
struct slice tls_fly(struct tls *t);
size_t tls_landed(struct tls *t); /* as tls_sent for all of it */

#endif
