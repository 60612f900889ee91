/*
 * exchange.h - one request and its answer, in any protocol.
 *
 *      handler(x) ──> answers now ───────────────┐
 *          │                                     v
 *          └─> keeps x, any thread ──> exchange_answer ──> written in its turn ──> ended
 *                       │
 *                       └─ the client is gone: gone(x), then exchange_answer all the same
 *
 * A protocol (net/protocol.h) embeds a struct exchange in a struct of its own: an HTTP
 * call is one (http/call.h). Handlers fill `out` and answer; the connection (net/conn.h)
 * sends the answers in the order of their requests.
 *
 *  EXCHANGE-1  The handler owns an exchange from the moment it receives it until it
 *              calls exchange_answer. It may pass the exchange to any thread; one thread
 *              at a time uses it.
 *  EXCHANGE-2  Every exchange is answered exactly once, also after `gone`: then the
 *              answer is dropped, but it returns the exchange. The server cannot close
 *              before.
 *  EXCHANGE-3  `gone` runs on the loop, at most once, and exactly once if the connection
 *              closes before the answer has arrived on the loop. An answer of another
 *              thread may still be on its way: `user` must stay valid until `ended`.
 *  EXCHANGE-4  `ended` runs on the loop, exactly once, last. sent: the kernel has every
 *              byte of the answer, and the client had not closed before.
 *  EXCHANGE-5  If an exchange has `gone` and its client has closed its sending side, the
 *              client counts as gone and the connection closes. Without `gone` such a
 *              client still receives its answers.
 *  EXCHANGE-7  An answer may come in pieces. The protocol begins it (call_begin). `more`
 *              then runs on the loop whenever the kernel has all bytes given before, and
 *              the handler owns the exchange again, as in EXCHANGE-1, until it gives the
 *              next piece (exchange_piece) or gives up (exchange_break), now or later,
 *              from any thread. A slow reader costs the memory of one piece. `gone` may
 *              run at any time after the begin; `more` does not run after it.
 *
 *      handler ──> begin ──> more(x) ──> exchange_piece ──> more(x) ──> last piece ──> ended
 *
 *  EXCHANGE-8  An exchange in pieces may have parts (exchange_part): exchanges of its connection that are not in the
 *              order of its answers. When a part is answered, or gives a piece, `part` runs with it on the loop; what
 *              it does with the bytes is its own matter. It ends the part (exchange_part_end), or asks for the next
 *              piece (exchange_want_more).
 */
#ifndef NET_EXCHANGE_H
#define NET_EXCHANGE_H

#include "base/bytes.h"
#include "base/list.h"
#include "net/loop.h"

enum {
	EXCHANGE_ADDRESS = 64 /* bytes of a client's address as text, with the NUL */
};

struct front; /* the part of a server that one loop owns: net/front.h */
struct front_protocol;
struct tls_peer;

enum exchange_state {
	EXCHANGE_READING, /* its request is not whole */
	EXCHANGE_RUNNING, /* the handler owns it; also after its connection has closed */
	EXCHANGE_READY    /* answered */
};

struct exchange {
	/* What a handler reads. */
	unsigned listener; /* which of server_listen's addresses, from 0 */
	void *who;         /* the identity of the client; server_conf.dismiss releases it */

	/* What a handler may set before it returns, or leave NULL. */
	void *user;
	void (*gone)(struct exchange *x);
	void (*ended)(struct exchange *x, bool sent);
	void (*more)(struct exchange *x); /* EXCHANGE-7; as gone, may be set until the begin */

	/* For `ended` of an answer in pieces: the client closed in good order before the next
	 * `more`, and the kernel had all bytes given before. */
	bool drained;

	/* For `ended`: the kernel has bytes of the answer, or of its last piece; the client may
	 * have read them. */
	bool touched;

	/* Private to net/ and to the protocol. */
	struct loop_work work;
	struct front *front;
	struct front_protocol *protocol;
	uint32_t slot; /* of the connection; with generation, its name */
	uint32_t generation;
	struct list node; /* in the connection's exchanges, in order of arrival */
	struct exchange *next_spare;
	struct slice ahead;               /* bytes to send before the answer is ready; unsent part */
	size_t charged;                   /* bytes of its request in the front's `bodies` */
	size_t held;                      /* bytes of its answer there; of a spare: bytes of its buffers */
	size_t written;                   /* bytes of head and out that the kernel has */
	slu_time began;                   /* on the clock of the loop */
	uint8_t state;                    /* enum exchange_state */
	bool arrived;                     /* its request is whole */
	bool answered;                    /* EXCHANGE-2 */
	bool has_body;                    /* out is sent behind head */
	bool holds;                       /* exchange_hold */
	bool awaits_start;                /* SERVER-10 */
	bool exempt;                      /* never refused for memory: SERVER-8 */
	bool taking;                      /* the handler has a piece of the request; not whole yet */
	bool streams;                     /* EXCHANGE-7 */
	bool whole;                       /* the last piece was given */
	bool asks;                        /* the kernel has all pieces; `more` runs next */
	bool broke;                       /* exchange_break */
	void (*part)(struct exchange *x); /* EXCHANGE-8; NULL: not a part */
	void *part_of;                    /* for part */

	/* The answer. From here on memory is kept for later exchanges. */
	struct buf out;
	struct buf head; /* private: the protocol's bytes before out */
};

/* Who the client is by its certificate (net/tls_peer.h), or NULL. Until the handler
 * returns. */
const struct tls_peer *exchange_peer(const struct exchange *x);

/* True if the certificate that the server showed on this connection has this name. False
 * without TLS. Until the handler returns. */
bool exchange_is_named(const struct exchange *x, struct slice host);

/* True if the connection uses TLS. Until the handler returns. */
bool exchange_is_tls(const struct exchange *x);

/* The client's address: "10.0.0.7", "2001:db8::7", "unix", or "" if the client is gone. On
 * the loop. */
void exchange_address(const struct exchange *x, char out[static EXCHANGE_ADDRESS]);

/* True if a process of the server's own user, or of root, opened the unix socket of this
 * connection, by the credentials that the system keeps. False for TCP. On the loop. */
bool exchange_is_owner(const struct exchange *x);

/* The loop of the exchange's connection. */
struct loop *exchange_loop(const struct exchange *x);

/* The number of that loop's thread in the server, from 0. */
unsigned exchange_thread(const struct exchange *x);

/* server_conf.arg. */
void *exchange_arg(const struct exchange *x);

/* In the handler: the answer may take long. The connection parses nothing behind this
 * request until it is answered. */
void exchange_hold(struct exchange *x);

/* Answers with the bytes in out. Any thread; the caller no longer owns x. A protocol may
 * have a function of its own that must be used instead (call_answer). */
void exchange_answer(struct exchange *x);

/* EXCHANGE-7: out has the next piece. last: no piece follows. Only the last piece may be
 * empty. A failed buffer breaks the answer. */
void exchange_piece(struct exchange *x, bool last);

/* The answer cannot be finished: the connection closes, so that the client sees that the
 * answer is not whole. */
void exchange_break(struct exchange *x);

#endif
