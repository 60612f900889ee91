#include "torture/target.h"

#include "client/http.h"
#include "torture/times.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "torture/target_disk.h"

enum {
	START_TRIES = 3
};

#define READY_TIME (30 * SLU_SEC) /* a server retries its stores every 5 s */

/* --- what it says ----------------------------------------------------------------- */

/* Keeps the end of the output, beginning with a whole line. */
static void
remember(struct target *v, const char *line)
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
	struct target *v = arg;
	char line[TARGET_TAIL / 4];

	while (fgets(line, sizeof line, v->served.said))
		remember(v, line);
	return NULL;
}

void
target_said(struct target *v, char out[static TARGET_TAIL])
{
	pthread_mutex_lock(&v->mtx);
	memcpy(out, v->tail, v->tail_n);
	out[v->tail_n] = '\0';
	pthread_mutex_unlock(&v->mtx);
}

/* The server has ended, so its output ends too. */
static void
stop_reading(struct target *v)
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
publish(struct target *v)
{
	pthread_mutex_lock(&v->mtx);
	v->address = v->served.address;
	v->life++;
	pthread_mutex_unlock(&v->mtx);
}

bool
target_seize(struct target *v)
{
	return !atomic_exchange(&v->hurt, true);
}

void
target_let_go(struct target *v)
{
	atomic_store(&v->hurt, false);
}

unsigned
target_address(struct target *v, struct address *out)
{
	unsigned life;

	pthread_mutex_lock(&v->mtx);
	*out = v->address;
	life = v->life;
	pthread_mutex_unlock(&v->mtx);
	return life;
}

static void
begin_life(struct target *v)
{
	v->running = true;
	if (v->served.said)
		v->is_read = pthread_create(&v->reader, NULL, read_said, v) == 0;
	publish(v);
}

/* Starts a node, again if needed: with a store on a busy disk the start may time out. An operator would also
 * start it again. */
int
target_start(struct target *v, struct slu_err *err)
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
mourn(struct target *v)
{
	v->served.pid = 0;
	v->running = false;
	stop_reading(v);
}

bool
target_is_gone(struct target *v, int *status)
{
	if (!v->ours || !v->running || waitpid(v->served.pid, status, WNOHANG) != v->served.pid)
		return false;
	mourn(v);
	return true;
}

bool
target_end(struct target *v, int signal, int *status)
{
	if (target_is_gone(v, status))
		return true;
	(void)kill(v->served.pid, signal);
	(void)waitpid(v->served.pid, status, 0);
	mourn(v);
	return false;
}

void
target_pause(struct target *v)
{
	if (v->running)
		(void)kill(v->served.pid, SIGSTOP);
}

void
target_resume(struct target *v)
{
	if (v->running)
		(void)kill(v->served.pid, SIGCONT);
}

void
target_reload(struct target *v)
{
	if (v->running)
		(void)kill(v->served.pid, SIGHUP);
}

int
target_post(struct target *v, const char *path, struct slu_err *err)
{
	const struct http_call call = {
		.method = "POST",
		.path = path,
		.body = SLICE("{}"),
		.repeatable = true,
		.until = { .deadline = time_now() + READY_TIME, .stop_fd = -1 },
	};
	struct address address;
	struct http h;
	int rc;

	(void)target_address(v, &address);
	http_init(&h, &address);
	rc = http_call(&h, &call, err);
	if (!rc && h.answer.status != 200)
		rc = slu_fail(err, h.answer.status == 409 ? SLU_EBUSY : SLU_EDOWN, "%s: %.150s", path, buf_str(&h.answer.body));
	http_release(&h);
	return rc;
}

/* Is the server ready, not degraded, and does it use the current map? */
static bool
is_ready(const struct target *v, const char *said)
{
	char version[32] = "";

	if (v->conf.stores->n > 1)
		(void)snprintf(version, sizeof version, "\"version\":%u,", v->conf.stores->version);
	return strstr(said, "\"ready\"") && strstr(said, version);
}

int
target_wait(struct target *v, struct slu_err *err)
{
	const struct http_call call = {
		.method = "GET",
		.path = "/readyz",
		.repeatable = true,
		.until = { .deadline = time_now() + READY_TIME, .stop_fd = -1 },
	};
	struct address address;
	struct http h;
	bool ready = false;

	(void)target_address(v, &address);
	http_init(&h, &address);
	while (!ready && time_now() < call.until.deadline) {
		ready = http_call(&h, &call, err) == 0 && h.answer.status == 200 &&
			is_ready(v, buf_str(&h.answer.body));
		sleep_ms(ready ? 0 : 20);
	}
	if (!ready)
		(void)slu_fail(err, SLU_EDOWN, "the server is not ready although its stores run: %.150s",
			       buf_str(&h.answer.body));
	http_release(&h);
	return ready ? 0 : SLU_EDOWN;
}

bool
target_owns(struct target *v, uint32_t shard)
{
	const struct http_call call = {
		.method = "GET",
		.path = "/metrics",
		.until = { .deadline = time_now() + SLU_SEC, .stop_fd = -1 },
	};
	struct address address;
	struct slu_err err;
	struct http h;
	char text[80];
	bool owns;

	(void)snprintf(text, sizeof text, "sluice_shard_owned{shard=\"%u\"} 1", shard);
	(void)target_address(v, &address);
	http_init(&h, &address);
	owns = http_call(&h, &call, &err) == 0 && h.answer.status == 200 && strstr(buf_str(&h.answer.body), text);
	http_release(&h);
	return owns;
}

/* --- open and close --------------------------------------------------------------- */

static int
make_folder(struct target *v, struct slu_err *err)
{
	(void)snprintf(v->folder, sizeof v->folder, "%.200s/sluice-torture-XXXXXX", v->conf.dir);
	if (mkdtemp(v->folder))
		return 0;
	v->folder[0] = '\0';
	return slu_fail(err, SLU_EDOWN, "%s: %m; name another folder with --dir", v->conf.dir);
}

static int
prepare(struct target *v, struct slu_err *err)
{
	if (make_folder(v, err))
		return SLU_EDOWN;
	if (v->conf.stores->conf.kind && v->conf.stores->conf.kind->no_disk)
		(void)snprintf(v->no_disk, sizeof v->no_disk, "%s", v->conf.stores->conf.kind->no_disk);
	else if (v->conf.small_disk)
		target_disk_make(v);
	if (v->conf.own_clock)
		target_clock_make(v);
	v->served_conf.folder = v->folder;
	v->served_conf.enter = target_enter;
	v->served_conf.enter_arg = v;
	v->served_conf.keep_said = true;
	(void)snprintf(v->host, sizeof v->host, GATE_HOST, GATE_HOST_FIRST + v->conf.node);
	if (v->conf.links)
		v->served_conf.host = v->host;
	return 0;
}

int
target_open(struct target *v, const struct target_conf *conf, struct slu_err *err)
{
	int rc = 0;

	*v = (struct target){
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
		target_close(v);
	else
		begin_life(v);
	return rc;
}

void
target_close(struct target *v)
{
	int status;

	if (!v->conf.dir)
		return;
	if (v->ours && v->running)
		(void)target_end(v, SIGKILL, &status);
	stop_reading(v);
	served_close(&v->served);
	target_disk_drop(v);
	if (v->folder[0])
		served_remove(v->folder);
	if (v->clock_file[0])
		(void)unlink(v->clock_file);
	pthread_mutex_destroy(&v->mtx);
	*v = (struct target){ 0 };
}

int64_t
target_files(const struct target *v)
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
