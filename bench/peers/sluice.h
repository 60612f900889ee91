/*
 * sluice.h - HTTP requests and answers, for the two forms of the flat API: JSON and packed.
 */
#ifndef PEERS_SLUICE_H
#define PEERS_SLUICE_H

#include "peers/peer.h"

/* Writes the head of a request. Returns the offset of its body; sluice_end_post fills in the length,
 * a number of fixed width. */
size_t sluice_begin_post(struct buf *out, const char *path, const char *type);
void sluice_end_post(struct buf *out, size_t body);

/* Takes the next answer off `in`. Returns SLU_EFAILED for a refusal. body->p NULL: more bytes are
 * needed. */
int sluice_body(struct peer_conn *c, struct slice *in, struct slice *body, struct slu_err *err);

#endif
