/*
 * load.h - values for the rows of a table, from everywhere they may come from.
 *
 *      defaults  <  the file  <  variables  <  flags         the last one to speak wins
 *
 *  F1  All faults are found before any is reported: of the file, the environment and
 *      the command line.
 *  F2  A list that is said again by a stronger source replaces the weaker one's; said
 *      again by the same source it grows.
 *  F3  A secret comes from its variable, from the file that SLUICE_..._FILE or
 *      --...-file names, or from the configuration (key or key_file). It is never
 *      a flag itself: every user of the machine reads those.
 */
#ifndef CONF_LOAD_H
#define CONF_LOAD_H

#include "conf/faults.h"
#include "conf/option.h"

enum {
	OPTIONS_MAX = 128 /* rows of a table */
};

/* Words that ask for something and set nothing. */
struct option_action {
	const char *flag; /* "--help" */
	size_t offset;    /* of a bool beside the values */
	const char *doc;
};

struct sharding; /* conf/sharding.h */

struct load {
	struct option_set *set;
	const struct option_action *actions; /* flag NULL ends */
	struct sharding *sharding;           /* takes its entries; NULL: they are unknown keys */
	struct conf_faults *faults;
};

/* values and origins are zeroed, and are released by the caller either way. A row
 * with key "config" names the file. */
void load_options(const struct load *l, int argc, char **argv);

/* One value, as from the command line: for a server that is told while it runs. */
int load_one(struct option_set *set, unsigned row, const char *value, const char *origin,
	     struct slu_err *err);

#endif
