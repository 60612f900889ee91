/*
 * probe.h - tests whether a store keeps STORE-1, before a server trusts it.
 *
 * Some stores accept the condition of a put and ignore it: then two servers would own one shard. A
 * probe races 32 puts of one absent name over 8 threads, 20 times. Each time one of them must win,
 * and its content must be there.
 */
#ifndef STORE_PROBE_H
#define STORE_PROBE_H

#include "store/store.h"

enum {
	PROBE_RACES = 20,
	PROBE_THREADS = 8,
	PROBE_PUTS = 4 /* of a thread in a race */
};

/* Returns STORE_OK, also for a store whose driver does not ask for a probe (store_ops.probed);
 * STORE_REFUSED if the store breaks STORE-1, or refuses requests (a wrong key, no such bucket);
 * STORE_FAILED if a race has no result because requests failed. The names of a probe begin with "probe/"; they are removed. */
enum store_result store_probe(struct store *s, struct slu_err *err);

/* Sets name to the first object of the store, "" if it has none. Objects of probes do not count: a probe
 * may be under way, or was killed. */
enum store_result store_first(struct store *s, char name[static STORE_NAME_MAX], struct slu_err *err);

#endif
