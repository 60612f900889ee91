#include "peer/hello.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#define LABEL "sluice peer"

enum {
	TEXT = sizeof LABEL + 2 + 2 * HELLO_LIFE + 2 * HELLO_NONCE + HELLO_BINDING
};

static uint8_t *
add(uint8_t *at, const void *bytes, size_t n)
{
	memcpy(at, bytes, n);
	return at + n;
}

bool
hello_proof(const struct hello *h, enum hello_role role, uint8_t out[static HELLO_PROOF])
{
	const uint8_t head[2] = { (uint8_t)role, h->version };
	uint8_t text[TEXT], *at = text;
	unsigned n = 0;

	at = add(at, LABEL, sizeof LABEL);
	at = add(at, head, sizeof head);
	at = add(at, h->caller, HELLO_LIFE);
	at = add(at, h->owner, HELLO_LIFE);
	at = add(at, h->caller_nonce, HELLO_NONCE);
	at = add(at, h->owner_nonce, HELLO_NONCE);
	at = add(at, h->binding, HELLO_BINDING);
	return HMAC(EVP_sha256(), h->secret, HELLO_SECRET, text, (size_t)(at - text), out, &n) &&
	       n == HELLO_PROOF;
}

bool
hello_is_proof(const struct hello *h, enum hello_role role, const uint8_t proof[static HELLO_PROOF])
{
	uint8_t right[HELLO_PROOF];

	return hello_proof(h, role, right) && CRYPTO_memcmp(right, proof, HELLO_PROOF) == 0;
}
