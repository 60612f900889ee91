/*
 * count_engine.h - an engine of one page: messages in memory, and runs counted.
 *
 * It shows what a new engine needs, and runs through the suite of all engines. Its run returns
 * ENGINE_LATER, and a test decides when and how commit ends.
 */
#ifndef TESTS_COUNT_ENGINE_H
#define TESTS_COUNT_ENGINE_H

#include "engine/engine.h"

extern const struct engine_ops engine_count;

/* engine_conf.options */
struct count_conf {
	uint32_t from; /* the number of runs before the first */
};

/* from, and one for each run since open. */
uint64_t count_runs(const struct engine *e);

/* From now on commit returns ENGINE_LATER. */
void count_hold(struct engine *e);

/* From now on commit returns rc: 0, or a code with the text "the store is gone". Calls poke. */
void count_release(struct engine *e, int rc);

/* From now on `rest` returns this. */
void count_rest(struct engine *e, slu_time rest);

#endif
