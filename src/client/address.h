/*
 * address.h - where a server is, and how to get a socket to it.
 *
 *      127.0.0.1:7171    [::1]:7171    queue.example:7171    http://127.0.0.1:7171
 *      https://queue.example:7171                   unix:/run/sluice.sock
 *
 * A host without a port has 7171.
 */
#ifndef CLIENT_ADDRESS_H
#define CLIENT_ADDRESS_H

#include <sluice/err.h>

#define ADDRESS_DEFAULT "127.0.0.1:7171"

enum {
	ADDRESS_TEXT = 256
};

struct address {
	char text[ADDRESS_TEXT]; /* as messages show it: "127.0.0.1:7171", "https://..." */
	char host[ADDRESS_TEXT]; /* "" for a unix socket */
	char port[8];
	char path[108]; /* "" for TCP */
	bool tls;
	struct tls_context *context; /* how, if tls; whoever has parsed it lends one */

	/* What is shown to the server with every request, or NULL: whoever has parsed the
	 * address lends one. */
	const char *token;
};

/* SLU_EINVAL: what is wrong with it, and what would be right. */
int address_parse(struct address *a, const char *text, struct slu_err *err);

/* What a Host field says: text without its scheme. */
const char *address_authority(const struct address *a);

/* What to wait for: `deadline` on the monotonic clock, and descriptors that become
 * readable when nobody wants the outcome any more. */
struct patience {
	slu_time deadline; /* or SLU_NEVER */
	int stop_fd;       /* the caller's; -1: none */
	int client_fd;     /* the client's; 0: none */
};

/*
 * Connect: *fd is nonblocking, closed on exec, without Nagle's delay. SLU_EDOWN says
 * why nobody answers and how to start a server; SLU_ETIMEOUT, SLU_ECANCELED: the
 * patience ended.
 */
int address_connect(const struct address *a, const struct patience *until, int *fd,
		    struct slu_err *err);

/* Wait until fd is readable or writable (POLLIN, POLLOUT): 0, SLU_ETIMEOUT or
 * SLU_ECANCELED, with no text. */
int patience_wait(const struct patience *until, int fd, short events);

#endif
