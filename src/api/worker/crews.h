/*
 * crews.h - the crew of a queue: how many workers it has, and their slots together. For lists of queues.
 *
 *      worker ── its beats ──> the queues that it names ──> {n, slots, used} of each
 *
 * A part of the register (api/worker/workers.h), which owns it and holds its mutex. A queue without workers has no crew.
 */
#ifndef API_WORKER_CREWS_H
#define API_WORKER_CREWS_H

#include "base/bytes.h"
#include "base/hash.h"
#include "base/map.h"

enum {
	CREWS_MAX = 20000 /* queues with workers; a worker does not show further ones */
};

struct queue_crew {
	uint32_t n; /* workers */
	uint32_t slots, used;
};

struct crews {
	const struct hash_key *secret; /* borrowed */
	struct map by_queue;
	struct crew_row **at; /* by handle; NULL: free */
	uint32_t room, n;
	uint32_t first_free; /* no place before it is free */
};

void crews_init(struct crews *c, const struct hash_key *secret);
void crews_release(struct crews *c);

/* A worker joins the crew of a queue. Returns false if there is no room or no memory. */
bool crews_join(struct crews *c, struct slice space, struct slice queue, struct queue_crew worker);

/* The worker, which has joined as `was`, leaves. */
void crews_leave(struct crews *c, struct slice space, struct slice queue, struct queue_crew was);

/* Zeros if the queue has none. */
struct queue_crew crews_of(const struct crews *c, struct slice space, struct slice queue);

#endif
