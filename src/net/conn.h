/*
 * conn.h - one connection: bytes to exchanges, answers to bytes, in any protocol.
 *
 *      read ──> parse ──> exchange: reading ──> running ──> ready ──> written ──> ended
 *                │               └──── in order of arrival ────┘
 *                └─ may not (64 exchanges, one that holds, output that waits): keep up to
 *                   CONN_HELD bytes in `in`, then stop reading
 *
 * A turn of a connection (conn_turn) parses what may be parsed and writes what is ready
 * until neither can go on. Then the connection rests: it decides whether to read, what to
 * wait for and until when, and whether it is finished.
 *
 *      open ──> last: no more requests ──> all answered ──> linger ──> closed
 *        └────────────── hang-up, timeout, error ─────────────────────────^
 *
 * For the files of net/ and for protocols (net/protocol.h). On the loop's thread.
 */
#ifndef NET_CONN_H
#define NET_CONN_H

#include "net/exchange.h"
#include "net/tls.h"

enum conn_refusal;

enum {
	CONN_HELD = 16 * 1024,      /* bytes read ahead of what may be parsed */
	CONN_OUTPUT_LOW = 64 * 1024 /* with more output waiting nothing is parsed */
};

/* What a connection waits for; conn.c has the time of each. */
enum conn_wait {
	WAIT_HANDLER, /* without limit */
	WAIT_IDLE,    /* for a request */
	WAIT_SHAKE,   /* for the TLS handshake */
	WAIT_START,   /* for the server: conn_hold.c */
	WAIT_HEAD,    /* for the rest of the beginning of a request */
	WAIT_BODY,    /* for the rest of a request */
	WAIT_SEND,    /* for the client to read */
	WAIT_LINGER   /* for the client to close */
};

/* A socket of TCP or a unix socket. */
union net_handle {
	uv_handle_t handle;
	uv_stream_t stream;
	uv_tcp_t tcp;
	uv_pipe_t pipe;
};

struct conn {
	union net_handle uv;
	struct front *front;
	struct front_protocol *protocol;
	struct tls *tls; /* NULL: plain */
	uint32_t slot;
	uint32_t generation; /* NETFRONT-1; 0: closed */
	unsigned listener;
	struct list node;  /* in the front's conns */
	struct list dirty; /* in the front's dirty, or in no list */

	struct list exchanges;    /* of struct exchange, in order of arrival */
	struct exchange *reading; /* the last of them, while its request is read */
	struct slice rest;        /* in a turn: the bytes that are not parsed yet */
	struct buf in;            /* between turns: the same */
	unsigned n_exchanges;
	unsigned n_held; /* exchanges that hold and are not answered */

	uv_write_t write;
	size_t writing; /* bytes given to libuv, all of the first exchange, or sealed; 0: none */
	size_t output;  /* bytes of ready answers that the kernel does not have */

	uint8_t wait; /* enum conn_wait */
	slu_time deadline;
	uint64_t moved; /* bytes since the period began: WAIT_BODY, WAIT_SEND */

	bool reserved;  /* SERVER-5: one exchange, a vital one */
	bool reads;     /* uv_read_start */
	bool in_turn;   /* answers given now are written at its end */
	bool begun;     /* a part of a request was parsed */
	bool last;      /* nothing more is parsed */
	bool eof;       /* the client has closed its sending side */
	bool unread;    /* bytes may arrive that are not read */
	bool broken;    /* no memory for an answer: the connection closes in its turn */
	bool lingering; /* all is answered; bytes are thrown away */
};

/* Begin to read from an accepted handle; front_accept.c has set the rest. On SLU_ENOMEM
 * the caller closes it. */
int conn_open(struct conn *c);

/* Plain bytes arrived: parse them in a turn. */
void conn_take(struct conn *c, const char *p, size_t n);

/* Closes at once. `gone` runs for exchanges that run; others end unsent. */
void conn_close(struct conn *c);

/* Parse and write what is possible, then rest. The connection may be closed after it. */
void conn_turn(struct conn *c);

/* An exchange was answered: format and queue. The turn comes later (NETFRONT-2). */
void conn_answer(struct conn *c, struct exchange *x);

/* The next piece of an answer is there, or the answer is broken. */
void conn_piece(struct conn *c, struct exchange *x);

/* The deadline has passed: close, refuse, or give more time. */
void conn_expire(struct conn *c);

/* --- for protocols ------------------------------------------------------------ */

/* Adds an exchange behind all others. NULL: no memory. */
struct exchange *conn_add(struct conn *c);

/* Whether the bytes are in the memory of the last read, and so few follow in c->rest that they can move: then
 * conn_swap_read may take that memory. */
bool conn_may_swap(const struct conn *c, struct slice bytes);

/* Takes the memory of the last read, so that what is in it need not be copied: FRONT_READ + 1 bytes, for the caller to free.
 * `instead` has the same size and belongs to the front now; c->rest moves there. */
char *conn_swap_read(struct conn *c, char *instead);

/* SERVER-8: count n more bytes of a request. */
void conn_charge(struct front *f, struct exchange *x, size_t n);

/* SERVER-8: may this exchange be read on? */
bool conn_has_memory(const struct front *f, const struct exchange *x);

/* --- conn_hold.c: SERVER-10 --------------------------------------------------- */

/* True if the exchange has to wait for the server: it is held. */
bool conn_hold(struct conn *c, struct exchange *x);

static inline bool
conn_is_held(const struct conn *c)
{
	return c->reading && c->reading->awaits_start;
}

/* Of a connection whose exchange is held: count what was read; refuse it; let it go on. */
void conn_charge_held(struct conn *c);
void conn_refuse_held(struct conn *c, enum conn_refusal why);
void conn_go_ahead(struct conn *c);

/* --- conn_write.c ------------------------------------------------------------- */

void conn_flush(struct conn *c); /* may close it */

/* The kernel has bytes of the first answer that is not whole yet, however few. */
void conn_touch(struct conn *c);

/* The kernel has n bytes more of the answers: whole answers end. */
void conn_account(struct conn *c, size_t n);

/* True if the client closed before it read what was written. */
bool conn_was_reset(const struct conn *c);

/* --- conn_tls.c --------------------------------------------------------------- */

/* Before conn_open. On SLU_ENOMEM the caller closes it. */
int conn_tls_open(struct conn *c);

/* Sealed bytes arrived. */
void conn_tls_read(struct conn *c, const char *p, size_t n);
bool conn_tls_shaking(const struct conn *c);

/* Seal the gathered bytes and write them. Returns how many plain bytes the kernel has
 * whole, or an error of libuv; libuv writes the rest. */
ssize_t conn_tls_write(struct conn *c, const uv_buf_t *bufs, unsigned n);

/* Write what TLS itself has to send. */
void conn_tls_flush(struct conn *c);

/* Send close_notify if all is answered; one attempt. */
void conn_tls_bye(struct conn *c);

#endif
