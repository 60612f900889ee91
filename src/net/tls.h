/*
 * tls.h - one TLS session: sealed bytes to plain bytes and back. No I/O.
 *
 *      wire ──> tls_take ──────────────────> plain bytes
 *      plain ──> tls_put ──> records ──> tls_out ──> wire
 *                               └── tls_sent: how many plain bytes are sent whole
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
 * A session belongs to one thread. All sessions of a thread share a room: an idle session has
 * no buffers.
 *
 *  TLS-1  tls_take takes all bytes of the wire. The plain bytes are in the room until the next
 *         call on any session of the room, and are at most TLS_RECORD more than the wire bytes.
 *  TLS-2  A plain byte is sent when the last byte of its record is sent.
 *  TLS-3  Bytes of TLS itself (handshake, tickets, alerts) are in tls_out too, also after a
 *         failure: the other side receives the reason.
 *  TLS-4  The other side announces TLS_ENDED. A connection that ends without it was cut.
 *  TLS-5  Unsent bytes are limited to TLS_CHUNK plain bytes and TLS_SLACK; beyond that the
 *         session fails.
 */
#ifndef NET_TLS_H
#define NET_TLS_H

#include "base/bytes.h"
#include "net/tls_context.h"
#include "net/tls_peer.h"

enum {
	TLS_READ = 64 * 1024,  /* most bytes of the wire in one tls_take */
	TLS_RECORD = 16384,    /* plain bytes of a record */
	TLS_CHUNK = 64 * 1024, /* most plain bytes that are put and not sent */
	TLS_SLACK = 32 * 1024,
	TLS_WHY = 256,
	TLS_BINDING = 32,
	TLS_FIRST_BYTE = 0x16 /* of every TLS connection: a handshake */
};

enum tls_state {
	TLS_SHAKING,
	TLS_OPEN,
	TLS_ENDED, /* TLS-4; the session may still write */
	TLS_FAILED /* tls_room.fault and why */
};

/* Faults that an operator can fix. */
enum tls_fault {
	TLS_FAULT_OTHER,
	TLS_FAULT_UNKNOWN_CA,   /* unknown issuer of the other side's certificate */
	TLS_FAULT_EXPIRED,      /* the certificate has expired, or is not valid yet */
	TLS_FAULT_HOST,         /* the certificate has another host name */
	TLS_FAULT_NO_CERT,      /* one side requires a certificate, the other has none */
	TLS_FAULT_CERT_REFUSED, /* the other side refused the certificate */
	TLS_FAULT_NOT_TLS,      /* the other side does not use TLS */
	TLS_FAULT_OUT_OF_MEMORY
};

/* The buffers that the sessions of one thread share. */
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

/* host: the server that a client connects to; NULL for a server. Not checked by a context of peers
 * (TLSCONTEXT-5). Holds x. NULL: no memory. */
struct tls *tls_new(struct tls_context *x, struct tls_room *r, const char *host);
void tls_free(struct tls *t); /* NULL is fine */

/* TLS-1. A client begins with an empty wire. */
enum tls_state tls_take(struct tls *t, struct slice wire, struct slice *plain);

bool tls_is_fresh(const struct tls *t); /* no byte was taken yet */
enum tls_state tls_state(const struct tls *t);

/* The names in the client's certificate, once open; NULL: it has shown none. */
const struct tls_peer *tls_peer(const struct tls *t);

/* For a server, once open: true if its certificate has this name or address ("[::1]",
 * "10.0.0.1"). */
bool tls_is_named(struct tls *t, struct slice host);
const char *tls_version(const struct tls *t); /* "TLSv1.3" */

/* Once open: the key that both sides export from the session (RFC 9266), and no third one knows. Of
 * contexts of peers, where TLS 1.3 ties it to the whole handshake. Returns false if libssl fails. */
bool tls_binding(struct tls *t, uint8_t out[static TLS_BINDING]);

/* How many plain bytes tls_put takes now. */
size_t tls_room_for(const struct tls *t);

/* n is at most tls_room_for. Returns SLU_EDOWN if the session failed. tls_put_end follows. */
int tls_put(struct tls *t, const char *p, size_t n);
int tls_put_end(struct tls *t);

/* Puts close_notify; once open, and once. */
void tls_put_bye(struct tls *t);

/* The unsent bytes. */
struct slice tls_out(const struct tls *t);

/* k bytes of tls_out are sent. Returns how many more plain bytes are sent whole: TLS-2. */
size_t tls_sent(struct tls *t, size_t k);

/* Detaches tls_out: the bytes do not move, and new bytes go elsewhere, until tls_landed. Once
 * at a time. */
struct slice tls_fly(struct tls *t);
size_t tls_landed(struct tls *t); /* as tls_sent, for all of them */

#endif
