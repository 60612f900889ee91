/*
 * load.h - reads the values for the rows of a table from all sources.
 *
 *      defaults  <  the file  <  variables  <  flags         the strongest source wins
 *
 *  LOAD-1  Loading finds all faults of the file, the environment and the command line before
 *      it reports any.
 *  LOAD-2  A list from a stronger source replaces the list from a weaker one. A list that the
 *      same source sets again grows.
 *  LOAD-3  A secret comes from its variable, from the file that SLUICE_..._FILE or
 *      --...-file names, or from the configuration (key or key_file). It is never
 *      the value of a flag: every user of the machine can read flags.
 */
#ifndef CONF_LOAD_H
#define CONF_LOAD_H

#include "conf/faults.h"
#include "base/option/option.h"

enum {
	OPTIONS_MAX = 128 /* rows of a table */
};

/* A flag that is not a setting. */
struct option_action {
	const char *flag; /* "--help" */
	size_t offset;    /* of a bool beside the values */
	const char *doc;
};

struct sharding; /* conf/sharding.h */

struct option_load {
	struct option_set *set;
	const struct option_action *actions; /* flag NULL ends */
	struct sharding *sharding;           /* takes the entries of shards; NULL: unknown keys */
	struct conf_faults *faults;
};

/* values and origins are zeroed; the caller releases them in any case. The row with the key
 * "config" names the file. */
void load_options(const struct option_load *l, int argc, char **argv);

/* Set one value, as from the command line. On an error the row keeps its value. */
int load_one(struct option_set *set, unsigned row, const char *value, const char *origin,
	     struct slu_err *err);

#endif
