/*
 * attach.h - attachments of a lock key: bytes with a name.
 *
 * Attachments are staged and committed like the state of the key. The id of an attachment is
 * its etag, so a replacement has another id. Its record has the sum of the bytes in its
 * attributes: {"sha256":"..."}.
 */
#ifndef API_LOCKD_ATTACH_H
#define API_LOCKD_ATTACH_H

#include "api/upload.h"
#include "api/lockd/lock.h"

enum {
	ATTACH_SUM_TEXT = 2 * UPLOAD_SUM + 1, /* with the NUL */
	ATTACH_ATTRIBUTES_TEXT = ATTACH_SUM_TEXT + 16
};

/* The description of an attachment. */
struct attach_info {
	struct slice name, type, sum;
	uint64_t etag, size;
	slu_time at;
};

void attach_write(struct json_out *w, const char *member, const struct attach_info *i);

/* The description in a record; texts point where m's do. */
struct attach_info attach_info(struct slice name, uint64_t etag, const struct message *m);

/* Returns false if it refused the call. */
bool attach_check_name(struct apicall *a, struct slice name);

#endif
