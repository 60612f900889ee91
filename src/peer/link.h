/*
 * link.h - one end of a connection between two nodes, without sockets or clocks.
 *
 *      bytes in  ──> link_take ──> hello, frames ──> link_events: asked, answered, ...
 *      bytes out <── link_give <── frames <── link_ask, link_answer, link_cancel
 *
 * The caller sends the questions of ops, the owner of the shard answers them in any order. A message (a
 * question or an answer: op_codec.h) travels in frames of at most LINK_FRAME bytes. Messages that are
 * on their way take turns, so a large message does not delay the others.
 *
 * A frame, little-endian:
 *      0  1  type: enum link_frame
 *      1  1  flags: 1 = the message goes on in another frame
 *      2  2  zero
 *      4  4  length of what follows the head
 *      8  8  number of the op, 1 or more; 0 in frames of the link itself
 *
 *  LINK-1  An op is written to one link once (PEER-1). `began` is set when the first frame of its
 *          question leaves. When the link breaks, an op that has not begun has not happened; an op
 *          that has begun and has no answer may have.
 *  LINK-2  Nothing but the hello is sent or accepted before both nodes have proved themselves.
 *  LINK-3  An op has one answer: ANSWER, or NOT_OWNER if nothing has happened. A cancel changes
 *          nothing about that.
 *  LINK-4  Frames and messages have a largest size, and a link has a largest number of ops and of bytes
 *          of messages that are not whole. The other end breaks the link if it exceeds them, if a
 *          frame is malformed or out of place, or if it is silent for LINK_SILENCE while something is
 *          expected of it. A caller that expects nothing good of the other node is less patient: LINK_HURRY.
 *  LINK-5  After LINK_STOP the caller asks nothing more on this link. Ops that have not begun leave the
 *          link as if the owner had answered NOT_OWNER; ops on their way are answered.
 *
 * One thread at a time.
 */
#ifndef PEER_LINK_H
#define PEER_LINK_H

#include "base/list.h"
#include "peer/hello.h"
#include "peer/peer_bytes.h"
#include "peer/target.h"

enum {
	LINK_VERSION = 1,
	LINK_HEAD = 16,
	LINK_FRAME = 64 << 10,   /* bytes of a frame behind its head */
	LINK_GIVE = 256 << 10,   /* link_give writes about so much at once */
	LINK_OPS = 65536,        /* ops on their way */
	LINK_PARTIAL = 256 << 20 /* bytes of messages that are not whole */
};

#define LINK_HELLO_TIME (5 * SLU_SEC)  /* for the hello */
#define LINK_PING       (2 * SLU_SEC)  /* a link with ops that is silent for so long sends a ping */
#define LINK_SILENCE    (10 * SLU_SEC) /* LINK-4 */
#define LINK_HURRY      (4 * SLU_SEC)  /* LINK-4: two pings */

enum link_frame {
	LINK_HELLO = 1, /* caller: "sluicepr", version, life, nonce */
	LINK_CHALLENGE, /* owner: version, nonce */
	LINK_PROOF,     /* proof */
	LINK_ASK,       /* caller: a question */
	LINK_CANCEL,    /* caller: the op need not wait any longer */
	LINK_ANSWER,    /* owner: the answer */
	LINK_NOT_OWNER, /* owner: another node owns the shard; nothing has happened. Empty, or a hint: peer/target.h */
	LINK_STOP,      /* owner: LINK-5 */
	LINK_IS_THERE,  /* both: answer with LINK_IS_HERE */
	LINK_IS_HERE,   /* both */
	LINK_FRAMES
};

struct peer_link;

/* An op on its way. The maker owns the memory, and embeds it in a struct of its own. */
struct link_op {
	uint64_t number; /* on this link */
	bool began;      /* LINK-1 */

	/* inner */
	struct list node; /* in link.sending */
	struct slice message;
	size_t sent;   /* bytes of the message that have left */
	bool canceled; /* a CANCEL follows the question */
};

/* What happens on a link. Called from link_take. */
struct link_events {
	/* Both nodes have proved themselves. NULL: not called. */
	void (*opened)(struct peer_link *l);

	/* The owner: a question. Takes the message. Calls link_accept, or link_not_owner. */
	void (*asked)(struct peer_link *l, uint64_t number, struct peer_bytes *message);

	/* The owner: the op need not wait any longer. */
	void (*canceled)(struct peer_link *l, struct link_op *op);

	/* The caller: the answer; the op has left the link. Takes the message. */
	void (*answered)(struct peer_link *l, struct link_op *op, struct peer_bytes *message);

	/* The caller: NOT_OWNER; the op has left the link. hint: NULL if the other node has none. */
	void (*denied)(struct peer_link *l, struct link_op *op, const struct peer_target *hint);

	/* The caller: LINK-5. NULL: not called. */
	void (*stopped)(struct peer_link *l);
};

struct link_conf {
	enum hello_role role;
	const struct link_events *events;
	const uint8_t *secret;      /* HELLO_SECRET bytes; borrowed */
	uint8_t life[HELLO_LIFE];   /* of this node */
	uint8_t other[HELLO_LIFE];  /* the caller: of the node that it calls */
	uint8_t nonce[HELLO_NONCE]; /* random */
};

struct peer_link {
	struct hello hello;
	enum hello_role role;
	const struct link_events *events;
	enum link_state {
		LINK_AWAITS_HELLO, /* the owner */
		LINK_AWAITS_CHALLENGE,
		LINK_AWAITS_PROOF,
		LINK_OPEN,
		LINK_BROKEN
	} state;
	struct slu_err err;     /* why it is broken */
	bool stopping;          /* LINK-5 */
	bool hurried;           /* link_hurry */
	slu_time began;         /* when it was made */
	slu_time received;      /* when the last byte came */
	slu_time pinged;        /* when the last ping was sent */
	slu_time ticked;        /* when link_tick was last called */
	uint64_t last;          /* the caller: number of the last op */
	struct link_op **slots; /* ops on their way, at their number modulo n_slots */
	uint32_t n_slots;       /* a power of 2 */
	uint32_t ops;           /* how many */
	uint32_t leaving;       /* where link_leave goes on */
	struct list sending;    /* struct link_op: messages in turn */
	struct buf control;     /* frames without a message, to send next */
	struct buf in;          /* a frame that is not whole */
	struct list partial;    /* struct link_partial: messages that are not whole */
	size_t partial_bytes;
};

void link_init(struct peer_link *l, const struct link_conf *conf, slu_time now);

/* HELLO-4: the link is in a TLS session. Before link_take and link_give. */
void link_bind(struct peer_link *l, const uint8_t binding[static HELLO_BINDING]);

/* The connection is lost, for this reason. */
void link_lose(struct peer_link *l, const char *why);

/* Frees the memory of the link. Ops that are still on the link belong to the maker. A zeroed link is fine. */
void link_release(struct peer_link *l);

/* Bytes came. Returns a code if the link is broken: the caller of this closes the connection. */
int link_take(struct peer_link *l, const char *p, size_t n, slu_time now);

/* Appends bytes to send, whole frames, about LINK_GIVE of them at most. Returns false if there is
 * nothing to send. */
bool link_give(struct peer_link *l, struct buf *out);

static inline bool
link_is_open(const struct peer_link *l)
{
	return l->state == LINK_OPEN;
}

/* Breaks the link if the other end was silent for too long, and pings it. Returns when to call again,
 * or SLU_NEVER. */
slu_time link_tick(struct peer_link *l, slu_time now);

/* ---- The caller ---- */

/* Sends a question. The message stays in memory until `answered` or link_leave.
 *   SLU_EBUSY  the link has too many ops
 *   SLU_EDOWN  the link is broken, or LINK-5
 *   SLU_ENOMEM
 * The link need not be open yet. */
int link_ask(struct peer_link *l, struct link_op *op, struct slice message);

/* The caller's: the other node may be gone, so a silence of LINK_HURRY is enough. */
static inline void
link_hurry(struct peer_link *l, bool hurried)
{
	l->hurried = hurried;
}

/* The op need not wait any longer. It is answered all the same. */
void link_cancel(struct peer_link *l, struct link_op *op);

/* ---- The owner ---- */

/* In `asked`: the op will be answered. Returns a code if the link is broken. */
int link_accept(struct peer_link *l, struct link_op *op, uint64_t number);

/* Answers the op. The message stays in memory until link_is_sent or link_leave. */
void link_answer(struct peer_link *l, struct link_op *op, struct slice message);

/* Returns whether all frames of the answer have left: the op is no part of the link any more. */
static inline bool
link_is_sent(const struct link_op *op)
{
	return op->number == 0;
}

/* In `asked`, or of an op that was accepted; the op leaves the link. hint: the owner, if it is known; or NULL. */
void link_not_owner(struct peer_link *l, uint64_t number, const struct peer_target *hint);

/* LINK-5 */
void link_stop(struct peer_link *l);

/* ---- Both ---- */

/* Returns whether the op is on its way on this link. */
static inline bool
link_has(const struct peer_link *l, const struct link_op *op)
{
	return op->number && l->n_slots && l->slots[op->number & (l->n_slots - 1)] == op;
}

/* Takes an op out of a link that is broken or not needed any more. NULL: no op is left. */
struct link_op *link_leave(struct peer_link *l);

#endif
