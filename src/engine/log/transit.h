/*
 * transit.h - payload files of a shard that another node owns (FILE-8).
 *
 *      upload ──> transit/payloads/N ── seal ──> objects in the store ── op ──> the owner names the file
 *      answer: the name of a file ──> objects in the store ──> transit/payloads/N ──> read
 *
 * A file of the folder lives as long as the call of its client. This node removes no object: a copy of
 * this node may have the same file (FILE-9). The owner removes the objects of a message that it does not
 * accept, and the next open of the shard removes objects that no message of the owner has named
 * (LINE-9). A thread removes files, so no network thread waits for the disk; it starts with the first
 * file.
 */
#ifndef ENGINE_LOG_TRANSIT_H
#define ENGINE_LOG_TRANSIT_H

#include "engine/log/file.h"

struct logengine_transit {
	struct logengine_files files;
	bool open;     /* fixed: the files can be used */
	char line[12]; /* number of the shard in the store, as text */
	pthread_t thread;

	/* shared, under mtx */
	pthread_mutex_t mtx;
	pthread_cond_t cond;
	bool started;
	bool wanted;
	bool stopping;
};

/* Opens the table if the engine has a tenure and a store, and removes files of an earlier process. A
 * failure is logged: payloads then do not travel. */
void logengine_transit_open(struct logengine_transit *t, const struct engine_conf *conf);

/* All files are unpinned. A zeroed struct is fine. */
void logengine_transit_release(struct logengine_transit *t);

/* engine_files.open, while another node owns the shard. Returns SLU_EDOWN if no other node does. */
int logengine_transit_write(struct logengine_transit *t, struct engine_file **out, struct slu_err *err);

extern const struct engine_away logengine_away;

#endif
