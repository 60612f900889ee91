/*
 * worker_session.c - two threads run the jobs of a queue, each attempt with a
 * session of its own. The session is closed whatever happens, also after a panic.
 */
#include <sluice/worker.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct connection {
	int queries;
};

static atomic_int opened, closed;

static int
connect_db(void **session, void *arg, struct slu_err *err)
{
	(void)arg;
	*session = calloc(1, sizeof(struct connection));
	if (!*session)
		return slu_fail(err, SLU_ENOMEM, "no connection"); /* fails this attempt */
	atomic_fetch_add(&opened, 1);
	return 0;
}

static void
disconnect_db(void *session, void *arg)
{
	(void)arg;
	free(session);
	atomic_fetch_add(&closed, 1);
}

static int
handle(const struct slu_job_item *job, void *session, void *arg, struct slu_err *err)
{
	struct connection *db = session;

	(void)arg;
	(void)err;
	db->queries++; /* no other thread has this one */
	if (job->seq % 10 == 0 && job->attempts == 1)
		slu_panic("job %llu met a bug", (unsigned long long)job->seq);
	return 0;
}

int
main(void)
{
	struct slu_worker_config config = {
		SLU_OPTIONS_INIT(struct slu_worker_config),
		.handler = handle,
		.threads = 2,
		.backoff = { .base = SLU_MS },
		.session_open = connect_db,
		.session_close = disconnect_db,
		.log = slu_log_new(SLU_LOG_OFF, SLU_LOG_LOGFMT, NULL, NULL),
	};
	struct slu_worker *w;
	int rc;

	if (!config.log || slu_pqueue_new(&config.queue, NULL, NULL) ||
	    slu_worker_new(&w, &config, NULL))
		return 1;
	for (int i = 0; i < 100; i++)
		slu_pqueue_enqueue(config.queue, &(struct slu_job){ SLU_OPTIONS_INIT(struct slu_job) }, NULL, NULL);
	rc = slu_worker_start(w, NULL) || slu_worker_stop(w, SLU_STOP_ALL, 0);
	slu_worker_free(w);
	slu_pqueue_free(config.queue, NULL);
	slu_log_free(config.log);
	printf("%d sessions opened, %d closed\n", opened, closed);
	return rc || opened != 110 || closed != 110;
}
