/*
 * beat.h - the object of a node in a store: who it is, and that it lives.
 *
 *      node/0123456789abcdef0123456789abcdef      one for each life of a node
 *
 * A node replaces its object again and again; each time the number `beat` is one higher. A
 * node that reads an object with a higher number than before knows that the other node
 * lived a moment ago (members.h). A store may execute a late put of an older object, so
 * a number that does not rise proves nothing.
 *
 * Little-endian:
 *      0   8  "sluicend"
 *      8   4  sum: CRC-32C of the object from byte 12 to its end
 *      12  4  flags: 1 = the node drains: it takes no shards and gives its shards away
 *      16 16  life: 128 random bits, drawn when the node starts
 *      32  8  beat, 1 or more
 *      40  4  writes: the highest format that the node can write
 *      44  4  reads: the highest format that the node can read
 *      48  2  length of the name
 *      50  2  length of the address
 *      52  2  length of the version
 *      54  2  port where other nodes reach the node, at the host of its address; 0 = none
 *      56  4  number of shards
 *      60  4  zero
 *      64 16n for each shard, in the order of their numbers:
 *             0   4  number of the shard
 *             4   4  flags: 1 = given: the node has closed the shard, any node may take it
 *             8   8  epoch in which the node owns the shard, or owned it
 *      ..  .. name, address, version
 *
 * Pure: no memory of its own, no I/O.
 */
#ifndef MEMBERS_BEAT_H
#define MEMBERS_BEAT_H

#include "line/object.h"

enum {
	BEAT_HEAD = 64,
	BEAT_SHARD = 16, /* bytes of a shard */
	BEAT_SHARDS_MAX = 1024,
	BEAT_NAME_MAX = 64,
	BEAT_ADDRESS_MAX = 256,
	BEAT_VERSION_MAX = 32,
	BEAT_MAX = BEAT_HEAD + BEAT_SHARD * BEAT_SHARDS_MAX + BEAT_NAME_MAX + BEAT_ADDRESS_MAX +
		   BEAT_VERSION_MAX
};

#define BEAT_PREFIX "node/"

struct beat {
	bool draining;
	uint8_t life[LINE_LIFE];
	uint64_t number;
	uint32_t writes;      /* the highest format that the node can write */
	uint32_t reads;       /* the highest format that the node can read */
	struct slice name;    /* 1 to BEAT_NAME_MAX bytes; borrowed, as all slices here */
	struct slice address; /* 1 to BEAT_ADDRESS_MAX bytes: where clients reach the node */
	uint16_t port;        /* where other nodes reach the node; 0 = none */
	struct slice version; /* at most BEAT_VERSION_MAX bytes, for people */
	uint32_t n_shards;
	struct slice shards; /* BEAT_SHARD bytes each: beat_shard_put, beat_shard */
};

/* A shard in a beat. It is a hint: the line of the shard decides. */
struct beat_shard {
	uint32_t number;
	bool given;     /* the node has closed the shard: any node may take it */
	uint64_t epoch; /* in which the node owns the shard, or owned it */
};

/* Writes the name of the object of a life. */
void beat_name(char out[LINE_NAME_MAX], const uint8_t life[LINE_LIFE]);

/* Reads the life in a name. Returns false if the name is not of a node. */
bool beat_life(uint8_t life[LINE_LIFE], const char *name);

/* Appends one shard to what will be beat.shards. */
void beat_shard_put(struct buf *out, const struct beat_shard *s);

/* The shard at index i. */
struct beat_shard beat_shard(const struct beat *b, uint32_t i);

/* Appends the object to out. out->failed if there is no memory. */
void beat_encode(const struct beat *b, struct buf *out);

/* Reads an object; the slices of b point into it. Returns SLU_ECORRUPT. */
int beat_decode(struct beat *b, struct slice object, struct slu_err *err);

#endif
