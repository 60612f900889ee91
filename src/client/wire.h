/*
 * wire.h - bytes to a server and back, plain or under TLS.
 *
 *         struct wire w = WIRE_NONE;
 *
 *         wire_open(&w, &address, &until, &err);
 *         wire_send(&w, parts, 2, &until);
 *         wire_receive(&w, room, &in, &err);      SLU_EBUSY: wait, then ask again
 *         wire_close(&w);
 *
 * A wire is one thread's. It never raises SIGPIPE.
 */
#ifndef CLIENT_WIRE_H
#define CLIENT_WIRE_H

#include "base/bytes.h"
#include "client/address.h"

enum {
	WIRE_READ = 64 * 1024
};

struct tls;
struct tls_room;

struct wire {
	int fd; /* -1: no connection */
	struct tls *tls;
	struct tls_room *room;
	const struct address *address;
};

#define WIRE_NONE ((struct wire){ .fd = -1 })

/*
 * As address_connect; for https the handshake is done as well, and the server is the one
 * that was asked for. SLU_EFORBIDDEN: one side does not trust the other's certificate;
 * the text says what to do. Keeps the address.
 */
int wire_open(struct wire *w, const struct address *a, const struct patience *until,
	      struct slu_err *err);
void wire_close(struct wire *w);

/* Nothing has come since it was last read: neither an end, nor bytes that nobody asked
 * for. */
bool wire_is_silent(const struct wire *w);

/* All parts; they may be changed. SLU_EUNKNOWN: the server has closed. SLU_ETIMEOUT,
 * SLU_ECANCELED. */
int wire_send(struct wire *w, struct slice *parts, unsigned n, const struct patience *until);

/* What is there, without waiting; it stays good until the next call. SLU_EBUSY: nothing
 * is. SLU_EUNKNOWN: the server has closed. SLU_EFORBIDDEN as above: a server that wants
 * certificates says so only now. */
int wire_receive(struct wire *w, char room[static WIRE_READ], struct slice *in,
		 struct slu_err *err);

/* Tell the server that nothing more comes. False: it cannot be told. */
bool wire_end(struct wire *w);

#endif
