/*
 * nodes_channel.h - how the world of test_nodes_sim.c and a node talk to each other.
 *
 *      the world (one process)            a node (a process each)
 *      nodes_ask ──── struct ask ───────> handles it; goes on until it has nothing to do,
 *                                         or has to wait
 *                <─── struct node_told ──────  requests to the store, answers, facts
 *
 * A node is a process, so a fork copies it with its life, its memory and its disk, in the middle of
 * whatever it does. The world and its nodes never run at the same time: the world asks one node, and
 * waits until that node asks for more. So a schedule follows from its seed.
 */
#ifndef TESTS_SIM_NODES_CHANNEL_H
#define TESTS_SIM_NODES_CHANNEL_H

#include "line/object.h"
#include "store/pool.h"

#include <semaphore.h>

enum {
	NODES_SHARDS = 2,
	NODES_QUEUES = 4,
	NODES_ROWS = 4,   /* messages of an op */
	NODES_LIST = 200, /* rows of a look */
	NODES_REQUESTS = 96,
	NODES_REPLIES = 64,
	NODES_BYTES = 4 << 20
};

/* ---- What the world asks ---- */

enum ask_kind {
	ASK_RUN,    /* time has passed */
	ASK_ANSWER, /* a request to the store has its answer */
	ASK_POST,   /* an op of a client */
	ASK_CLONE,  /* fork: the copy answers on the channel `clone` */
	ASK_BREAK,  /* the connections to the store are gone */
	ASK_LEAVE,  /* hand all shards over */
	ASK_DIE     /* write all files of the disk to told.bytes, and end */
};

enum sim_verb {
	DO_PUSH,
	DO_CLAIM,
	DO_ACK,
	DO_NACK,
	DO_EXTEND,
	DO_LOOK,
	DO_COUNT
};

/* A message of an op. */
struct sim_item {
	uint64_t id, token, name;
	uint32_t key;  /* 0 = none */
	bool idem;     /* the name is the idempotency key */
	slu_time time; /* push: delay; extend: lease; nack: delay */
	bool dead;     /* nack */
};

struct sim_ask_op {
	uint32_t serial;
	enum sim_verb verb;
	unsigned queue;
	slu_time wait, lease;
	uint32_t n;
	uint64_t cursor; /* LOOK */
	struct sim_item items[NODES_ROWS];
};

struct ask {
	enum ask_kind kind;
	slu_time boot, wall; /* the clocks of the node */
	uint64_t request;    /* ANSWER: its number */
	enum store_result result;
	slu_time store_wall; /* ANSWER to STORE_CLOCK */
	bool more;           /* ANSWER to STORE_LIST */
	uint32_t n;          /* ANSWER: bytes of an object, or of names, each with a NUL */
	uint32_t size;       /* ANSWER to STORE_GET: of the whole object */
	unsigned clone;      /* CLONE */
	struct sim_ask_op op;
};

/* ---- What a node tells ---- */

struct told_request {
	uint64_t number;
	enum store_verb verb;
	bool replaces;
	bool broken; /* it fails before it is sent */
	char name[LINE_NAME_MAX];
	char after[LINE_NAME_MAX];
	uint64_t from; /* GET: the first byte */
	size_t max;
	uint32_t at, n; /* the object, in told.bytes */
};

struct told_row {
	uint64_t id, token, name;
	uint32_t key;
	slu_time granted, until, due;
	uint16_t attempts, failures, max_attempts;
	uint8_t state; /* enum event_state */
	int rc;
	bool damaged, died;
	bool large; /* the payload is in the store, not in the record */
};

struct told_reply {
	uint32_t serial;
	int rc;
	uint32_t n;
	uint64_t cursor;
	struct told_row rows[NODES_ROWS];
	uint32_t counts[8]; /* COUNT: enum event_state */
};

struct told_shard {
	char line[LINE_SHARD_MAX + 1]; /* name of the shard in the store */
	bool serves;
	bool takes; /* the node is taking the shard */
	uint64_t epoch, last;
	struct line_mark mark; /* of the group `last` */
};

struct node_told {
	slu_time due; /* the node has something to do then, by its boot clock */
	bool joined, left;
	uint32_t followed, emptied; /* groups that folders of other nodes' shards took; such folders that were emptied */
	char refused[128];          /* why a folder was refused; empty = it was not */
	struct told_shard shards[NODES_SHARDS];
	uint32_t n_requests, n_replies, n_list, n_bytes;
	struct told_request requests[NODES_REQUESTS];
	struct told_reply replies[NODES_REPLIES];
	struct told_row list[NODES_LIST]; /* LOOK */
	char bytes[NODES_BYTES];
};

struct channel {
	sem_t asked, answered;
	int pid;
	struct ask ask;
	char bytes[NODES_BYTES]; /* of the ask */
	struct node_told told;
};

struct node_start {
	unsigned slot;
	uint64_t random;
	uint8_t life[LINE_LIFE], former[LINE_LIFE];
	char name[8], address[8], boot[16];
	uint32_t segment_size;
	uint32_t span_groups; /* 0 = spans are too rare to be seen, and no folder follows */
	slu_time lease, hand_over, patience;
	uint32_t n_bytes; /* files of the disk, in channel.bytes */
	bool trace;
};

/* nodes_node.c: the process of a node. */
void node_main(struct channel *channels, const struct node_start *start);

/* A file of a disk in bytes: its name with a NUL, 4 bytes of length, its content. */
struct sim_image_file {
	const char *name;
	char *content;
	uint32_t n;
};

/* Takes the next file from *at on; false behind the last. */
static inline bool
sim_image_next(char *bytes, uint32_t n, uint32_t *at, struct sim_image_file *out)
{
	if (*at >= n)
		return false;
	out->name = bytes + *at;
	*at += (uint32_t)strlen(out->name) + 1;
	memcpy(&out->n, bytes + *at, sizeof out->n);
	out->content = bytes + *at + sizeof out->n;
	*at += (uint32_t)sizeof out->n + out->n;
	return true;
}

#endif
