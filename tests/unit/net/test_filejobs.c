/*
 * test_filejobs.c - long work leaves file threads to others.
 */
#include "test.h"

#include "base/bytes.h"
#include "net/filejobs.h"

#include <stdatomic.h>

enum {
	JOBS = 12
};

/* Jobs that wait on a file thread until they are let go. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned inside, most, done;
	bool open;
	unsigned order[JOBS];
} hall = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

struct job {
	struct file_job job;
	struct loop_work post;
	unsigned number;
};

static struct filejobs filejobs;
static struct job jobs[JOBS];

static int
stay(struct file_job *j)
{
	const struct job *const job = CONTAINER(j, struct job, job);

	pthread_mutex_lock(&hall.lock);
	hall.inside++;
	hall.most = hall.inside > hall.most ? hall.inside : hall.most;
	pthread_cond_broadcast(&hall.changed);
	while (!hall.open)
		pthread_cond_wait(&hall.changed, &hall.lock);
	hall.inside--;
	pthread_mutex_unlock(&hall.lock);
	return (int)job->number;
}

static void
count(struct file_job *j, int rc)
{
	const struct job *const job = CONTAINER(j, struct job, job);

	CHECK(loop_is_here(j->loop));
	CHECK_EQ((int)job->number, rc);
	pthread_mutex_lock(&hall.lock);
	hall.order[hall.done++] = job->number;
	pthread_cond_broadcast(&hall.changed);
	pthread_mutex_unlock(&hall.lock);
}

static void
enter(struct loop_work *w)
{
	struct job *const j = CONTAINER(w, struct job, post);

	filejobs_run(&filejobs, &j->job);
}

static int
pass_by(struct file_job *j)
{
	(void)j;
	return 0;
}

static _Atomic bool passed;

static void
has_passed(struct file_job *j, int rc)
{
	(void)j;
	CHECK_EQ(0, rc);
	atomic_store(&passed, true);
	pthread_mutex_lock(&hall.lock);
	pthread_cond_broadcast(&hall.changed);
	pthread_mutex_unlock(&hall.lock);
}

static struct job upload;

static void
enter_beside(struct loop_work *w)
{
	(void)w;
	filejobs_run(NULL, &upload.job);
}

static struct loop *
open_loop(void)
{
	struct slu_err err;
	struct loop *l = NULL;

	CHECK_EQ(0, loop_open(&l, &err), err.text);
	CHECK_EQ(0, loop_start(l, "test loop", &err), err.text);
	return l;
}

/* FILEJOBS-1, FILEJOBS-2 */
TEST(a_few_jobs_run_at_once_and_others_pass_them_by)
{
	struct loop *const loops[] = { open_loop(), open_loop() };

	filejobs_init(&filejobs, FILEJOBS_MAX);
	for (unsigned i = 0; i < JOBS; i++) {
		jobs[i] = (struct job){ .number = i, .post.run = enter };
		jobs[i].job = (struct file_job){ .loop = loops[i % 2], .run = stay, .then = count };
		loop_post(loops[i % 2], &jobs[i].post);
	}
	pthread_mutex_lock(&hall.lock);
	while (hall.inside < FILEJOBS_MAX)
		pthread_cond_wait(&hall.changed, &hall.lock);
	pthread_mutex_unlock(&hall.lock);

	/* The limit is reached, and an upload is served. */
	upload = (struct job){ .post.run = enter_beside };
	upload.job = (struct file_job){ .loop = loops[0], .run = pass_by, .then = has_passed };
	loop_post(loops[0], &upload.post);
	pthread_mutex_lock(&hall.lock);
	while (!atomic_load(&passed))
		pthread_cond_wait(&hall.changed, &hall.lock);
	CHECK_EQ(0, hall.done);
	hall.open = true;
	pthread_cond_broadcast(&hall.changed);
	while (hall.done < JOBS)
		pthread_cond_wait(&hall.changed, &hall.lock);
	CHECK_EQ(FILEJOBS_MAX, hall.most);
	pthread_mutex_unlock(&hall.lock);
	loop_close(loops[0]);
	loop_close(loops[1]);
	CHECK_EQ(0, filejobs.running);
}

/* Lets an upload pass, so that what was posted to the loop before has begun; then lets all jobs go. */
static void
pass_and_open(struct loop *loop, unsigned n)
{
	upload = (struct job){ .post.run = enter_beside };
	upload.job = (struct file_job){ .loop = loop, .run = pass_by, .then = has_passed };
	loop_post(loop, &upload.post);
	pthread_mutex_lock(&hall.lock);
	while (!atomic_load(&passed))
		pthread_cond_wait(&hall.changed, &hall.lock);
	hall.open = true;
	pthread_cond_broadcast(&hall.changed);
	while (hall.done < n)
		pthread_cond_wait(&hall.changed, &hall.lock);
	pthread_mutex_unlock(&hall.lock);
}

/* FILEJOBS-2 */
TEST(namespaces_take_turns)
{
	static const char *const spaces[] = { "a", "a", "a", "a", "b", "c", "b" };
	static const unsigned want[] = { 0, 1, 4, 5, 2, 6, 3 };
	struct loop *const loop = open_loop();

	filejobs_init(&filejobs, 1);
	EACH(i, spaces) {
		jobs[i] = (struct job){ .number = (unsigned)i, .post.run = enter };
		jobs[i].job = (struct file_job){ .loop = loop, .space = slice_of(spaces[i]), .run = stay, .then = count };
		loop_post(loop, &jobs[i].post);
	}
	pass_and_open(loop, COUNT(spaces));
	EACH(i, want)
		CHECK_EQ(want[i], hall.order[i]);
	loop_close(loop);
	CHECK_EQ(0, filejobs.running);
}
