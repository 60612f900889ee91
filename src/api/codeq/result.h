/*
 * result.h - reads the result of a task.
 */
#ifndef API_CODEQ_RESULT_H
#define API_CODEQ_RESULT_H

#include "api/codeq/task.h"

struct codeq_artifact {
	struct slice name, url, content, type; /* content: base64 */
};

struct codeq_outcome {
	struct slice task; /* taskId, of a batch */
	struct slice status, result, error;
	struct codeq_artifact artifacts[CODEQ_ARTIFACTS];
	unsigned n_artifacts;
};

/* Its texts are in memory of a, or in text. Returns SLU_EINVAL or SLU_ENOMEM. */
int codeq_outcome_parse(struct codeq_outcome *o, struct arena *a, struct slice text, struct slu_err *err);

#endif
