/*
 * wire.h - sends and receives bytes, plain or by TLS.
 *
 *         struct wire w = WIRE_NONE;
 *
 *         wire_open(&w, &address, &until, &err);
 *         wire_send(&w, parts, 2, &until);
 *         wire_receive(&w, room, &in, &err);      SLU_EBUSY: wait, then try again
 *         wire_close(&w);
 *
 * One thread uses a wire. It never raises SIGPIPE.
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
	int fd; /* -1 = no connection */
	struct tls *tls;
	struct tls_room *room;
	const struct address *address;
};

#define WIRE_NONE ((struct wire){ .fd = -1 })

/*
 * Connects like address_connect; for https it also does the handshake and checks the server's name. Returns
 * SLU_EFORBIDDEN if one side does not trust the other's certificate; the text tells what to do. Keeps the
 * address.
 */
int wire_open(struct wire *w, const struct address *a, const struct patience *until,
	      struct slu_err *err);
void wire_close(struct wire *w);

/* Is the connection idle: no end and no unexpected bytes since the last read? */
bool wire_is_silent(const struct wire *w);

/* Sends all parts, and may change them. Returns SLU_EUNKNOWN if the server closed the connection;
 * SLU_ETIMEOUT, SLU_ECANCELED. */
int wire_send(struct wire *w, struct slice *parts, unsigned n, const struct patience *until);

/* Reads without waiting; the bytes are valid until the next call. Returns SLU_EBUSY if there are none,
 * SLU_EUNKNOWN if the server closed the connection, and SLU_EFORBIDDEN as wire_open does: a server that
 * requires a certificate refuses only now. */
int wire_receive(struct wire *w, char room[static WIRE_READ], struct slice *in,
		 struct slu_err *err);

/* Ends the sending direction. Returns false if that is not possible. */
bool wire_end(struct wire *w);

#endif
