/*
 * members.h - which nodes of a store live, and which node owns which shard.
 *
 *      node A                    store                      node B
 *        │ beat 7 ──────────────> node/A: beat 7, owns 0, 2
 *        │                        node/B: beat 3, owns 1 <── beat 3 │
 *        │ list, read ──────────> all node objects <──── list, read │
 *        │                                                          │
 *        x  (A dies)              node/A: beat 9 all the time       │
 *                                        one lease later:           │
 *                                        B takes 0 and 2 (line.h) <─┘
 *
 * Every node sends beats: it replaces its object in the store (beat.h) five times in a lease.
 * Every node reads the objects of the other nodes as often. A node whose number does not rise for
 * a lease is dead. The line of a shard decides which node owns it; beats only say when to try, so a
 * wrong guess costs time and never a message.
 *
 *  LINE-12 Beats. `now` is the boot clock of the machine: it counts while the machine sleeps. Wall
 *          clocks are never used.
 *          a  A lease runs from the moment when a beat was sent.
 *          b  An observer counts the silence of a node from the reply that showed its newest beat
 *             to the sending of a later read that shows no higher one.
 *          c  An observer counts only while its own beats and reads succeed. After a failure, or
 *             half a lease without success, it counts a full lease anew.
 *          d  A beat whose number does not rise proves nothing: a store may execute a late put.
 *          e  From a living owner no node takes. The owner hands the shard over to the node that
 *             has ranked first for hand_over (30 s). Nodes rank by a hash of their name and the
 *             number of the shard, so a node gets its shards back after a restart.
 *          f  From a dead owner the living node that ranks first takes at once; the second after
 *             two rank_delay, the k-th after k.
 *          g  A node that drains ranks behind all others. While a node lives that does not drain,
 *             it takes nothing and hands over its shards at once. A node that leaves takes nothing
 *             and hands over in any case. A shard that its owner has closed (`given`) counts like a
 *             shard of a dead owner.
 *          h  An opening is put only behind a group whose node is dead, has given the shard, or
 *             is this node: members_may_take. So an observer with an old view takes nothing.
 *          i  The former life of this node has ended, as the caller knows. Its shards count like
 *             shards of a dead owner, without waiting for a lease.
 *          j  A node that has put an opening and does not serve the shard, since its folder is refused
 *             or its disk is full, waits before it tries again: rank_delay, then twice as long each
 *             time, at most 16 rank_delay, until a node serves the shard. Openings are never removed,
 *             so they must stay few.
 *          k  A shard with a front folder (LINE-17 of line.h) stays at the node that has the folder. That
 *             node takes the shard at once, whatever its rank, and closes it only when it leaves. Other
 *             nodes cannot take it; they try again ever more rarely, as in j.
 *          l  An observer that misses an object that it has seen counts a full lease anew for its node.
 *             Somebody has removed the object as old, and not every store can remove an object only if
 *             it has not changed: the node may have been back with a beat that nobody has read. A node
 *             that lives sends its object again within that lease.
 *          m  The node of a lease that has run out, while another node may live, lets no op wait: the
 *             shard may be elsewhere, and with it what the op waits for (broker/lane.h LANE-20).
 *  LINE-13 Answers. A node may answer without a put for two thirds of a lease after it sent its
 *          last beat that is in the store. If a lease ran out before, another node may have taken
 *          its shards: then each shard first needs a put that was sent after the first new beat.
 *  LINE-16 Versions. Nodes write only what the oldest living node can read. A format counts once it is
 *          in the settings of the store, because a node that cannot read it does not join then. A
 *          node raises the settings when an op first needs the format and all living nodes can read it.
 *
 * A shard in the view of its node:
 *
 *             MEMBERS_TAKE               members_opened
 *      none ───────────────> taking ──────────────────────> owned
 *       ^                      │                             │ MEMBERS_HAND_OVER, MEMBERS_LOST
 *       │    members_closed    v       members_closed        v
 *       └──────────────────────┴──────────────────────── closing
 *
 * A pure state machine, like line.h: members_next gives requests, members_reply takes results,
 * members_event says what to do.
 *
 *         while (members_next(m, now, &request))
 *                 send it to the store; the result goes to members_reply
 *         while (members_event(m, now, &event))
 *                 take, close or publish a shard
 *         sleep until members_due(m) or a result
 *
 * Every request must be answered; a time-out is LINE_FAILED. One thread owns a struct members.
 */
#ifndef MEMBERS_MEMBERS_H
#define MEMBERS_MEMBERS_H

#include "line/line.h"
#include "members/beat.h"

struct members;

struct members_conf {
	uint8_t life[LINE_LIFE];   /* drawn at start */
	uint8_t former[LINE_LIFE]; /* LINE-12 i; zeros = none */
	const char *name;          /* 1 to BEAT_NAME_MAX bytes; texts are kept by the caller */
	const char *address;       /* 1 to BEAT_ADDRESS_MAX bytes */
	uint16_t port;             /* where other nodes reach this node; 0 = none */
	const char *version;       /* at most BEAT_VERSION_MAX bytes */
	uint32_t shards;           /* settings.h; 1 to BEAT_SHARDS_MAX */
	uint32_t format;           /* settings.h: every node of the store can read it */
	uint32_t writes;           /* the highest format that this program can write */
	uint32_t reads;            /* the highest format that this program can read */
	slu_time lease;            /* 0 = 5 s */
	slu_time hand_over;        /* 0 = 30 s */
	slu_time rank_delay;       /* 0 = 1 s */
	slu_time forget;           /* an object of a dead node is removed after this time; 0 = 1 h */

	/* LINE-12 k: whether this node has the front folder of the shard. NULL = it has no front folder. */
	bool (*is_pinned)(void *arg, uint32_t shard);
	void *arg;
};

/* Returns SLU_ENOMEM. */
int members_new(struct members **out, const struct members_conf *conf);
void members_free(struct members *m); /* NULL is fine */

/* ---- Requests ---- */

/* Sets *r to the next request. Returns false if nothing has to be sent now. */
bool members_next(struct members *m, slu_time now, struct line_request *r);

void members_reply(struct members *m, unsigned slot, const struct line_answer *a, slu_time now);

/* When members_next has a request again, or members_event should be asked again. SLU_NEVER if both
 * wait for a reply. */
slu_time members_due(const struct members *m);

/* ---- What to do ---- */

enum members_event_kind {
	MEMBERS_TAKE,      /* call line_take; then members_opened or members_closed */
	MEMBERS_HAND_OVER, /* finish and close the line; then members_closed */
	MEMBERS_LOST,      /* another node owns the shard: close the line; then members_closed */
	MEMBERS_OWNER,     /* the owner has changed, or its address is known now: members_owner */
	MEMBERS_LEASE      /* of all shards: members_has_lapsed has changed */
};

struct members_event {
	enum members_event_kind kind;
	uint32_t shard;
	uint8_t life[LINE_LIFE]; /* HAND_OVER: the next owner; zeros if no other node lives */
};

/* Sets *e to the next event. Returns false if there is nothing to do. */
bool members_event(struct members *m, slu_time now, struct members_event *e);

/* Whether an opening may be put behind a group of this life (LINE-12 h): for line_conf.may_take. */
bool members_may_take(struct members *m, uint32_t shard, const struct line_group *newest, slu_time now);

/* The line of the shard is open: line_conf.opened. Returns false if beats have said that this node
 * gave the shard in this epoch, since an earlier opening had no known outcome: then the caller
 * closes the line, and the next attempt has a higher epoch. */
bool members_opened(struct members *m, uint32_t shard, uint64_t epoch);

/* The line of the shard is closed and appends nothing more. epoch: line_facts.put_epoch. */
void members_closed(struct members *m, uint32_t shard, uint64_t epoch, slu_time now);

/* The node drains (LINE-12 g). false ends that. */
void members_drain(struct members *m, bool drain);

/* The node drains and leaves: for a clean stop. It does not end. */
void members_leave(struct members *m);

/* Whether a node that drains owns nothing: its shards are closed, and the store has a beat that says
 * so. A node that leaves may stop then. */
bool members_is_drained(const struct members *m);

/* ---- What holds ---- */

/* Whether the owner of a shard may answer without a put (LINE-13). proved: line_facts.proved. */
bool members_is_fresh(const struct members *m, slu_time proved, slu_time now);

/* LINE-12 m, as the last MEMBERS_LEASE told it. */
bool members_has_lapsed(const struct members *m);

/* The highest format that every living node can read, at least the format of the settings (LINE-16). */
uint32_t members_format(const struct members *m);

struct members_node {
	uint8_t life[LINE_LIFE];
	const char *name; /* texts are valid until the next call of members_reply */
	const char *address;
	uint16_t port; /* where other nodes reach it, at the host of its address; 0 = none */
	const char *version;
	uint64_t beat;   /* 0 = known from a line alone */
	slu_time since;  /* boot time of the reply that showed its newest beat; of this node: when its
			  * newest beat in the store was sent; 0 = never */
	uint32_t shards; /* how many shards it owns, by beats and lines */
	bool self;
	bool living; /* it has not been silent for a lease */
	bool draining;
};

/* Sets *out to a living node that cannot read the format. Returns false if no node is known that cannot. */
bool members_oldest(const struct members *m, uint32_t format, struct members_node *out);

/* The node at index i, for people: 0 is this node. Returns false behind the last. */
bool members_node(const struct members *m, uint32_t i, struct members_node *out);

/* Sets *out to the node that ranks first for the shard among those that may own one: the next owner.
 * Returns false if every node is dead or drains. */
bool members_next_owner(const struct members *m, uint32_t shard, struct members_node *out);

/* What this node does with its copy of a shard. */
enum members_role {
	MEMBERS_OPEN,  /* the node owns the shard, takes it or closes it; or no living node owns the shard */
	MEMBERS_NEXT,  /* another node owns the shard; if that node dies, this node ranks first */
	MEMBERS_OTHER, /* another node owns the shard, and another node is next */
};

enum members_role members_role(const struct members *m, uint32_t shard);

/* Sets *out to the owner of the shard and returns its epoch. If no living node owns the shard, it
 * returns 0 and sets *out to the node that ranks first: the likely next owner. */
uint64_t members_owner(const struct members *m, uint32_t shard, struct members_node *out);

#endif
