/*
 * pause.h - a stream that outlives the owner of its shard (PEER-5): it asks again a little later.
 *
 *      op ──> SLU_EMOVED, SLU_EUNKNOWN ── 200 ms ──> op at the next owner
 */
#ifndef API_PAUSE_H
#define API_PAUSE_H

#include "api/apicall.h"

/* Calls go_on(a) on the loop of the call after 200 ms. *n counts the pauses in a row; the caller sets it to 0 after an
 * answer. Returns false if the stream ends: its op has failed otherwise, the client is gone, the server stops or has
 * no links to other nodes, 300 pauses were not enough, or memory is out. */
bool pause_stream(struct apicall *a, unsigned *n, void (*go_on)(struct apicall *a));

/* For go_on: whether the client is gone, or the server stops. */
bool pause_is_in_vain(const struct apicall *a);

#endif
