/*
 * listen.h - listening sockets: TCP and unix.
 *
 *      127.0.0.1:7171    [::1]:7171    localhost:7171    :7171 (every address)
 *      http://127.0.0.1:7171           the protocol by its name; without one it is http
 *      https://127.0.0.1:7443          the same over TLS; tls://... is https://...
 *      unix:/run/sluice.sock           unix:/run/sluice.sock?mode=0600
 *      fd:3                            a listening socket that the process inherited
 *
 * Port 0 is any free port; `port` has the real one. A host name with several addresses uses
 * the first. A unix socket has mode 0660 by default.
 *
 *  LISTEN-1  An address in use is SLU_EEXISTS in every case: the first bind is without
 *            SO_REUSEPORT, and only then one socket per thread is bound with it. So a second
 *            server is refused and does not silently share the clients of the first.
 *  LISTEN-2  A unix socket without a listener is stale and is replaced. A socket that answers,
 *            or a file that is not a socket, stays: SLU_EEXISTS.
 *  LISTEN-3  The mode of a unix socket is set before a client can connect.
 *  LISTEN-4  A closed listener removes its unix socket, unless another process listens there
 *            now, or the socket was inherited.
 *  LISTEN-5  Connections inherit from their socket: small answers are sent at once
 *            (TCP_NODELAY), and a client whose machine has vanished is detected after two
 *            minutes (keep-alive probes), even while its request waits.
 */
#ifndef NET_LISTEN_H
#define NET_LISTEN_H

#include "base/bytes.h"

#include <sluice/err.h>

#include <sys/un.h>

enum {
	LISTEN_NAME = 160
};

struct listener {
	char name[LISTEN_NAME]; /* "http://127.0.0.1:7171", "unix:/run/sluice.sock" */
	unsigned port;          /* 0: a unix socket */
	bool tls;
	int *fds; /* one per thread: bound, nonblocking */
	unsigned n;
	struct sockaddr_un unix_path; /* LISTEN-4; empty: TCP */
};

/* The protocol of an address; empty: the first one of the server, for an address without a scheme and
 * for tls://. The scheme is the name of the protocol, with an "s" behind it for TLS; a name does not end
 * in "s". */
struct slice listen_scheme(const char *address);

/* The address behind its scheme, if it has one; *tls: the scheme means TLS. */
const char *listen_target(const char *address, bool *tls);

/* protocol: its name, for listener.name. Returns SLU_EINVAL if the address is invalid, SLU_EEXISTS by LISTEN-1 and LISTEN-2, SLU_EDOWN
 * with the reason of the system. */
int listener_open(struct listener *l, const char *protocol, const char *address, unsigned threads,
		  struct slu_err *err);

/* Checks an address without opening it: its form, its host name, a port that this user may
 * bind, the folder of a unix socket, the listening socket of fd:3. Returns SLU_EINVAL, or
 * SLU_EDOWN if the name lookup failed. */
int listen_check(const char *address, struct slu_err *err);

/* Closes the sockets that were not taken; the caller has closed the others before. A zeroed
 * listener is fine. */
void listener_close(struct listener *l);

/* Returns true if only this machine can reach the address; false if unknown. */
bool listen_is_local(const char *address);

/* Returns true for a unix socket that only its owner may use: mode 0600 or less. */
bool listen_is_private(const char *address);

/* The i-th socket; the caller owns it now. */
int listener_take(struct listener *l, unsigned i);

#endif
