/*
 * members_private.h - the inside of struct members, and which file does what.
 *
 *      members.c          memory, slots, own beats, questions
 *      members_watch.c    reading the other nodes: rounds, counting, which node is dead
 *      members_decide.c   ranks, and what to do with each shard
 *
 * Reading goes in rounds: list all node objects, then get each of them. A round counts if
 * every request of it succeeds.
 */
#ifndef MEMBERS_MEMBERS_PRIVATE_H
#define MEMBERS_MEMBERS_PRIVATE_H

#include "members/members.h"

enum {
	MEMBERS_BEAT,
	MEMBERS_LIST,
	MEMBERS_REMOVE,
	MEMBERS_READ,      /* the first of the slots that read node objects */
	MEMBERS_READS = 4, /* objects that are read at a time */
	MEMBERS_SLOTS = MEMBERS_READ + MEMBERS_READS,
	MEMBERS_DOUBLINGS = 4,
	MEMBERS_TRIES = 3 /* reads of an object whose sum is wrong, in one round */
};

/* A shard in the last beats of another node. */
struct member_shard {
	uint64_t epoch; /* 0 = none */
	bool given;
};

/* Another node. */
struct member {
	uint8_t life[LINE_LIFE];
	char name[BEAT_NAME_MAX + 1];
	char address[BEAT_ADDRESS_MAX + 1];
	uint16_t port; /* where other nodes reach it; 0 = none */
	char version[BEAT_VERSION_MAX + 1];
	uint64_t beat; /* 0 = its object was never read */
	uint32_t writes, reads;
	bool draining;
	struct member_shard *shards; /* by number */

	slu_time since;     /* the reply that showed this beat */
	bool dead;          /* silent for a lease while we counted */
	bool silent;        /* it was dead, and its beat has not risen since */
	bool ended;         /* LINE-12 i */
	slu_time last_read; /* sending of the last read that showed no higher beat */
	bool was_listed;    /* the last whole listing, and its read, showed the object */
	slu_time gone;      /* reply that showed that the object is gone (LINE-12 l); 0 = never */

	/* This round. */
	bool listed;
	bool wanted; /* to be read */
	unsigned tries;
};

enum members_state {
	MEMBERS_NONE,
	MEMBERS_TAKING,
	MEMBERS_OWNED,
	MEMBERS_CLOSING
};

/* A shard in the view of this node. */
struct members_shard {
	enum members_state state;
	uint64_t epoch;        /* OWNED, CLOSING; NONE: given in this epoch, 0 = never owned */
	uint64_t given;        /* the highest epoch in which beats said that it is given */
	slu_time vacant_since; /* no living node owns it; SLU_NEVER = one does */
	slu_time not_before;   /* when the next attempt may begin */
	unsigned failures;     /* attempts in a row that put an opening and served nothing (LINE-12 j) */

	uint8_t first[LINE_LIFE]; /* the node that ranks first ... */
	slu_time first_since;     /* ... since; SLU_NEVER = unknown */

	uint8_t told[LINE_LIFE]; /* owner in the last MEMBERS_OWNER */
	uint64_t told_epoch;
	bool told_address; /* its beat, and so its address, was known then */
};

struct members_slot {
	bool sent;
	slu_time sent_at;
	uint64_t failures; /* m->failures when it was sent */
	struct member *member;
	struct line_request request;
};

struct members {
	struct members_conf conf;
	struct members_shard *shards;
	struct member **nodes; /* the other nodes */
	uint32_t n_nodes, size;
	struct members_slot slots[MEMBERS_SLOTS];
	bool draining;
	bool leaving; /* also draining */

	/* Own beats. */
	uint64_t beat;
	struct buf out, out_shards;
	slu_time next_beat; /* 0 = at once */
	uint64_t changes;   /* what a beat says has changed so often */
	uint64_t sent_changes;
	uint64_t stored_changes; /* in the newest beat that the store has */
	bool has_lease;
	slu_time lease_sent;  /* when the newest beat that the store has was sent */
	slu_time lease_since; /* reply of the first beat in an unbroken chain of leases */
	bool lapsed;          /* LINE-12 m, as the last MEMBERS_LEASE told it */

	/* Counting: LINE-12 c. */
	uint64_t failures; /* of our own */
	bool beat_ok;      /* since the last failure */
	bool round_ok;
	bool counting;
	slu_time counting_since;
	slu_time last_beat_ok, last_round_ok;

	/* A round. */
	bool in_round, listing, round_failed;
	bool ever_read; /* a round has succeeded since the start */
	slu_time round_sent;
	slu_time next_round;
	uint64_t round_failures; /* m->failures when it began */
	char after[LINE_NAME_MAX];
};

slu_time members_interval(const struct members *m);

/* ---- members.c ---- */
struct members_slot *members_send(struct members *m, unsigned slot, enum line_verb verb, slu_time now);

/* ---- members_watch.c ---- */

/* A beat or read of our own has failed: counting begins anew. */
void members_failed(struct members *m);

/* Notices half a lease without success. Every function with `now` calls it first. */
void members_watch(struct members *m, slu_time now);

/* Counting begins when a beat and a round have succeeded since the last failure. */
void members_succeeded(struct members *m, slu_time now);

/* When the next round begins: each interval, and when a node has been silent for a lease. */
slu_time members_round_due(const struct members *m);

/* Sends the next request of a round; sets *slot to its slot. */
bool members_watch_next(struct members *m, slu_time now, unsigned *slot);
void members_watch_reply(struct members *m, unsigned slot, const struct line_answer *a, slu_time now);

/* The node of this life, added if it is unknown. NULL if there is no memory. */
struct member *members_know(struct members *m, const uint8_t life[LINE_LIFE], slu_time now);

/* ---- members_decide.c ---- */

/* A claim to a shard: the highest epoch counts. */
struct members_claim {
	uint64_t epoch;        /* 0 = no claim is known */
	struct member *member; /* NULL = this node */
	bool given;
};

struct members_claim members_claim(const struct members *m, uint32_t shard);

/* When the lease runs out and another node may take the shards; SLU_NEVER: no other node lives. */
slu_time members_lapses(const struct members *m);

/* The node that ranks first for the shard: NULL = this node. *found is false if no node may take
 * it. */
struct member *members_first(const struct members *m, uint32_t shard, bool *found);

#endif
