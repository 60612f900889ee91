/*
 * served.h - a real sluiced for a test: the program that SLUICED names, on a unix socket in
 * the test's own folder, so that its address stays when it is started again.
 */
#ifndef TESTS_CLIENT_SERVED_H
#define TESTS_CLIENT_SERVED_H

#include <sluice/client.h>

#include <sys/types.h>
#include <test.h>

struct test_server {
	pid_t pid;
	char address[128];
	char options[4][64]; /* more of its command line */
	unsigned n_options;
};

/* In memory, gone when it ends; or on disk, where it goes on. n names it: 1, 2 ... A check
 * fails when it does not start. */
void served_start(struct test_server *s, int n, const char *engine);
void served_again(struct test_server *s);  /* after kill or stop */
void served_kill(struct test_server *s);   /* kill -9 */
void served_stop(struct test_server *s);   /* as an operator does */
void served_freeze(struct test_server *s); /* SIGSTOP, and on */
void served_thaw(struct test_server *s);

/* The call, which fills err, must go well. */
#define FINE(call)                                                         \
	do {                                                               \
		struct slu_err err = { .text = "" };                       \
		const int rc_ = (call);                                    \
		if (rc_)                                                   \
			test_fail(__FILE__, __LINE__, "%s: %s: %s", #call, \
				  slu_err_row(rc_)->c_name, err.text);     \
	} while (0)

/* A client of it; checked. */
struct slu_client *served_client(const struct test_server *s);

#endif
