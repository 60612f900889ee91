#include "server/storeformat.h"

#include "base/clock.h"
#include "base/log.h"
#include "members/find.h"
#include "members/members.h"

#include <inttypes.h>

#define WAIT     SLU_SEC        /* a lane waits no longer, as for a put */
#define PATIENCE (10 * SLU_SEC) /* of one attempt */

void
storeformat_init(struct storeformat *f, struct store *store, const struct settings *settings, struct slu_log *log)
{
	*f = (struct storeformat){ .store = store, .log = log, .settings = *settings, .format = settings->format };
	pthread_mutex_init(&f->mtx, NULL);    /* cannot fail with these attributes */
	pthread_cond_init(&f->changed, NULL); /* nor this */
}

void
storeformat_release(struct storeformat *f)
{
	if (!f->store)
		return;
	if (f->started)
		pthread_join(f->thread, NULL);
	pthread_cond_destroy(&f->changed);
	pthread_mutex_destroy(&f->mtx);
}

int
storeformat_check(const struct members *m, uint32_t format, struct slu_err *err)
{
	struct members_node old;

	if (members_format(m) >= format)
		return 0;
	if (members_oldest(m, format, &old))
		return slu_fail(err, SLU_EDOWN, "this needs format %" PRIu32 " of the store, which node %.100s of version %.40s cannot read; "
						"update that node",
				format, old.name, old.version);
	return slu_fail(err, SLU_EDOWN, "this needs format %" PRIu32 " of the store; the nodes of the store are not known yet", format);
}

static void *
raise_settings(void *arg)
{
	struct storeformat *const f = arg;
	struct settings s;
	struct slu_err err = { 0 };
	uint32_t wanted;
	int rc;

	pthread_mutex_lock(&f->mtx);
	s = f->settings;
	wanted = f->wanted;
	pthread_mutex_unlock(&f->mtx);
	rc = settings_raise(f->store, &s, wanted, PATIENCE, &err);
	pthread_mutex_lock(&f->mtx);
	f->settings = s;
	f->err = err;
	f->runs = false;
	atomic_store_explicit(&f->format, s.format, memory_order_release);
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->mtx);
	if (rc)
		log_warn(f->log, "format of the store not raised", F_U64("format", wanted), F_STR("why", err.text));
	else
		log_info(f->log, "store has a new format", F_U64("format", s.format), F_U64("version", s.version));
	return NULL;
}

/* Under mtx. */
static int
start(struct storeformat *f, uint32_t format, struct slu_err *err)
{
	if (f->runs)
		return 0;
	if (f->started)
		pthread_join(f->thread, NULL); /* it has ended, or is about to, without mtx */
	f->started = false;
	f->wanted = format;
	f->err = (struct slu_err){ 0 };
	if (pthread_create(&f->thread, NULL, raise_settings, f))
		return slu_fail(err, SLU_EDOWN, "cannot start a thread");
	f->started = f->runs = true;
	return 0;
}

int
storeformat_raise(struct storeformat *f, uint32_t format, struct slu_err *err)
{
	const slu_time until = clock_mono(&clock_system) + WAIT;
	int rc;

	pthread_mutex_lock(&f->mtx);
	rc = start(f, format, err);
	while (!rc && f->runs && clock_mono(&clock_system) < until)
		clock_wait(&clock_system, &f->changed, &f->mtx, until);
	if (!rc && !storeformat_has(f, format))
		rc = slu_fail(err, SLU_EDOWN, "the store is not raised to format %" PRIu32 " yet: %.180s", format,
			      f->err.code ? f->err.text : "the store has not answered");
	pthread_mutex_unlock(&f->mtx);
	return rc;
}
