/*
 * hello.h - how two nodes of a store prove themselves to each other: PEER-4.
 *
 *      caller                                       owner
 *        │ HELLO      version, life, nonce ──────────> │
 *        │ <────────── CHALLENGE       version, nonce  │
 *        │ PROOF      of the caller ─────────────────> │  a wrong proof ends the connection
 *        │ <────────── PROOF             of the owner  │
 *
 * A proof is HMAC-SHA256 by the secret of the store over: the role of the node that proves itself, the
 * version, both lives, both nonces, and the binding to TLS. The secret is never sent.
 *
 *  HELLO-1  A proof holds for one connection: both nodes draw a nonce for it.
 *  HELLO-2  A proof holds for one role: a node that gets its own proof back refuses it.
 *  HELLO-3  A proof holds for two lives: it cannot be passed on to a third node.
 *  HELLO-4  With TLS, a proof holds for one session of TLS: `binding` is the key that both ends export.
 *  HELLO-5  The owner proves itself last: a stranger gets no proof.
 */
#ifndef PEER_HELLO_H
#define PEER_HELLO_H

#include <sluice/api.h>

#include <stdbool.h>
#include <stdint.h>

enum {
	HELLO_SECRET = 32,
	HELLO_LIFE = 16,
	HELLO_NONCE = 32,
	HELLO_BINDING = 32,
	HELLO_PROOF = 32
};

enum hello_role {
	HELLO_CALLER = 1, /* the node that connects and sends ops */
	HELLO_OWNER = 2   /* the node that runs them */
};

struct hello {
	const uint8_t *secret; /* HELLO_SECRET bytes; borrowed */
	uint8_t version;
	uint8_t caller[HELLO_LIFE];
	uint8_t owner[HELLO_LIFE];
	uint8_t caller_nonce[HELLO_NONCE];
	uint8_t owner_nonce[HELLO_NONCE];
	uint8_t binding[HELLO_BINDING]; /* zeros without TLS */
};

/* Writes the proof of one role. Returns false if libcrypto fails. */
bool hello_proof(const struct hello *h, enum hello_role role, uint8_t out[static HELLO_PROOF]);

/* Returns whether the proof is right; takes the same time for every wrong one. */
bool hello_is_proof(const struct hello *h, enum hello_role role, const uint8_t proof[static HELLO_PROOF]);

#endif
