/*
 * lanelook.h - reads messages of a lane by ops, for the thread of the projection.
 *
 *         rc = lanelook_get(&l, lane, ids, n, err);
 *         for (i = 0; i < n; i++)
 *                 rc = lanelook_row(&l, i, &row, err);        0, or SLU_ENOTFOUND: the message is gone
 *         lanelook_end(&l);
 *
 * One thread uses a struct lanelook.
 */
#ifndef PROJECTION_LANELOOK_H
#define PROJECTION_LANELOOK_H

#include "projection/items.h"

#include <pthread.h>

struct broker;
struct op;
struct op_row;

enum {
	LANELOOK_MAX = 1000,        /* messages of a call */
	LANELOOK_PAYLOAD = 1 << 20, /* bytes: a larger payload is not read, nor one that has a file */
	LANELOOK_ERROR = 4 << 10    /* bytes of an error text */
};

struct lanelook {
	struct broker *broker;
	struct op *ops;
	struct op_row *rows; /* of all ops */
	uint32_t n;          /* ops that have answers */
	struct buf record, error;

	/* Shared, under mtx. */
	pthread_mutex_t mtx;
	pthread_cond_t ended;
	uint32_t running; /* ops without an answer */
};

/* Returns SLU_ENOMEM. */
int lanelook_init(struct lanelook *l, struct broker *b, struct slu_err *err);
void lanelook_release(struct lanelook *l);

/* Gets n messages, at most LANELOOK_MAX. Returns a code if the lane does not serve. */
int lanelook_get(struct lanelook *l, uint32_t lane, const uint64_t *ids, uint32_t n, struct slu_err *err);

/* Describes the i-th message; the row stays until the next call of this module. Returns SLU_ENOTFOUND if the
 * message is gone, SLU_ECORRUPT if it cannot be read, SLU_EDOWN. */
int lanelook_row(struct lanelook *l, uint32_t i, struct items_row *out, struct slu_err *err);

void lanelook_end(struct lanelook *l);

/* Sets ids to a page of the messages of the lane, *n to their number. *cursor: 0 for the first page; after the
 * last page it is 0. */
int lanelook_list(struct lanelook *l, uint32_t lane, uint64_t *cursor, uint64_t ids[static LANELOOK_MAX], uint32_t *n,
		  struct slu_err *err);

#endif
