/*
 * listen.h - sockets that take connections: TCP and unix.
 *
 *      127.0.0.1:7171    [::1]:7171    localhost:7171    :7171 (every address)
 *      https://127.0.0.1:7443          tls://... is the same: TLS is spoken there
 *      unix:/run/sluice.sock           unix:/run/sluice.sock?mode=0600
 *      fd:3                            a listening socket that was passed to us
 *
 * Port 0 is any free one; `port` then has it. A name that stands for several addresses
 * takes the first. A unix socket has mode 0660 unless said otherwise.
 *
 *  A1  An address in use is SLU_EEXISTS, whoever uses it and however: the first bind is
 *      without SO_REUSEPORT, only then one socket a thread is bound with it. So a
 *      second server is refused and does not silently share the first one's clients.
 *  A2  A unix socket that nobody listens on is left over, and is replaced. One that
 *      answers, or a file that is no socket, is left alone: SLU_EEXISTS.
 *  A3  The mode of a unix socket is set before anybody can connect.
 *  A4  A closed listener removes its unix socket, unless another listens there by now,
 *      or it was passed: then it belongs to whoever passed it.
 *  A5  Connections inherit from their socket: small answers leave at once
 *      (TCP_NODELAY), and a client whose machine has vanished is missed after two
 *      minutes (keep-alive probes), however long its call waits.
 */
#ifndef NET_LISTEN_H
#define NET_LISTEN_H

#include <sluice/err.h>

#include <sys/un.h>

enum {
	LISTEN_NAME = 160
};

struct listener {
	char name[LISTEN_NAME]; /* "http://127.0.0.1:7171", "unix:/run/sluice.sock" */
	unsigned port;          /* 0: a unix socket */
	bool tls;
	int *fds; /* one a thread: bound, nonblocking */
	unsigned n;
	struct sockaddr_un unix_path; /* A4; empty: TCP */
};

/* The address behind its scheme, if it has one; *tls: whether that says TLS. */
const char *listen_target(const char *address, bool *tls);

/* SLU_EINVAL: what is wrong with the address. SLU_EEXISTS: A1, A2. SLU_EDOWN: the
 * system's reason. */
int listener_open(struct listener *l, const char *address, unsigned threads,
		  struct slu_err *err);

/* Is the address spelled right? Nothing is looked up. SLU_EINVAL. */
int listen_spelled(const char *address, struct slu_err *err);

/* Is the address one that listener_open would take, as far as one can know without taking it:
 * spelled right, a name that stands for something, a port that this user may bind, a folder
 * for a unix socket. Of fd:3 only the spelling is checked. SLU_EINVAL; SLU_EDOWN: the name
 * could not be looked up now. */
int listen_check(const char *address, struct slu_err *err);

/* Closes what is not taken; who has taken one closes that first. A zeroed listener is
 * fine. */
void listener_close(struct listener *l);

/* Can only this machine reach it? False when in doubt. */
bool listen_is_local(const char *address);

/* Is it a unix socket that only its owner may use: of mode 0600, or less? */
bool listen_is_private(const char *address);

/* The i-th socket, now the caller's. */
int listener_take(struct listener *l, unsigned i);

#endif
