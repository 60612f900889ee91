/*
 * check.c - reads a whole log and its payload files, and changes nothing.
 */
#include "engine/log/logengine_private.h"

#include "core/ledger/check.h"

#include <inttypes.h>

enum {
	MANY = 1000000000 /* steps; comparing visits all messages for every queue */
};

static bool
can_compare(const struct ledger_size *size)
{
	return (uint64_t)size->queues * size->messages <= MANY;
}

static uint32_t
count_damaged(const struct ledger *l)
{
	uint32_t queue = SLAB_NONE, n = 0;
	struct ledger_queue_view v;

	while ((queue = ledger_queue_next(l, queue)) != SLAB_NONE) {
		ledger_queue_get(l, queue, &v);
		n += v.count[MSG_DAMAGED];
	}
	return n;
}

/* Checks every payload file that a record names. */
static int
check_files(struct logengine *l, struct logengine_facts *out, struct slu_err *err)
{
	uint32_t next = 0;
	struct logengine_file *f;

	while ((f = logengine_files_next(&l->files, &next)) != NULL) {
		struct slu_err why = { 0 };
		int rc;

		logengine_file_pin(f);
		rc = logengine_file_check(f, &why);
		logengine_file_unpin(f);
		out->files++;
		if (rc == SLU_ENOMEM)
			return slu_fail(err, SLU_ENOMEM, "%s", why.text);
		if (rc && out->bad_files++ == 0)
			(void)slu_fail(&out->first_bad, (enum slu_code)rc,
				       "%.150s (message %" PRIu64 ")", why.text, f->id);
	}
	return 0;
}

static void
count(struct logengine *l, struct logengine_facts *out)
{
	struct wal_stats stats;
	struct ledger_size size;
	struct locks_size locks;

	wal_stats(l->wal, &stats);
	ledger_size(l->ledger, &size);
	locks_size(l->ledgerengine.locks, &locks);
	*out = (struct logengine_facts){
		.records = l->records,
		.first_seq = l->first_seq,
		.last_seq = l->last_seq,
		.time = stats.time,
		.messages = size.messages,
		.damaged = count_damaged(l->ledger),
		.queues = size.queues,
		.locks = locks.keys,
		.states = locks.messages,
		.missing = l->missing,
		.closed = l->closed,
		.compared = can_compare(&size),
		.wrong = can_compare(&size) ? ledger_scan_check(l->ledger) : NULL,
	};
	if (!out->wrong)
		out->wrong = locks_scan_check(l->ledgerengine.locks);
}

int
logengine_examine(struct logengine *l, const struct engine_conf *conf, struct logengine_facts *out,
		  struct slu_err *err)
{
	const int rc = logengine_open_wal(l, conf, true, err);

	if (rc)
		return rc;
	count(l, out);
	return check_files(l, out, err);
}

int
logengine_check(const struct engine_conf *conf, struct logengine_facts *out, struct slu_err *err)
{
	struct logengine *l;
	int rc;

	rc = logengine_new(&l, conf, &(struct logengine_conf){ 0 }, err);
	if (rc)
		return rc;
	rc = logengine_examine(l, conf, out, err);
	logengine_free(l);
	return rc;
}
