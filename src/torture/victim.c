#include "torture/victim.h"

#include "client/http.h"
#include "torture/times.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "torture/victim_disk.h"

enum {
	START_TRIES = 3
};

#define READY_TIME (30 * SLU_SEC) /* it tries its stores again each 5 s at least */

/* --- what it says ----------------------------------------------------------------- */

/* Keep the end, whole lines at its front. */
static void
remember(struct victim *v, const char *line)
{
	const size_t n = strlen(line);

	pthread_mutex_lock(&v->mtx);
	while (v->tail_n + n >= sizeof v->tail && v->tail_n > 0) {
		const char *end = memchr(v->tail, '\n', v->tail_n);
		const size_t cut = end ? (size_t)(end - v->tail) + 1 : v->tail_n;

		v->tail_n -= cut;
		memmove(v->tail, v->tail + cut, v->tail_n);
	}
	memcpy(v->tail + v->tail_n, line, n + 1);
	v->tail_n += n;
	pthread_mutex_unlock(&v->mtx);
}

static void *
read_said(void *arg)
{
	struct victim *v = arg;
	char line[VICTIM_TAIL / 4];

	while (fgets(line, sizeof line, v->served.said))
		remember(v, line);
	return NULL;
}

void
victim_said(struct victim *v, char out[static VICTIM_TAIL])
{
	pthread_mutex_lock(&v->mtx);
	memcpy(out, v->tail, v->tail_n);
	out[v->tail_n] = '\0';
	pthread_mutex_unlock(&v->mtx);
}

/* It has ended, so what it says ends too. */
static void
stop_reading(struct victim *v)
{
	if (v->is_read)
		pthread_join(v->reader, NULL);
	v->is_read = false;
	if (v->served.said)
		(void)fclose(v->served.said);
	v->served.said = NULL;
}

/* --- life and death --------------------------------------------------------------- */

static void
publish(struct victim *v)
{
	pthread_mutex_lock(&v->mtx);
	v->address = v->served.address;
	v->life++;
	pthread_mutex_unlock(&v->mtx);
}

unsigned
victim_address(struct victim *v, struct address *out)
{
	unsigned life;

	pthread_mutex_lock(&v->mtx);
	*out = v->address;
	life = v->life;
	pthread_mutex_unlock(&v->mtx);
	return life;
}

static void
begin_life(struct victim *v)
{
	v->running = true;
	if (v->served.said)
		v->is_read = pthread_create(&v->reader, NULL, read_said, v) == 0;
	publish(v);
}

/* A node whose store is on a busy disk may have waited too long for it: who runs one starts it
 * again, and so is it done here. */
int
victim_start(struct victim *v, struct slu_err *err)
{
	int rc = served_start(&v->served, err);

	for (unsigned i = 1; rc == SLU_EDOWN && i < START_TRIES; i++) {
		served_kill(&v->served);
		rc = served_start(&v->served, err);
	}
	if (!rc)
		begin_life(v);
	return rc;
}

static void
mourn(struct victim *v)
{
	v->served.pid = 0;
	v->running = false;
	stop_reading(v);
}

bool
victim_is_gone(struct victim *v, int *status)
{
	if (!v->ours || !v->running || waitpid(v->served.pid, status, WNOHANG) != v->served.pid)
		return false;
	mourn(v);
	return true;
}

bool
victim_end(struct victim *v, int signal, int *status)
{
	if (victim_is_gone(v, status))
		return true;
	(void)kill(v->served.pid, signal);
	(void)waitpid(v->served.pid, status, 0);
	mourn(v);
	return false;
}

void
victim_pause(struct victim *v)
{
	if (v->running)
		(void)kill(v->served.pid, SIGSTOP);
}

void
victim_resume(struct victim *v)
{
	if (v->running)
		(void)kill(v->served.pid, SIGCONT);
}

void
victim_reload(struct victim *v)
{
	if (v->running)
		(void)kill(v->served.pid, SIGHUP);
}

/* Not "degraded", and with the current map. */
static bool
is_ready(const struct victim *v, const char *said)
{
	char version[32] = "";

	if (v->conf.stores->n > 1)
		(void)snprintf(version, sizeof version, "\"version\":%u,", v->conf.stores->version);
	return strstr(said, "\"ready\"") && strstr(said, version);
}

int
victim_wait(struct victim *v, struct slu_err *err)
{
	const struct http_call call = {
		.method = "GET",
		.path = "/readyz",
		.repeatable = true,
		.until = { time_now() + READY_TIME, -1 },
	};
	struct address address;
	struct http h;
	bool ready = false;

	(void)victim_address(v, &address);
	http_init(&h, &address);
	while (!ready && time_now() < call.until.deadline) {
		ready = http_call(&h, &call, err) == 0 && h.answer.status == 200 &&
			is_ready(v, buf_str(&h.answer.body));
		sleep_ms(ready ? 0 : 20);
	}
	http_release(&h);
	return ready ? 0 : slu_fail(err, SLU_EDOWN, "its stores are there, and it is not ready");
}

/* --- open and close --------------------------------------------------------------- */

static int
make_folder(struct victim *v, struct slu_err *err)
{
	(void)snprintf(v->folder, sizeof v->folder, "%.200s/sluice-torture-XXXXXX", v->conf.dir);
	if (mkdtemp(v->folder))
		return 0;
	v->folder[0] = '\0';
	return slu_fail(err, SLU_EDOWN, "%s: %m; name another folder with --dir", v->conf.dir);
}

static int
prepare(struct victim *v, struct slu_err *err)
{
	const int rc = make_folder(v, err);

	if (rc)
		return rc;
	if (v->conf.stores->n > 0)
		(void)snprintf(v->no_disk, sizeof v->no_disk, "its messages are not on its disk");
	else if (v->conf.small_disk)
		victim_disk_make(v);
	if (v->conf.own_clock)
		victim_clock_make(v);
	v->served_conf.folder = v->folder;
	v->served_conf.enter = victim_enter;
	v->served_conf.enter_arg = v;
	v->served_conf.keep_said = true;
	return rc;
}

int
victim_open(struct victim *v, const struct victim_conf *conf, struct slu_err *err)
{
	int rc = 0;

	*v = (struct victim){
		.conf = *conf,
		.ours = !conf->server,
		.user_ns = -1,
		.mount_ns = -1,
		.disk = -1,
		.served_conf = {
			.server = conf->server,
			.token = conf->token,
			.context = conf->context,
			.engine = conf->engine,
			.dir = conf->dir,
		},
	};
	pthread_mutex_init(&v->mtx, NULL); /* cannot fail without attributes */
	if (v->ours)
		rc = prepare(v, err);
	if (!rc)
		rc = served_open(&v->served, &v->served_conf, err);
	if (rc)
		victim_close(v);
	else
		begin_life(v);
	return rc;
}

void
victim_close(struct victim *v)
{
	int status;

	if (!v->conf.dir)
		return;
	if (v->ours && v->running)
		(void)victim_end(v, SIGKILL, &status);
	stop_reading(v);
	served_close(&v->served);
	victim_disk_drop(v);
	if (v->folder[0])
		served_remove(v->folder);
	if (v->clock_file[0])
		(void)unlink(v->clock_file);
	pthread_mutex_destroy(&v->mtx);
	*v = (struct victim){ 0 };
}

int64_t
victim_files(const struct victim *v)
{
	char path[64];
	int64_t n = 0;
	DIR *dir;

	(void)snprintf(path, sizeof path, "/proc/%ld/fd", (long)v->served.pid);
	dir = v->ours && v->running ? opendir(path) : NULL;
	if (!dir)
		return -1;
	for (const struct dirent *e = readdir(dir); e; e = readdir(dir))
		n += e->d_name[0] != '.';
	closedir(dir);
	return n;
}
