/*
 * uploads.h - limits the number and the bytes of unfinished uploads.
 *
 * An upload is a body larger than UPLOAD_SMALL whose call is not answered yet. Its bytes are in
 * a file, or in memory if the engine has no files. It ends when the call is answered, when the
 * client hangs up or is too slow, and when the server restarts. Then its file is removed unless
 * a message has it.
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
	struct list open; /* of struct upload_share */
	uint32_t max;     /* 0: no limit */
	uint64_t max_bytes, max_memory;
};

struct upload_share {
	struct list node;       /* next NULL: not open */
	struct slice namespace; /* borrowed until uploads_end */
	uint64_t bytes;
	bool in_memory;
};

void uploads_init(struct uploads *u);
void uploads_limit(struct uploads *u, uint32_t max, uint64_t max_bytes, uint64_t max_memory);

/* Sets the size of an upload; `one` is zeroed at first. Returns SLU_EBUSY with the limit;
 * the upload is counted no longer then. */
int uploads_grow(struct uploads *u, struct upload_share *one, struct slice namespace, bool in_memory,
		 uint64_t bytes, struct slu_err *err);
void uploads_end(struct uploads *u, struct upload_share *one); /* may be called twice */

#endif
