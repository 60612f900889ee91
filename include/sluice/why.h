/*
 * why.h - why a message is not running now: the answer of slu_why (sluice.h) and slu_client_why (client.h).
 */
#ifndef SLUICE_WHY_H
#define SLUICE_WHY_H

#include <sluice/api.h>

SLU_BEGIN_DECLS

/* The reason that counts, the first of all that hold. docs/scheduling.md has the reasons. */
struct slu_why_answer {
	char reason[24];      /* "leased", "paused", "delayed", "behind", "ahead", "no_consumer", ...; "next" if nothing
			       * holds the message back */
	char text[400];       /* the reason as a sentence */
	char owner[136];      /* the holder of the lease, of the message or of the message `behind`; "" if it is not known */
	slu_time until;       /* wall clock: the end of the lease, the delay or the retry; 0: the reason has no end */
	uint64_t behind;      /* the message of the same key that has to finish first, or 0 */
	uint64_t ahead;       /* messages that go before it, at most 10,000 */
	bool more;            /* there are more than 10,000 */
	slu_time estimate;    /* wall clock: when the message is likely to be delivered; 0: not known */
	uint64_t reserved[8]; /* 0 */
};

SLU_END_DECLS

#endif
