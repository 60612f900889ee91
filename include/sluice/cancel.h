/*
 * cancel.h - one word that calls off any number of tasks.
 *
 *         struct slu_cancel *stop = slu_cancel_new();
 *
 *         slu_executor_submit(ex, "a", &task, &(struct slu_submit){ SLU_OPTIONS_INIT(struct slu_submit), .cancel = stop }, ...);
 *         ...
 *         slu_cancel_fire(stop, "user closed the window");
 *         slu_cancel_free(stop);
 *
 * A task that has not begun when its token fires never runs, and is reported when its
 * turn comes; one that waits for a retry is reported at once; one that runs can ask
 * slu_cancel_fired. Safe from any
 * thread. A token is kept alive by the tasks that carry it: free it when you are
 * done with it yourself.
 */
#ifndef SLUICE_CANCEL_H
#define SLUICE_CANCEL_H

#include <sluice/api.h>

SLU_BEGIN_DECLS

struct slu_cancel;

SLU_API struct slu_cancel *slu_cancel_new(void); /* NULL when memory is out */
SLU_API void slu_cancel_free(struct slu_cancel *c);

/* The first call wins; reason (may be NULL, cut at 79 bytes) is what the error
 * handler is told. */
SLU_API void slu_cancel_fire(struct slu_cancel *c, const char *reason);

/* NULL is a token that never fires. */
SLU_API bool slu_cancel_fired(const struct slu_cancel *c);

SLU_END_DECLS

#endif
