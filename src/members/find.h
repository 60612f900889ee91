/*
 * find.h - the settings of a store, found or created by a thread that may block.
 */
#ifndef MEMBERS_FIND_H
#define MEMBERS_FIND_H

#include "members/settings.h"
#include "store/store.h"

/* Sets *out to the settings of the store. If the store is empty, creates them with `shards` and `place`.
 * goes_on: false cancels; may be NULL. Returns SLU_EDOWN if the store fails for longer than
 * `patience`, SLU_EINVAL, SLU_ECORRUPT, SLU_ECANCELED. */
int settings_find(struct store *store, uint32_t shards, enum settings_place place, slu_time patience,
		  bool (*goes_on)(void), struct settings *out, struct slu_err *err);

/* Raises the format of the settings: puts the next version with `format`. *s: the settings as the caller
 * knows them; it becomes the newest version. Another node may do so at the same time. Returns SLU_EDOWN if the
 * store fails for longer than `patience`, SLU_ECORRUPT, or the code of a store that refuses. */
int settings_raise(struct store *store, struct settings *s, uint32_t format, slu_time patience, struct slu_err *err);

#endif
