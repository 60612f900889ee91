/*
 * reload.h - new settings for a server that runs.
 *
 *      SIGHUP ──> reload_now: file, variables and flags are read again
 *                    │ anything wrong: the old settings stay, the log has all faults
 *                    v
 *                 prepare(old, next) of every part, in the order they were added
 *                    │ one refuses: abandon() of those before it, the old stay
 *                    v
 *                 the values change ──> commit(now) of every part
 *
 * A part is whatever must do something when settings change, or when a file that a
 * setting names does (a certificate, keys):
 *
 *         static int
 *         prepare(void *arg, const struct conf *old, const struct conf *next,
 *                 struct slu_err *err)
 *         {
 *                 struct limits *l = arg;
 *
 *                 return limits_build(&l->next, next->limits_rate, err);
 *         }
 *
 *         reload_add(r, &(struct reload_part){ "limits", prepare, commit, abandon, l });
 *
 *  R1  All or nothing: everything that can fail is done in prepare, which changes
 *      nothing that anybody sees. commit cannot fail.
 *  R2  Only rows with .reload change. The others keep their value, in `next` too; the
 *      log names each that waits for a restart.
 *  R3  All three are called by the thread that reloads, one reload at a time. What
 *      belongs to other threads is handed over in commit: by an atomic, or by
 *      server_each (http/server.h), which returns when all network threads have
 *      it. old, next and now are borrowed for the call.
 *  R4  While the server runs, members of struct conf whose row has .reload are read in
 *      prepare and commit alone; they change under everybody else. The other members
 *      never change, texts included, and any thread may read them.
 *  R5  Every part is called at every reload, also when its settings are as before: a file that
 *      they name may have changed.
 */
#ifndef CONF_RELOAD_H
#define CONF_RELOAD_H

#include "conf/options.h"

struct reload;

struct reload_part {
	const char *name; /* for the log */
	int (*prepare)(void *arg, const struct conf *old, const struct conf *next,
		       struct slu_err *err);               /* NULL: nothing can fail */
	void (*commit)(void *arg, const struct conf *now); /* NULL: nothing to do */
	void (*abandon)(void *arg);                        /* prepare went well, another's did not; NULL */
	void *arg;
};

/* What is wrong with settings that are well-formed each: SLU_EINVAL and a sentence. */
typedef int conf_check(const struct conf *c, struct slu_err *err);

enum {
	RELOAD_PARTS = 16
};

/* conf was loaded from these words; it is changed here from now on. All are borrowed;
 * check may be NULL. SLU_ENOMEM. */
int reload_open(struct reload **out, struct conf *conf, int argc, char **argv,
		conf_check *check, struct slu_log *log, struct slu_err *err);
void reload_close(struct reload *r); /* NULL is fine */

/* Before the server starts, and RELOAD_PARTS at most. */
void reload_add(struct reload *r, const struct reload_part *part);

/* Read everything again. The log tells what happened; so does err. Any thread may call
 * it that may wait for a disk: not a network thread. */
int reload_now(struct reload *r, struct slu_err *err);

/* Set one value in the running server, until the next reload or restart: for an
 * administrator who wants log.level debug for a minute. who ("admin alice") becomes its
 * origin. SLU_EINVAL: there is no such key (the nearest is named), it needs a restart,
 * or the value is wrong. Threads as reload_now. */
int reload_set(struct reload *r, const char *key, const char *value, const char *who,
	       struct slu_err *err);

/* What is in force, as conf_json. Any thread; does not wait for a reload. */
void reload_show(struct reload *r, struct buf *out);

#endif
