#include "conf/reload.h"

#include "base/log.h"
#include "base/mem.h"
#include "conf/show.h"

#include <assert.h>
#include <pthread.h>

struct reload {
	struct conf *conf;
	int argc;
	char **argv;
	conf_check *check;
	struct slu_log *log;
	struct reload_part parts[RELOAD_PARTS];
	unsigned n_parts;
	pthread_mutex_t turn; /* one reload at a time */
	pthread_mutex_t mtx;  /* guards the values; held for moments, so that any thread can read them */
};

int
reload_open(struct reload **out, struct conf *conf, int argc, char **argv,
	    conf_check *check, struct slu_log *log, struct slu_err *err)
{
	struct reload *const r = mem_zalloc(sizeof *r);

	*out = NULL;
	if (!r)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	pthread_mutex_init(&r->turn, NULL); /* cannot fail with these attributes */
	pthread_mutex_init(&r->mtx, NULL);  /* nor this */
	r->conf = conf;
	r->argc = argc;
	r->argv = argv;
	r->check = check;
	r->log = log;
	*out = r;
	return 0;
}

void
reload_close(struct reload *r)
{
	if (!r)
		return;
	pthread_mutex_destroy(&r->mtx);
	pthread_mutex_destroy(&r->turn);
	mem_free(r);
}

void
reload_add(struct reload *r, const struct reload_part *part)
{
	assert(r->n_parts < RELOAD_PARTS);
	r->parts[r->n_parts++] = *part;
}

/* --- comparing and copying ---------------------------------------------------- */

/* The value as a file has it, also a secret. The caller releases it. */
static struct buf
value_of(const struct option_set *s, unsigned i)
{
	struct buf text;

	buf_init(&text, OPTION_SHOWN);
	s->rows[i].kind->show(&s->rows[i], option_place(s, i), &text);
	return text;
}

static void
forget(struct buf *text)
{
	if (text->p)
		explicit_bzero(text->p, text->n); /* it may be a secret */
	buf_release(text);
}

static bool
differs(const struct option_set *a, const struct option_set *b, unsigned i)
{
	struct buf one = value_of(a, i), two = value_of(b, i);
	const bool known = !one.failed && !two.failed; /* otherwise memory is out, and copy reports it */
	const bool same = known && slice_eq(buf_slice(&one), buf_slice(&two));

	forget(&one);
	forget(&two);
	return !same;
}

static int
copy(const struct option_set *from, struct option_set *to, unsigned i, struct slu_err *err)
{
	struct buf text = value_of(from, i);
	int rc = text.failed ? slu_fail(err, SLU_ENOMEM, "out of memory") : 0;

	if (!rc)
		rc = load_one(to, i, buf_str(&text), from->origins[i], err);
	forget(&text);
	return rc;
}

static void
swap(void *a, void *b, size_t n)
{
	unsigned char *const p = a, *const q = b;

	for (size_t i = 0; i < n; i++) {
		const unsigned char byte = p[i];

		p[i] = q[i];
		q[i] = byte;
	}
}

/* --- what changes ------------------------------------------------------------- */

static void
tell_change(struct reload *r, const char *event, const struct option_set *old,
	    const struct option_set *next, unsigned i)
{
	struct buf from, to;

	buf_init(&from, OPTION_SHOWN);
	buf_init(&to, OPTION_SHOWN);
	show_value(old, i, &from);
	show_value(next, i, &to);
	LOG_AT(r->log, next->rows[i].reload ? SLU_LOG_INFO : SLU_LOG_WARN, event,
	       F_STR("key", next->rows[i].key), F_STR("old", buf_str(&from)),
	       F_STR("new", buf_str(&to)),
	       F_STR("from", next->origins[i] ? next->origins[i] : "default"));
	buf_release(&to);
	buf_release(&from);
}

/* RELOAD-2. */
static int
hold_back(struct reload *r, const struct option_set *old, struct option_set *next,
	  struct slu_err *err)
{
	for (unsigned i = 0; i < next->n; i++) {
		int rc;

		if (next->rows[i].reload || !differs(old, next, i))
			continue;
		tell_change(r, "setting needs a restart", old, next, i);
		rc = copy(old, next, i, err);
		if (rc)
			return rc;
	}
	return 0;
}

static int
prepare(struct reload *r, const struct conf *next, struct slu_err *err)
{
	for (unsigned i = 0; i < r->n_parts; i++) {
		const struct reload_part *const p = &r->parts[i];
		struct slu_err why = { 0 };
		const int rc = p->prepare ? p->prepare(p->arg, r->conf, next, &why) : 0;

		if (!rc)
			continue;
		while (i-- > 0)
			if (r->parts[i].abandon)
				r->parts[i].abandon(r->parts[i].arg);
		return slu_fail(err, rc, "%s: %s", p->name,
				*why.text ? why.text : slu_err_row(rc)->text);
	}
	return 0;
}

/* Swaps the values that changed, so next has the old ones. RELOAD-4: other values are not
 * written. */
static unsigned
exchange(struct reload *r, struct conf *next)
{
	struct option_set now = conf_set(r->conf), new = conf_set(next);
	unsigned changed = 0;

	pthread_mutex_lock(&r->mtx);
	for (unsigned i = 0; i < now.n; i++) {
		if (now.rows[i].reload && differs(&now, &new, i)) {
			tell_change(r, "setting changed", &now, &new, i);
			swap(option_place(&now, i), option_place(&new, i),
			     now.rows[i].kind->size);
			changed++;
		}
		swap(&now.origins[i], &new.origins[i], sizeof now.origins[i]);
	}
	swap(&r->conf->sharding, &next->sharding, sizeof(struct sharding *));
	pthread_mutex_unlock(&r->mtx);
	return changed;
}

/* A part may wait for the network threads here, which may read the values meanwhile. */
static unsigned
commit(struct reload *r, struct conf *next)
{
	const unsigned changed = exchange(r, next);

	for (unsigned i = 0; i < r->n_parts; i++)
		if (r->parts[i].commit)
			r->parts[i].commit(r->parts[i].arg, r->conf);
	return changed;
}

/* --- from everywhere ---------------------------------------------------------- */

static int
tell_faults(struct reload *r, const struct conf_faults *faults, struct slu_err *err)
{
	for (unsigned i = 0; i < faults->n; i++)
		log_error(r->log, "setting refused", F_STR("why", faults->items[i]));
	return slu_fail(err, SLU_EINVAL, "%u faults, the first: %s", faults->n + faults->more,
			faults->n ? faults->items[0] : "out of memory");
}

static int
load_again(struct reload *r, struct conf *next, struct slu_err *err)
{
	struct option_set old = conf_set(r->conf), new;
	struct conf_faults faults = { 0 };
	int rc = conf_load(next, r->conf->engines, r->argc, r->argv, &faults);

	new = conf_set(next);
	if (rc)
		rc = tell_faults(r, &faults, err);
	if (!rc && r->check)
		rc = r->check(next, err);
	if (!rc)
		rc = hold_back(r, &old, &new, err);
	faults_release(&faults);
	return rc;
}

int
reload_now(struct reload *r, struct slu_err *err)
{
	struct slu_err why = { 0 };
	struct conf next;
	int rc;

	pthread_mutex_lock(&r->turn);
	rc = load_again(r, &next, &why);
	if (!rc)
		rc = prepare(r, &next, &why);
	if (rc) {
		log_error(r->log, "reload failed: the old settings stay", F_STR("why", why.text));
	} else {
		const unsigned changed = commit(r, &next);

		log_info(r->log, "reloaded", F_U64("changed", changed));
	}
	conf_release(&next);
	pthread_mutex_unlock(&r->turn);
	return rc ? slu_fail(err, rc, "%s", why.text) : 0;
}

/* --- one value ---------------------------------------------------------------- */

static int
find_key(const struct option_set *s, const char *key, unsigned *row, struct slu_err *err)
{
	const char *const near = option_nearest(s, key);

	*row = option_find(s, slice_of(key));
	if (*row == s->n)
		return slu_fail(err, SLU_EINVAL, "unknown setting %s%s%s", key,
				near ? "; did you mean " : "", near ? near : "");
	if (!s->rows[*row].reload)
		return slu_fail(err, SLU_EINVAL, "%s needs a restart", key);
	return 0;
}

static int
copy_with(struct reload *r, struct conf *next, const char *key, const char *value,
	  const char *who, struct slu_err *err)
{
	const struct option_set old = conf_set(r->conf);
	struct option_set new = conf_set(next);
	struct slu_err why;
	unsigned row;
	int rc = find_key(&old, key, &row, err);

	next->sharding = sharding_ref(r->conf->sharding);
	for (unsigned i = 0; i < old.n && !rc; i++)
		rc = copy(&old, &new, i, err);
	if (rc)
		return rc;
	rc = load_one(&new, row, value, who, &why);
	return rc ? slu_fail(err, rc, "%s: %s", key, why.text) : 0;
}

int
reload_set(struct reload *r, const char *key, const char *value, const char *who,
	   struct slu_err *err)
{
	struct conf next;
	int rc;

	conf_rows(&next, r->conf->engines);
	pthread_mutex_lock(&r->turn);
	rc = copy_with(r, &next, key, value, who, err);
	if (!rc)
		rc = prepare(r, &next, err);
	if (!rc)
		(void)commit(r, &next); /* it is one value */
	conf_release(&next);
	pthread_mutex_unlock(&r->turn);
	return rc;
}

void
reload_show(struct reload *r, struct buf *out)
{
	pthread_mutex_lock(&r->mtx);
	conf_json(r->conf, out);
	pthread_mutex_unlock(&r->mtx);
}
