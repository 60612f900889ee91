/*
 * reload.h - new settings for a running server.
 *
 *      SIGHUP ──> reload_now: reads file, variables and flags again
 *                    │ a fault: the old settings stay, the log has all faults
 *                    v
 *                 prepare(old, next) of every part, in the order of reload_add
 *                    │ one fails: abandon() of the parts before it, the old settings stay
 *                    v
 *                 the values change ──> commit(now) of every part
 *
 * A part acts when settings change, or when a file that a setting names changes (a
 * certificate, keys):
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
 *  RELOAD-1  A reload changes all parts or none: prepare does everything that can fail and
 *      changes nothing visible. commit cannot fail.
 *  RELOAD-2  Only rows with .reload change. The others keep their value, in `next` too; the
 *      log names each changed row that needs a restart.
 *  RELOAD-3  The thread that reloads calls all three functions, one reload at a time. commit
 *      hands values to other threads: by an atomic, or by server_each (net/server.h),
 *      which returns when all network threads have the value. old, next and now are
 *      borrowed for the call.
 *  RELOAD-4  While the server runs, only prepare and commit may read members of struct conf
 *      whose row has .reload: a reload changes them. The other members never change, texts
 *      included, and any thread may read them.
 *  RELOAD-5  Every reload calls every part, even if its settings did not change: a file that
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
	void (*abandon)(void *arg);                        /* after prepare, if another part failed; may be NULL */
	void *arg;
};

/* SLU_EINVAL if settings contradict each other, though each is valid. */
typedef int conf_check(const struct conf *c, struct slu_err *err);

enum {
	RELOAD_PARTS = 16
};

/* conf was loaded from these words; from now on only reload changes it. All arguments are
 * borrowed; check may be NULL. Returns SLU_ENOMEM. */
int reload_open(struct reload **out, struct conf *conf, int argc, char **argv,
		conf_check *check, struct slu_log *log, struct slu_err *err);
void reload_close(struct reload *r); /* NULL is fine */

/* Before the server starts; at most RELOAD_PARTS. */
void reload_add(struct reload *r, const struct reload_part *part);

/* Read all settings again, and log the result. Any thread that may wait for a disk, so no
 * network thread. */
int reload_now(struct reload *r, struct slu_err *err);

/* Set one value in the running server, until the next reload or restart: an administrator
 * wants log.level debug for a minute. who ("admin alice") becomes its origin. SLU_EINVAL if
 * the key is unknown (the error names the nearest), needs a restart, or the value is invalid.
 * Threads as reload_now. */
int reload_set(struct reload *r, const char *key, const char *value, const char *who,
	       struct slu_err *err);

/* The settings in force, as conf_json. Any thread; does not wait for a reload. */
void reload_show(struct reload *r, struct buf *out);

#endif
