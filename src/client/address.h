/*
 * address.h - the address of a server, and a socket to it.
 *
 *      127.0.0.1:7171    [::1]:7171    queue.example:7171    http://127.0.0.1:7171
 *      https://queue.example:7171                   unix:/run/sluice.sock
 *
 * The default port is 7171.
 */
#ifndef CLIENT_ADDRESS_H
#define CLIENT_ADDRESS_H

#include <sluice/err.h>

#define ADDRESS_DEFAULT "127.0.0.1:7171"

enum {
	ADDRESS_TEXT = 256
};

struct address {
	char text[ADDRESS_TEXT]; /* the address for messages: "127.0.0.1:7171", "https://..." */
	char host[ADDRESS_TEXT]; /* "" for a unix socket */
	char port[8];
	char path[108]; /* "" for TCP */
	bool tls;
	struct tls_context *context; /* TLS settings, if tls; set by the caller of address_parse and borrowed */

	/* The token of every request; NULL = none. The caller of address_parse sets it; it is borrowed. */
	const char *token;
};

/* Returns SLU_EINVAL, with the expected form, if the text is not an address. */
int address_parse(struct address *a, const char *text, struct slu_err *err);

/* The value of the Host field: text without its scheme. */
const char *address_authority(const struct address *a);

/* The end of a wait: a deadline on the monotonic clock, and descriptors that become readable when the
 * wait is cancelled. */
struct patience {
	slu_time deadline; /* or SLU_NEVER */
	int stop_fd;       /* the caller's descriptor; -1 = none */
	int client_fd;     /* the client's descriptor; 0 = none */
};

/*
 * Connects. *fd is nonblocking, close-on-exec, and without Nagle's delay. Returns SLU_EDOWN if no server
 * answers (the text has the reason and how to start a server), or SLU_ETIMEOUT or SLU_ECANCELED if the
 * wait ended.
 */
int address_connect(const struct address *a, const struct patience *until, int *fd,
		    struct slu_err *err);

/* Waits until fd is readable or writable (POLLIN, POLLOUT). Returns 0, SLU_ETIMEOUT or SLU_ECANCELED,
 * without a text. */
int patience_wait(const struct patience *until, int fd, short events);

#endif
