/*
 * conn.h - one connection: bytes to calls, answers to bytes.
 *
 *      read ──> parse ──> call: reading ──> running ──> ready ──> written ──> ended
 *                │           └──── calls, in order of arrival ────┘
 *                └─ may not (64 calls, a call that holds, output that waits): keep
 *                   up to CONN_HELD bytes in `in`, then stop reading
 *
 * A turn of a connection (conn_turn) parses what may be parsed, writes what is ready,
 * and so on until neither can go on; then it rests: it decides whether it reads, what
 * it waits for and until when, and whether it is finished.
 *
 *      open ──> last: no more requests ──> all answered ──> linger ──> closed
 *        └────────────── hang-up, timeout, error ─────────────────────────^
 */
#ifndef HTTP_CONN_H
#define HTTP_CONN_H

#include "http/call.h"
#include "net/tls.h"

enum {
	CONN_HELD = 16 * 1024,      /* read ahead of what may be parsed */
	CONN_OUTPUT_LOW = 64 * 1024 /* with more output waiting nothing is parsed */
};

/* What a connection waits for; conn.c has a row for each. */
enum conn_wait {
	WAIT_CALL, /* a handler: for ever */
	WAIT_IDLE,
	WAIT_SHAKE, /* the handshake of TLS */
	WAIT_START, /* the server: conn_hold.c */
	WAIT_HEAD,
	WAIT_BODY,
	WAIT_SEND,
	WAIT_LINGER
};

struct conn {
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	} uv;
	struct front *front;
	struct tls *tls; /* NULL: plain */
	uint32_t slot;
	uint32_t generation; /* F1; 0: closed */
	unsigned listener;
	struct list node;  /* in the front's conns */
	struct list dirty; /* in the front's dirty, or in none */

	struct request request;
	struct list calls;    /* of struct call, in order of arrival */
	struct call *reading; /* the last of them, while its body is read */
	struct slice rest;    /* in a turn: what is not parsed yet */
	struct buf in;        /* between turns: the same */
	unsigned n_calls;
	unsigned n_held; /* calls that hold and are not answered */

	uv_write_t write;
	size_t writing; /* bytes given to libuv, all of the first call, or sealed; 0: none */
	size_t output;  /* bytes of ready answers that the kernel has not */

	uint8_t wait; /* enum conn_wait */
	slu_time deadline;
	uint64_t moved; /* bytes since the period began: WAIT_BODY, WAIT_SEND */

	bool reserved;  /* S5: one call, of a vital route */
	bool reads;     /* uv_read_start */
	bool in_turn;   /* answers given now are written at its end */
	bool begun;     /* a part of a head was read */
	bool last;      /* nothing more is parsed */
	bool eof;       /* the client has closed its sending side */
	bool unread;    /* bytes may be on their way that nobody wants */
	bool broken;    /* no memory for an answer: it closes in its turn */
	bool lingering; /* all is answered; bytes are thrown away */
};

/* Begin to read from a handle that was accepted; front.c has made the rest.
 * SLU_ENOMEM: close it. */
int conn_open(struct conn *c);

/* Plain bytes came: parse them in a turn. */
void conn_take(struct conn *c, const char *p, size_t n);

/* Now. Calls that run are told `gone`, others end unsent. */
void conn_close(struct conn *c);

/* Parse and write what can be, then rest. The connection may be closed after it. */
void conn_turn(struct conn *c);

/* A call of it was answered: format and queue. The turn comes later (F2). */
void conn_answer(struct conn *c, struct call *call);

/* The next piece of an answer, or that there will be none. */
void conn_piece(struct conn *c, struct call *call);

/* Its deadline has passed: closed, answered 408, or given more time. */
void conn_expire(struct conn *c);

/* --- conn_parse.c ------------------------------------------------------------ */

bool conn_may_parse(const struct conn *c);
void conn_parse(struct conn *c);

/* Answer by ourselves and read no further; reason is for machines. */
void conn_refuse(struct conn *c, unsigned status, const char *reason);

/* Its request is whole: the handler's turn. */
void conn_run(struct conn *c, struct call *call);

/* S8: count n more bytes of a body that are held; may it go on? */
void conn_charge(struct front *f, struct call *call, size_t n);
bool conn_has_memory(const struct front *f, const struct call *call);

/* --- conn_hold.c ------------------------------------------------------------- */

/* Must this call, whose head is there, wait for the server? Then it is held. */
bool conn_hold(struct conn *c, struct call *call);

static inline bool
conn_is_held(const struct conn *c)
{
	return c->reading && c->reading->awaits_start;
}

/* Of a connection whose call is held: count what was read; refuse it; let it go on. */
void conn_charge_held(struct conn *c);
void conn_refuse_held(struct conn *c, const char *reason);
void conn_go_ahead(struct conn *c);

extern const char conn_go_on[]; /* 100 Continue */

/* --- conn_body.c ------------------------------------------------------------- */

/* Set the limits of what is gathered of a body. */
void conn_begin_body(struct call *call);

/* Give the handler of the call that is being read the next piece, if there is one and it
 * is free, or tell it the end. False: nothing more is to be parsed now. */
bool conn_hand_on(struct conn *c);
bool conn_is_paused(const struct conn *c);

/* The handler is done with its piece; or it has answered. */
void conn_taken(struct conn *c, struct call *call);
void conn_end_body(struct conn *c, struct call *call);

/* --- conn_write.c ------------------------------------------------------------ */

void conn_flush(struct conn *c); /* may close it */

/* The kernel has n bytes more of the answers: those that are whole end. */
void conn_account(struct conn *c, size_t n);

/* The client's end has met what was written. */
bool conn_was_reset(const struct conn *c);

/* --- conn_tls.c --------------------------------------------------------------- */

/* Before conn_open. SLU_ENOMEM: close it. */
int conn_tls_open(struct conn *c);

/* Bytes of the wire came; and what libuv says of its end. */
void conn_tls_read(struct conn *c, const char *p, size_t n);
bool conn_tls_shaking(const struct conn *c);

/* Seal what is gathered and write it. Returns how many plain bytes the kernel has
 * whole, or an error of libuv; what it did not take is left to libuv. */
ssize_t conn_tls_write(struct conn *c, const uv_buf_t *bufs, unsigned n);

/* What the protocol has to say by itself. */
void conn_tls_flush(struct conn *c);

/* Say that it is over, if all was answered; one attempt. */
void conn_tls_bye(struct conn *c);

#endif
