/*
 * cancel.h - a token that cancels any number of tasks.
 *
 *         struct slu_cancel *stop = slu_cancel_new();
 *
 *         slu_executor_submit(ex, "a", &task, &(struct slu_submit){ SLU_OPTIONS_INIT(struct slu_submit), .cancel = stop }, ...);
 *         ...
 *         slu_cancel_fire(stop, "user closed the window");
 *         slu_cancel_free(stop);
 *
 * If its token fires, a task that has not begun never runs and is reported in its turn; a
 * task that waits for a retry is reported at once; a running task can check
 * slu_cancel_fired. Any thread may call these functions. Tasks keep a reference to their
 * token: free yours when you do not need it any more.
 */
#ifndef SLUICE_CANCEL_H
#define SLUICE_CANCEL_H

#include <sluice/api.h>

SLU_BEGIN_DECLS

struct slu_cancel;

SLU_API struct slu_cancel *slu_cancel_new(void); /* NULL if memory is out */
SLU_API void slu_cancel_free(struct slu_cancel *c);

/* Only the first call has an effect. reason: text for the error handler, cut at 79 bytes; may be
 * NULL. */
SLU_API void slu_cancel_fire(struct slu_cancel *c, const char *reason);

/* c NULL: false. */
SLU_API bool slu_cancel_fired(const struct slu_cancel *c);

SLU_END_DECLS

#endif
