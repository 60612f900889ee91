/*
 * lockd_attach.h - attachments of a lock key: bytes with a name.
 *
 * They are staged and committed as its state is. An id is the etag of what is attached:
 * what replaces it has another. The sum of its bytes is kept in the attributes of its
 * record: {"sha256":"..."}.
 */
#ifndef API_LOCKD_ATTACH_H
#define API_LOCKD_ATTACH_H

#include "api/intake.h"
#include "api/lockd_lock.h"

enum {
	ATTACH_SUM_TEXT = 2 * INTAKE_SUM + 1, /* with its end */
	ATTACH_ATTRIBUTES_TEXT = ATTACH_SUM_TEXT + 16
};

/* What is told about one. */
struct attach_info {
	struct slice name, type, sum;
	uint64_t etag, size;
	slu_time at;
};

void attach_write(struct json_out *w, const char *member, const struct attach_info *i);

/* As its record has it; the text is where m's is. */
struct attach_info attach_info(struct slice name, uint64_t etag, const struct message *m);

/* The attributes of its record. Returns out. */
struct slice attach_attributes(const unsigned char sum[static INTAKE_SUM],
			       char out[static ATTACH_ATTRIBUTES_TEXT]);

/* False: it was refused. */
bool attach_check_name(struct ask *a, struct slice name);

#endif
