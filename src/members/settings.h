/*
 * settings.h - what all nodes of a store agree on, and how the first node creates it.
 *
 *      settings/00000000000000000001     created once, by the first node that starts
 *      settings/00000000000000000002     a later version; the highest version counts
 *
 * A settings object is put if its name is absent, and never replaced. So two nodes that start
 * at once agree: one put wins, and the other node reads what won.
 *
 *         list ──────> a version is there ──> get the highest ──> done
 *          ^ │ none
 *          │ └───────> put settings/1, if absent ──> it is ours ──> done
 *          └─────────── it exists, or the outcome is unknown
 *
 * Little-endian:
 *      0   8  "sluicest"
 *      8   4  sum: CRC-32C of the object from byte 12 to its end
 *      12  4  format: the highest format of the objects in the store
 *      16  8  version, as in the name
 *      24 16  uuid of the store
 *      40 32  secret of the nodes
 *      72  4  number of shards, 1 to BEAT_SHARDS_MAX
 *      76  1  place: enum settings_place. Format 2, because a program that reads format 1 alone would ignore it
 *      77  3  zero
 *
 * Pure: the caller executes the requests (line.h) and passes `now` and random bytes.
 */
#ifndef MEMBERS_SETTINGS_H
#define MEMBERS_SETTINGS_H

#include "line/line.h"

enum {
	SETTINGS_FIRST = 1,  /* the format of a new store that places by queue */
	SETTINGS_PLACED = 2, /* the format of a new store that places by namespace */
	SETTINGS_FORMAT = 3, /* the highest format that this program reads and writes: LINE-16 of members.h.
			      * Format 3 has the record types and ops of engine/formats.h */
	SETTINGS_SIZE = 80,
	SETTINGS_UUID = 16,
	SETTINGS_SECRET = 32
};

#define SETTINGS_PREFIX "settings/"

/* What chooses the shard of a queue. */
enum settings_place {
	SETTINGS_BY_QUEUE,     /* namespace and queue */
	SETTINGS_BY_NAMESPACE, /* the namespace alone: its queues are on one shard */
	SETTINGS_PLACES
};

struct settings {
	uint64_t version; /* 1 or more */
	uint32_t format;  /* 1 or more */
	uint32_t shards;  /* 1 to BEAT_SHARDS_MAX */
	uint8_t uuid[SETTINGS_UUID];
	uint8_t secret[SETTINGS_SECRET];
	enum settings_place place;
};

/* The format that a new store with this place has. */
static inline uint32_t
settings_format(enum settings_place place)
{
	return place == SETTINGS_BY_QUEUE ? SETTINGS_FIRST : SETTINGS_PLACED;
}

/* Writes the name of a version. */
void settings_name(char out[LINE_NAME_MAX], uint64_t version);

/* The version in a name; 0 if the name is not of a settings object. */
uint64_t settings_version(const char *name);

/* Writes the object. */
void settings_encode(const struct settings *s, char out[SETTINGS_SIZE]);

/* Reads an object. Returns SLU_ECORRUPT. */
int settings_decode(struct settings *s, struct slice object, struct slu_err *err);

/*
 * Finding the settings of a store, or creating them. One request is on its way at a time:
 *
 *         settings_search_init(&s, &proposal, &retry, random);
 *         while (!s.found && !s.failed)
 *                 if (settings_search_next(&s, now, &request))
 *                         execute it; settings_search_reply(&s, &answer, now);
 */
struct settings_search {
	/* What settings/1 will be if this node is the first; then what was found. */
	struct settings settings;
	bool found;

	bool failed;        /* the settings are damaged, see err */
	struct slu_err err; /* valid if failed */

	/* inner */
	enum settings_step {
		SETTINGS_LIST,
		SETTINGS_GET,
		SETTINGS_PUT
	} step;
	struct slu_backoff retry;
	bool sent;
	unsigned failures;
	slu_time not_before;
	uint64_t highest; /* version in the listing so far */
	char after[LINE_NAME_MAX];
	char object[SETTINGS_SIZE];
};

/* proposal: uuid and secret are random bytes of the caller; its version becomes 1. */
void settings_search_init(struct settings_search *s, const struct settings *proposal,
			  const struct slu_backoff *retry);

/* Sets *r to the next request. Returns false if nothing has to be sent now. */
bool settings_search_next(struct settings_search *s, slu_time now, struct line_request *r);

/* random: for the jitter of retry. */
void settings_search_reply(struct settings_search *s, const struct line_answer *a, slu_time now,
			   uint64_t random);

#endif
