/*
 * uploads.h - bounds what unfinished uploads hold: their number and their bytes.
 *
 * An upload is the body of a lockd call that is larger than UPLOAD_SMALL and not answered
 * yet. Its bytes are in a file, or in memory if the engine has no files. It ends, and its
 * file is removed unless a message has it, when it is answered, when its client hangs up
 * or is too slow, and when the server starts again.
 *
 *  UPLOAD-1  At most `max` uploads with `max_bytes` in files and `max_memory` in memory.
 *  UPLOAD-2  One namespace has at most half of each, rounded up. A single upload may have
 *            all of the bytes.
 *
 * Shared by all threads.
 */
#ifndef API_UPLOADS_H
#define API_UPLOADS_H

#include "base/bytes.h"
#include "base/list.h"

#include <sluice/err.h>

#include <pthread.h>

enum {
	UPLOAD_SMALL = 64 << 10
};

struct uploads {
	pthread_mutex_t lock;
	struct list open; /* of struct upload */
	uint32_t max;     /* 0: no limit */
	uint64_t max_bytes, max_memory;
};

struct upload {
	struct list node;       /* next NULL: not open */
	struct slice namespace; /* borrowed until upload_end */
	uint64_t bytes;
	bool in_memory;
};

void uploads_init(struct uploads *u);
void uploads_limit(struct uploads *u, uint32_t max, uint64_t max_bytes, uint64_t max_memory);

/* The upload has so many bytes now. one is zeroed at first. SLU_EBUSY names the limit. */
int upload_grow(struct uploads *u, struct upload *one, struct slice namespace, bool in_memory,
		uint64_t bytes, struct slu_err *err);
void upload_end(struct uploads *u, struct upload *one); /* again is fine */

#endif
