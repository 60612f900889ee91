/*
 * parcel.h - a batch of objects as the bytes of one object: name, tag, options and payload of every item.
 *
 *      shard\n
 *      for each item: namespace\tqueue\tname\ttag\tbytes of the options\tbytes of the payload\n options payload
 *
 * A parcel without items has no bytes: its batch has ended. Pure.
 */
#ifndef HANDOVER_PARCEL_H
#define HANDOVER_PARCEL_H

#include "handover/handover.h"

/* Appends a parcel. out->failed if memory is out. */
void parcel_write(struct buf *out, const char *shard, const struct handover_items *items);

/* Adds the items of a parcel, with shard and number. Returns SLU_ECORRUPT, SLU_ENOMEM. */
int parcel_read(struct slice bytes, uint64_t number, struct handover_items *out, struct slu_err *err);

#endif
