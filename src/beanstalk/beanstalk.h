/*
 * beanstalk.h - the protocol of beanstalkd, as a protocol of a server (net/server.h).
 *
 *      --listen beanstalk://127.0.0.1:11300
 *
 * Tubes are the queues of one namespace. docs/beanstalkd.md has the differences from beanstalkd.
 *
 *      put ──> enqueue          bury  ──> nack, dead       peek, stats ──> peek, list, get, stats
 *      reserve ──> claim        kick  ──> redrive          pause-tube  ──> hold
 *      delete ──> ack, delete   touch ──> extend           release     ──> nack, defer
 *
 *  BEAN-1  A reservation belongs to its connection. If the connection ends, its jobs are due at once, and
 *          that is a failure; if this server ends it because it stops, it is not.
 *  BEAN-2  The commands of a connection begin in their order. Commands of several steps, and
 *          reserve on several tubes, hold the connection: nothing behind them is read before they are
 *          answered.
 *  BEAN-3  A reservation that the client did not receive goes back to its place: no failure is counted.
 *  BEAN-4  A client that begins like HTTP is disconnected without an answer: any web page can make a
 *          browser send such bytes.
 */
#ifndef BEANSTALK_BEANSTALK_H
#define BEANSTALK_BEANSTALK_H

#include "net/protocol.h"

struct beanstalk_conf {
	const char *space;     /* namespace of the tubes, folded */
	uint32_t max_job;      /* bytes */
	uint16_t max_attempts; /* of jobs that come by put; 0: of the queue */
};

extern const struct protocol beanstalk_protocol;

#endif
