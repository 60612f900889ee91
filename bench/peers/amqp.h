/*
 * amqp.h - frames and methods of AMQP 0-9-1, as far as a queue's work needs them.
 *
 *      type 1   channel 2   size 4   payload size   0xCE          a frame
 *      class 2  method 2  arguments                               of type 1, a method
 *      class 2  0 2  body size 8  flags 2  properties             of type 2, before a body
 */
#ifndef PEERS_AMQP_H
#define PEERS_AMQP_H

#include "base/bytes.h"

enum amqp_type {
	AMQP_METHOD = 1,
	AMQP_HEADER = 2,
	AMQP_BODY = 3,
	AMQP_HEARTBEAT = 8
};

/* Class and method in one number. */
#define AMQP(class, method) (((uint32_t)(class) << 16) | (method))

enum amqp_method {
	AMQP_START = AMQP(10, 10),
	AMQP_START_OK = AMQP(10, 11),
	AMQP_TUNE = AMQP(10, 30),
	AMQP_TUNE_OK = AMQP(10, 31),
	AMQP_OPEN = AMQP(10, 40),
	AMQP_CLOSE = AMQP(10, 50),
	AMQP_CHANNEL_OPEN = AMQP(20, 10),
	AMQP_CHANNEL_CLOSE = AMQP(20, 40),
	AMQP_DECLARE = AMQP(50, 10),
	AMQP_DELETE = AMQP(50, 40),
	AMQP_QOS = AMQP(60, 10),
	AMQP_CONSUME = AMQP(60, 20),
	AMQP_PUBLISH = AMQP(60, 40),
	AMQP_DELIVER = AMQP(60, 60),
	AMQP_GET = AMQP(60, 70),
	AMQP_GET_OK = AMQP(60, 71),
	AMQP_GET_EMPTY = AMQP(60, 72),
	AMQP_ACK = AMQP(60, 80),
	AMQP_NACK = AMQP(60, 120),
	AMQP_CONFIRM = AMQP(85, 10)
};

/* A frame is begun, written with what is below, and ended; begin returns its mark. */
size_t amqp_begin(struct buf *out, enum amqp_type type, unsigned channel);
size_t amqp_method(struct buf *out, unsigned channel, enum amqp_method method);
void amqp_end(struct buf *out, size_t mark);

void amqp_int(struct buf *out, unsigned bytes, uint64_t n);
void amqp_short_text(struct buf *out, const char *s);
void amqp_long_text(struct buf *out, struct slice s);

struct amqp_frame {
	enum amqp_type type;
	uint32_t method; /* of a method */
	struct slice payload;
};

/* The frame at the front of `in`, which is moved beyond; false: it is not whole. */
bool amqp_next(struct slice *in, struct amqp_frame *f);

/* The number of so many bytes at an offset of a payload; 0 beyond its end. */
uint64_t amqp_at(struct slice payload, size_t offset, unsigned bytes);

#endif
