/*
 * frames.h - a connection that was upgraded to frames: many requests at once, answered as they are ready.
 *
 *      GET /stream, Upgrade: sluice-stream ──> 101 ──> frame, frame, ... (http/frame.h)
 *
 *      frame ──> part ──> authorize, handler of its route ──> answered ──┐
 *      frame ──> part ──> ...                        ──> answered ───────┤  in the order of the answers
 *                                                                        v
 *                      the kernel has all bytes before ──> piece: all answers that are there
 *
 * A part is a call of its own (EXCHANGE-8): the handler of a route cannot tell it from a request. So a claim that
 * waits is a credit: the server may push so many messages, whenever they are there. The upgrade is an answer in
 * pieces (EXCHANGE-7) that ends with the connection.
 *
 *  FRAMES-1  Every frame is authorized by the fields of the upgrade, as a request with these fields is, before its body
 *            is read. The body of a refused one is thrown away.
 *  FRAMES-2  Only POST routes with `framed` are served. Other paths are 404, and the connection stays.
 *  FRAMES-3  At most FRAMES_MAX parts run, and nothing is parsed while the answers that wait for the client hold more
 *            than CONN_OUTPUT_LOW bytes, with the bodies of their frames; or while FRAMES_MAX wait, however small.
 *  FRAMES-4  An answer is `sent` when the kernel has the piece that it is in. If the connection ends before, every
 *            other part ends unsent, and what it was granted goes back.
 *  FRAMES-5  A malformed line is answered with number 0 and status 400, and ends the connection. A server that stops
 *            reads no more frames, and closes when all are answered.
 *
 * On the loop's thread.
 */
#ifndef HTTP_FRAMES_H
#define HTTP_FRAMES_H

#include "http/frame.h"
#include "http/http_private.h"

enum {
	FRAMES_MAX = 256
};

struct frames;

/* For http_parse.c: the connection has frames. */
void frames_parse(struct conn *c);
bool frames_may_parse(const struct conn *c);

/* For call.c: the head of the answer, and whether the piece under way is the last one. */
void frames_format(struct call *c);

#endif
