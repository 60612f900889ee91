/*
 * protocols.h - the protocols of sluiced: a row each in protocols.c. The scheme of an
 * address in `listen` chooses one (net/protocol.h).
 */
#ifndef SERVER_PROTOCOLS_H
#define SERVER_PROTOCOLS_H

#include "base/bytes.h"
#include "net/server.h"

struct conf;
struct node;

/* Fills the protocols of a node with their settings; returns how many. The rows of n must
 * outlive its server. */
unsigned protocols_of(struct node *n, struct server_protocol out[static SERVER_PROTOCOLS]);

/* Returns true if there is a protocol of this name; empty: the first one. */
bool protocols_have(struct slice name);

/* The schemes of all protocols, "http:// or https://"; cut when it is longer than out. */
const char *protocols_schemes(char *out, size_t size);

/* Checks the settings of an address by the rules of its protocol. SLU_EINVAL. */
int protocols_check(const struct conf *conf, const char *address, bool tls, struct slu_err *err);

#endif
