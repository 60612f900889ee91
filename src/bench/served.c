#include "bench/served.h"

#include "base/bytes.h"
#include "client/http.h"

#include "bench/bench.h"
#include "bench/process.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- starting ------------------------------------------------------------------- */

/* Finds sluiced: next to this program, or in PATH. */
static void
find_program(char *out, size_t n)
{
	static const char name[] = "sluiced";
	const ssize_t len = readlink("/proc/self/exe", out, n - sizeof name - 1);
	char *slash;

	out[len > 0 ? len : 0] = '\0';
	slash = strrchr(out, '/');
	if (slash)
		memcpy(slash + 1, name, sizeof name);
	if (!slash || access(out, X_OK) != 0)
		(void)snprintf(out, n, "%s", name);
}

static void
become(int err_fd, const char *program, const struct served *s)
{
	const struct served_conf *c = s->conf;
	char listen[64] = "127.0.0.1:0", links[64];
	const char *argv[16] = { program, "--listen", listen, "--data", s->folder };
	int n = 5;

	if (c->host) {
		(void)snprintf(listen, sizeof listen, "%.50s:0", c->host);
		(void)snprintf(links, sizeof links, "peer://%.50s:0", c->host);
		argv[n++] = "--listen";
		argv[n++] = links;
	}

	if (c->sync) {
		argv[n++] = "--sync";
		argv[n++] = c->sync;
	}
	if (c->engine) {
		argv[n++] = "--engine";
		argv[n++] = c->engine;
	}
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)setpgid(0, 0); /* Ctrl-C goes to the bench, which stops the server */
	if (dup2(err_fd, STDERR_FILENO) >= 0 && (!c->enter || c->enter(c->enter_arg) == 0))
		execvp(program, (char **)argv);
	dprintf(STDERR_FILENO, "%s: %m\n", program);
	_exit(127);
}

/* Reads its output until it listens. On failure `line` has the last line. */
static int
take_address(struct served *s, const char *text, struct slu_err *err)
{
	const int rc = address_parse(&s->address, text, err);

	s->address.token = s->conf->token;
	s->address.context = s->conf->context;
	return rc;
}

static int
read_address(struct served *s, FILE *said, struct slu_err *err)
{
	static const char mark[] = "listening on ";
	char line[512], last[160] = "no output";

	while (fgets(line, sizeof line, said)) {
		char *at = strstr(line, mark);

		if (at) {
			at[sizeof mark - 1 + strcspn(at + sizeof mark - 1, ", \n")] = '\0';
			return take_address(s, at + sizeof mark - 1, err);
		}
		line[strcspn(line, "\n")] = '\0';
		(void)snprintf(last, sizeof last, "%.*s", (int)sizeof last - 1, line);
	}
	return slu_fail(err, SLU_EDOWN, "cannot start a server: %s", last);
}

static int
make_folder(struct served *s, struct slu_err *err)
{
	int rc;

	if (s->conf->folder) {
		(void)snprintf(s->folder, sizeof s->folder, "%s", s->conf->folder);
		return 0;
	}
	(void)snprintf(s->folder, sizeof s->folder, "%.200s/sluice-bench-XXXXXX", s->conf->dir);
	if (mkdtemp(s->folder))
		return 0;
	rc = slu_fail(err, SLU_EDOWN, "%s: %m; name another folder with --dir", s->folder);
	s->folder[0] = '\0';
	return rc;
}

int
served_start(struct served *s, struct slu_err *err)
{
	char program[512];
	int fds[2];
	FILE *said;
	int rc;

	find_program(program, sizeof program);
	if (pipe2(fds, O_CLOEXEC) != 0)
		return slu_fail(err, SLU_EDOWN, "pipe: %m");
	s->ours = true;
	s->pid = fork();
	if (s->pid == 0)
		become(fds[1], program, s);
	close(fds[1]);
	said = fdopen(fds[0], "r");
	rc = said && s->pid > 0 ? read_address(s, said, err)
				: slu_fail(err, SLU_EDOWN, "fork: %m");
	if (!rc && s->conf->keep_said)
		s->said = said;
	else if (said) /* later output is discarded, and does not block the server */
		(void)fclose(said);
	return rc;
}

/* --- asking --------------------------------------------------------------------- */

static void
take_label(const char *line, const char *name, char *out)
{
	const char *at = strstr(line, name);

	if (at) {
		at += strlen(name);
		(void)snprintf(out, SERVED_TEXT, "%.*s", (int)strcspn(at, "\""), at);
	}
}

static int
ask(struct served *s, struct slu_err *err)
{
	struct http h;
	const struct http_call call = {
		.method = "GET",
		.path = "/metrics",
		.until = { .deadline = bench_now() + 10 * SLU_SEC, .stop_fd = -1 },
	};
	const char *info;
	int rc;

	http_init(&h, &s->address);
	rc = http_call(&h, &call, err);
	info = rc ? NULL : strstr(buf_str(&h.answer.body), "sluice_info{");
	if (info) {
		take_label(info, "version=\"", s->version);
		take_label(info, "engine=\"", s->engine);
		take_label(info, "durability=\"", s->durability);
	}
	http_release(&h);
	return rc;
}

int
served_open(struct served *s, const struct served_conf *conf, struct slu_err *err)
{
	int rc;

	*s = (struct served){ .conf = conf, .version = "?", .engine = "?", .durability = "?" };
	if (conf->server) {
		s->pid = (pid_t)conf->pid;
		rc = take_address(s, conf->server, err);
		if (!rc && s->address.tls && !conf->context)
			rc = slu_fail(err, SLU_EINVAL, "%s: bench does not support TLS", conf->server);
	} else {
		rc = make_folder(s, err);
		if (!rc)
			rc = served_start(s, err);
	}
	if (!rc)
		rc = ask(s, err);
	if (rc)
		served_close(s);
	return rc;
}

/* --- ending --------------------------------------------------------------------- */

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void
served_remove(const char *folder)
{
	(void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void
served_kill(struct served *s)
{
	if (!s->ours || s->pid <= 0)
		return;
	(void)kill(s->pid, SIGKILL);
	(void)waitpid(s->pid, NULL, 0);
	s->pid = 0;
}

void
served_close(struct served *s)
{
	served_kill(s); /* its folder is removed too, so there is nothing to save */
	if (s->folder[0] && !s->conf->folder)
		served_remove(s->folder);
	*s = (struct served){ 0 };
}

int64_t
served_memory(const struct served *s)
{
	uint64_t own, shared;

	process_memory(s->pid, &own, &shared);
	return own ? (int64_t)own : -1;
}

slu_time
served_cpu(const struct served *s)
{
	return process_cpu(s->pid);
}
