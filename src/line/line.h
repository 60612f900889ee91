/*
 * line.h - the log of one shard, in a store that several nodes share.
 *
 *      number   1        2   3   4   5        6   7   8        9
 *               opening  .   .   .   opening  .   .   opening  .   <- append
 *      epoch    1        1   1   1   2        2   2   3        3
 *      node     A        A   A   A   B        B   B   A        A
 *
 * The line is a chain of groups, numbered without gaps. A node puts a group under the
 * next free number, if that name is absent; the store lets exactly one node win. A node
 * that wants the shard puts an opening. From then on the name that a former owner would
 * need next is taken, so the former owner learns that it has lost the shard (LINE-1).
 *
 * A store has few functions: put if absent, get, list, remove. Groups are many and small,
 * so the owner writes them together as spans, and then removes the groups:
 *
 *      span 1 .. 4                    span 5 .. 7
 *      groups 1, 4, 5, 7, 8, 9        openings, the groups before them, and what is in no span yet
 *
 *  LINE-1  Only a put-if-absent of a group changes the line. The node that put the last
 *          opening owns the shard.
 *          A virtual machine may be copied with its memory: then two nodes own one shard
 *          with one life, and LINE-2 protects only owners that an opening separates. So a
 *          node that may be a copy, since its connections are gone, calls line_reopen: it
 *          puts an opening of its own before it goes on, and before it confirms the group on its way.
 *  LINE-2  An opening, the group before an opening, the newest group and the newest span are
 *          never removed. Any other group may go when a span that holds it is in the store.
 *          So the next number of a former owner stays taken: by an opening, or by the one group
 *          that a copy may have put before it noticed that its connections were gone.
 *  LINE-3  To take the shard: list spans, list the groups behind them, put an opening at
 *          the first free number. If an opening of another node is there, the attempt has
 *          failed; if another group is there, the next number is tried. When the opening
 *          is in the store, list spans again: a span that reaches its number proves that
 *          the name was free only because its group had been removed. Then begin anew.
 *  LINE-4  A life puts one content under a number. A put without a known outcome is
 *          repeated with the same bytes until the outcome is known. A name that exists is
 *          read: the group is ours if its mark is (object.h), whatever its life is. If
 *          the name is absent after all, the put is repeated.
 *  LINE-5  Each group names the mark of the group before. Reading checks the chain and
 *          refuses a hole by its number. The PostgreSQL store checks it inside the put, too.
 *  LINE-6  A span holds confirmed groups only. The owner writes one when the groups since
 *          the last span have reached span_groups or span_bytes, and when the caller says that
 *          time has passed (line_span). The line is not ready while loose_groups are in no span.
 *  LINE-7  Every group carries the number where the log begins. A span before that number
 *          is removed after a group that carries it is confirmed. A name that was listed
 *          and is absent means: list again.
 *  LINE-8  The folder of a node follows from the line: what the line has not is cut from the folder,
 *          also if it was synced; what the folder has not is fetched. mirror/mirror.h does it.
 *  LINE-9  A payload object carries the epoch of the owner it was written for. The owner accepts only a
 *          message whose payload has its own epoch. At open it removes payloads of older epochs
 *          that no record names (engine/log/file.h).
 *  LINE-10 Time at open is the later of the last time in the line and the clock of the store. The wall
 *          clock of a node never counts for a shard in a store.
 *  LINE-11 Numbers of messages and tokens come in blocks, and a block counts as used once it was taken: a
 *          clean close gives nothing back, since a copy of the node may have used it.
 *  LINE-14 A put without a known outcome does not stop the shard. After the patience, ops that have not
 *          run get SLU_EDOWN, and ops of the group in doubt SLU_EUNKNOWN; what these were granted
 *          is returned when the put succeeds.
 *  LINE-15 A store may go back: a failover to an old copy, a restored bucket. After every new
 *          connection (line_reopen) the owner compares its newest confirmed group with the
 *          store. Groups that the store lacks are put again, byte for byte. If another group
 *          is there, the line is lost: SLU_ECORRUPT with both named. If another node has the
 *          shard and has removed the groups before its beginning by then, it is SLU_EBUSY and
 *          the text says that the two cannot be compared.
 *
 *              store before   1  2  3  4  5  6        store after   1  2  3
 *              the owner has           4  5  6        puts again             4  5  6
 *
 *  LINE-17 A front folder holds more of the log than the store (mirror/frontfolder.h). Its groups are
 *          pinned: their life is the uuid of the folder. Behind a pinned group only the line of
 *          the same folder puts an opening, whatever may_take says; or a line that `unpins`, by
 *          order of an operator; or the line of the node that has left the folder (`left`), after the
 *          line got everything that the folder has.
 *
 * A pure state machine: line_next gives requests, the caller executes them in any order
 * and reports each result once with line_reply. The caller passes `now`.
 *
 *         line_take(l);
 *         for (;;) {
 *                 while (line_next(l, now, &request))
 *                         send it to the store
 *                 when a result arrives: line_reply(l, request.slot, &answer, now);
 *         }
 *
 * One thread owns a line.
 */
#ifndef LINE_LINE_H
#define LINE_LINE_H

#include "line/object.h"

#include <sluice/retry.h>

struct line;

enum line_verb {
	LINE_PUT, /* if the name is absent */
	LINE_GET,
	LINE_LIST,
	LINE_REMOVE,
	LINE_REPLACE /* put, also if the name is taken: nodes alone (members/members.h) */
};

struct line_request {
	enum line_verb verb;
	unsigned slot;             /* names the request in line_reply */
	char name[LINE_NAME_MAX];  /* LIST: the prefix of the names */
	char after[LINE_NAME_MAX]; /* LIST: only names behind this one */
	struct slice object;       /* PUT. REMOVE: further names, each with a NUL. Valid until the reply */
	size_t max;                /* GET: the first bytes, at most so many; 0 = all */
};

enum line_result {
	LINE_OK,     /* done; GET: found */
	LINE_EXISTS, /* PUT: the name is taken, perhaps by an earlier try of this put */
	LINE_ABSENT, /* GET: not found. REMOVE: may say so, or OK */
	LINE_FAILED  /* the outcome is unknown; the request may still be executed later */
};

struct line_answer {
	enum line_result result;
	struct slice object;      /* GET; borrowed for the call */
	const char *const *names; /* LIST: in order; borrowed for the call */
	uint32_t n_names;
	bool more; /* LIST: there may be names behind the last of these */
};

/* A group that the caller has, with all groups before it. */
struct line_known {
	uint64_t number; /* 0 = the caller has no group */
	struct line_mark mark;
};

struct line_conf {
	const char *shard; /* begins the names of all objects; kept by the caller */
	uint8_t life[LINE_LIFE];
	bool pinned;             /* LINE-17: the life is the uuid of a front folder */
	bool unpins;             /* LINE-17: take the shard without its front folder, which is lost */
	const uint8_t *left;     /* LINE-17: the uuid of a front folder that was left; NULL = none. Borrowed */
	struct line_known known; /* reading begins behind this group, if the line has it */
	uint32_t span_groups;    /* LINE-6 */
	uint64_t span_bytes;
	uint32_t loose_groups;         /* LINE-6; more than span_groups; 0 = any number */
	uint32_t removes;              /* groups that one LINE_REMOVE removes at most; 0 = 1 */
	struct slu_backoff retry;      /* after LINE_FAILED */
	uint64_t (*random)(void *arg); /* 64 random bits */

	/* Before an opening is put behind `newest`: may the shard be taken from the node that put
	 * this group (LINE-12)? If not, the attempt ends with `lost`, SLU_EBUSY. Not asked about
	 * groups of this line's own folder; behind other pinned groups `true` has no effect (LINE-17). NULL: always. */
	bool (*may_take)(void *arg, const struct line_group *newest);

	/* Reading begins: the next `read`, if any, has this number. It is the group behind
	 * `known` if the line holds `known`, else the beginning of the log. Called once before
	 * the first `read` and before `opened`. May be NULL. */
	void (*reads)(void *arg, uint64_t from);

	/* While the shard is being opened: the next group of the log, in order. group and object
	 * are borrowed. */
	void (*read)(void *arg, const struct line_group *group, struct slice object);

	/* The node owns the shard; all groups were read. */
	void (*opened)(void *arg);

	/* The group that was appended is in the store. If line_reopen is on its way, this comes when that is done. */
	void (*confirmed)(void *arg, const struct line_known *group);

	/* A span holds this confirmed group, so the line forgets its object. Groups come in order,
	 * some at a time; `last` marks the last of them. May be NULL. */
	void (*forgets)(void *arg, uint64_t number, struct slice object, bool last);

	/* LINE-15: appends the object of a confirmed group to out, which is empty, as it was put or
	 * read. Leaves it empty if the caller does not have the group: then the line is lost. Called
	 * for groups that the line read or forgot; the line itself has the others. May be NULL. */
	void (*again)(void *arg, uint64_t number, struct buf *out);

	/* LINE-15: the store had gone back; n groups from `first` on were put again. May be NULL. */
	void (*restored)(void *arg, uint64_t first, uint64_t n);

	/* The node does not own the shard, or not any more: SLU_EBUSY if another node has
	 * taken it, SLU_ECORRUPT if the line is damaged, SLU_ENOMEM. The line makes no more
	 * requests and may be freed when those on their way were answered. */
	void (*lost)(void *arg, const struct slu_err *why);
	void *arg;
};

/* Returns SLU_ENOMEM. */
int line_new(struct line **out, const struct line_conf *conf);
void line_free(struct line *l); /* NULL is fine */

/* Begins to take the shard. Ends with `opened` or `lost`. */
void line_take(struct line *l);

/* The node has lost its connections to the store: the store may have gone back (LINE-15), and
 * the node may be a copy (LINE-1). When the requests on their way are answered, the line
 * compares itself with the store and takes the shard again, behind the group on its way if
 * there is one. line_is_ready says when that is done; `lost` if another node was faster, or if
 * the shard was not open yet. */
void line_reopen(struct line *l);

/* Whether the shard is owned, and no line_reopen is on its way. */
bool line_is_open(const struct line *l);

/* Whether line_append may be called: the shard is owned, no group is on its way, and not too many
 * groups are in no span. */
bool line_is_ready(const struct line *l);

/* Puts the next group. `confirmed` or `lost` follows. Returns its number; 0 if there is no
 * memory. */
uint64_t line_append(struct line *l, struct slice body, int64_t time);

/* The owner writes the groups that are in no span as a span, however few they are (LINE-6). */
void line_span(struct line *l);

/* The log begins at this number from the next group on: groups before it are not needed
 * (LINE-7). It never goes back. */
void line_begin(struct line *l, uint64_t number);

/* Sets *r to the next request. Returns false if nothing has to be sent now. */
bool line_next(struct line *l, slu_time now, struct line_request *r);

/* When line_next will have a request again that waits for its back-off; SLU_NEVER if no
 * request waits. */
slu_time line_due(const struct line *l);

void line_reply(struct line *l, unsigned slot, const struct line_answer *a, slu_time now);

struct line_facts {
	uint64_t epoch;
	uint64_t put_epoch;    /* of the newest opening that this line put or may have put; 0 = none */
	uint64_t last;         /* the newest confirmed group */
	uint64_t begin;        /* LINE-7, confirmed */
	uint64_t spanned;      /* the last group that is in a span */
	struct line_mark mark; /* of the newest confirmed group */
	bool refuted;          /* the line is lost, and the group of the last line_append is not in it */
	slu_time proved;       /* `now` when the put of the newest group was sent first: later than
				* that, this node owned the shard (LINE-13) */
};

struct line_facts line_facts(const struct line *l);

#endif
