/*
 * op_page.h - ends the page of a list before its answer is too large for a client that reads slowly: PEER-3.
 *
 *      LIST   the rows of at most max_bytes; cursor goes on behind them
 *      KEYS   the keys of at most max_bytes; `more` is set
 *      PEEK   the rows of at most max_bytes: a peek has no further page
 *
 * A page has at least one row. Claims end by op->claim.max_bytes, and other answers have a few rows.
 */
#ifndef PEER_OP_PAGE_H
#define PEER_OP_PAGE_H

#include "engine/engine.h"

/* Unpins the rows behind the end of the page. */
void op_page_end(struct op *op, uint64_t max_bytes);

#endif
