/*
 * create.h - reads a task that is to be created.
 */
#ifndef API_CODEQ_CREATE_H
#define API_CODEQ_CREATE_H

#include "api/codeq/task.h"

struct codeq_new {
	struct slice command, payload, webhook, idem;
	int64_t priority, max_attempts, delay;
	slu_time run_at; /* 0: none */

	/* Private. */
	char queue[NAME_TEXT]; /* the command, folded */
};

/* Reads the object. Its texts are in memory of a, or in text. Returns SLU_EINVAL or SLU_ENOMEM. */
int codeq_new_parse(struct codeq_new *n, struct arena *a, struct slice text, struct slu_err *err);

/* Returns SLU_EINVAL unless the text is empty, or a URL of http or https without spaces. what: "webhook" */
int codeq_check_address(struct slice s, const char *what, struct slu_err *err);

/* Calls each(arg, item) for every object of a batch: {"<name>":[...]} or [...] alone. *bare: the latter. Returns
 * SLU_EINVAL for a text of another form, or without 1 to CODEQ_BATCH objects. */
int codeq_batch_parse(struct slice text, const char *name, bool *bare, void (*each)(void *arg, struct slice item),
		      void *arg, struct slu_err *err);

#endif
