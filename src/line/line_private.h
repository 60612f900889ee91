/*
 * line_private.h - the inside of a line: slots, steps, and who does what.
 *
 *      line.c         slots: requests, retries, what is asked next
 *      line_take.c    LINE-3: from line_take to the opening that counts
 *      line_read.c    LINE-5: every group from the beginning to the opening, in order
 *      line_own.c     LINE-4, 6, 7: appending, spans, removals
 *      line_back.c    LINE-15: comparing with a store that may have gone back
 *
 * A slot has at most one request on its way. A request that failed is repeated by its
 * slot, unchanged, after a back-off; each step only ever sees a known outcome.
 */
#ifndef LINE_LINE_PRIVATE_H
#define LINE_LINE_PRIVATE_H

#include "line/line.h"

enum {
	LINE_MAIN,       /* taking, appending */
	LINE_BACK,       /* spans and removals */
	LINE_READ,       /* the first of the slots that read groups */
	LINE_READS = 16, /* groups that are fetched at a time */
	LINE_SPANS = 4,  /* spans that are fetched at a time */
	LINE_SLOTS = LINE_READ + LINE_READS,
	LINE_LOOKS_MAX = 10 /* listings without progress, then the line is damaged */
};

enum line_state {
	LINE_NEW,
	LINE_TAKING,
	LINE_READING,
	LINE_OWNED,
	LINE_OVER
};

/* What happens with a known outcome (OK, EXISTS, ABSENT). */
typedef void line_step(struct line *l, unsigned slot, const struct line_answer *a);

struct line_slot {
	line_step *step; /* NULL = free */
	struct line_request request;
	bool sent;
	unsigned failures;
	slu_time not_before;

	/* LINE_READ and up: a group or span that has arrived and waits for its turn. */
	uint64_t number; /* of the group, or of the first group of the span */
	bool span;
	struct buf object;
	bool arrived;
};

/* Groups side by side, in order. */
struct line_run {
	uint64_t first;
	uint64_t *lengths;
	uint32_t n, size;
	struct buf bytes;
};

struct line_numbers {
	uint64_t *p;
	uint32_t n, size;
};

struct line {
	struct line_conf conf;
	enum line_state state;
	struct line_slot slots[LINE_SLOTS];
	struct line_numbers spans; /* their first groups, in order */

	/* The newest group: read while taking, then our own. */
	uint64_t last;
	uint64_t epoch;
	struct line_mark mark;
	int64_t time;
	uint64_t begin;      /* of the newest group */
	uint64_t next_begin; /* of the next one */

	/* The group that is being put. */
	struct line_group put;
	struct buf out;
	slu_time put_sent;      /* when it was sent first; SLU_NEVER before */
	slu_time proved;        /* put_sent of the newest group of our own */
	bool unsure;            /* a try of the put has failed: it may have been executed */
	bool refuted;           /* line_facts.refuted */
	bool appending;         /* from line_append until the group is in the store */
	struct line_known held; /* in the store, and confirmed at the end of line_reopen; number 0 = none */
	uint64_t tried_epoch;   /* of an opening whose put has no known outcome; 0 = none */
	uint64_t own_epoch;     /* of our newest opening in the store; 0 = none */

	/* Taking. */
	unsigned looks;
	uint64_t newest_span; /* its first group, when the opening is in the store */
	uint64_t reach;       /* its last group */
	bool reopens;         /* the groups are known: nothing is read */

	/* Reading: the groups up to the opening. */
	uint64_t next;      /* the next one to fetch */
	uint64_t fetched;   /* the first one that no slot has */
	struct buf pending; /* the group before `next`: read when the next one names it */
	struct line_group pending_group;
	bool has_pending;
	uint64_t bad;        /* why the spans are listed again: this group ... */
	const char *why;     /* ... is missing, say */
	uint64_t tried_span; /* first of the span that was read last */
	uint64_t awaited;    /* first of the span that is read next; 0 = groups are read */
	uint64_t known;      /* groups up to this number are not handed on; 0 = all are */

	/* Owning. */
	uint64_t spanned;             /* the last group in a span */
	struct line_run loose;        /* confirmed groups that are in no span */
	struct buf span;              /* the span that is being put */
	uint32_t span_n;              /* its groups */
	bool span_wanted;             /* line_span */
	struct line_numbers openings; /* from known_from on */
	uint64_t known_from;
	uint64_t swept;            /* the last group that was looked at for removal */
	struct line_numbers found; /* listed groups: they may be removed, or were compared */
	uint32_t found_at;
	struct buf also; /* further names of the removal on its way */
	uint32_t n_also;

	/* Comparing with the store. */
	struct {
		bool wanted; /* as soon as no request is on its way */
		bool comparing;
		uint64_t after;            /* first group of the newest span; 0 = no span */
		uint64_t reach;            /* last group of that span */
		struct line_group reached; /* that group, without its body */
		struct line_group other;   /* under the number of a group of ours; without its body */
		uint64_t newest;           /* group in the listing; 0 = none behind the span */
		uint64_t hole;             /* the first group that the store lacks; 0 = none */
		uint64_t next;             /* the group that is put again */
		uint64_t n_put;            /* groups that were put again */
	} back;
};

/* ---- line.c ---- */
void line_ask(struct line *l, unsigned slot, line_step *step, enum line_verb verb,
	      enum line_kind kind, uint64_t number);
void line_list(struct line *l, unsigned slot, line_step *step, enum line_kind kind,
	       uint64_t after);

/* Asks for the page behind this one, which is not empty. */
void line_list_more(struct line *l, unsigned slot, line_step *step, const struct line_answer *a);

void line_idle(struct line *l, unsigned slot);
void line_give_up(struct line *l, enum slu_code code, const char *fmt, ...) SLU_PRINTF(3, 4);

/* Gives up: the group of another node proves that it has the shard. */
void line_lose(struct line *l, const struct line_group *other);
bool line_numbers_add(struct line_numbers *v, uint64_t number);
bool line_run_add(struct line_run *r, uint64_t number, struct slice object);
void line_run_drop(struct line_run *r, uint32_t n);
void line_run_release(struct line_run *r);

/* The groups up to this number are in spans: they are not loose. */
void line_spanned(struct line *l, uint64_t last);

/* Adds the listed names to v. Returns false if there is no memory. Sets *last to the number of
 * the last name, if there are names. */
bool line_take_names(struct line *l, struct line_numbers *v, enum line_kind kind,
		     const struct line_answer *a, uint64_t *last);

/* Puts l->put under the next number, LINE-4. `won` or `taken` follows. */
void line_put(struct line *l);
void line_put_again(struct line *l); /* with the same bytes */

/* ---- line_take.c ---- */
void line_take_won(struct line *l);
void line_take_again(struct line *l);
void line_take_taken(struct line *l, const struct line_group *other);

/* ---- line_read.c ---- */
void line_read_begin(struct line *l);
void line_read_more(struct line *l); /* fills free slots */

/* ---- line_own.c ---- */
void line_own_begin(struct line *l);
void line_own_again(struct line *l); /* line_reopen is done */
void line_own_won(struct line *l);
void line_own_work(struct line *l); /* gives LINE_BACK something to do */

/* ---- line_back.c ---- */

/* No request is on its way. Ends with line_put_again, line_take_again or line_give_up. */
void line_back_begin(struct line *l);

#endif
