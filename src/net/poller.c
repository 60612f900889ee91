#include "net/poller.h"

/* A time that ends polling until several short waits have followed. */
#define LONG (4 * POLLER_MOST)

void
poller_init(struct poller *p, unsigned processors)
{
	*p = (struct poller){
		.allowed = processors > 1,
		.usual = { [POLLER_ANSWER] = POLLER_MOST, [POLLER_REQUEST] = POLLER_MOST },
	};
}

bool
poller_begin(struct poller *p, enum poller_kind kind, slu_time now)
{
	p->kind = kind;
	p->began = now;
	p->seen = p->allowed && p->usual[kind] < POLLER_MOST ? now : 0;
	return p->seen > 0;
}

bool
poller_again(struct poller *p, slu_time now)
{
	const bool late = now - p->seen > POLLER_LATE;

	if (late)
		p->usual[p->kind] = LONG;
	p->seen = late || now - p->began > POLLER_PATIENCE * p->usual[p->kind] ? 0 : now;
	return p->seen > 0;
}

void
poller_end(struct poller *p, slu_time now)
{
	const slu_time took = now - p->began < LONG ? now - p->began : LONG;
	slu_time *const usual = &p->usual[p->kind];

	if (p->began > 0)
		*usual += (took - *usual) / POLLER_PART;
	p->began = p->seen = 0;
}
