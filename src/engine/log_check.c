/*
 * log_check.c - a log and its payload files are read whole, and nothing is changed.
 */
#include "engine/log_in.h"

#include "core/ledger_check.h"

#include <inttypes.h>

enum {
	MANY = 1000000000 /* steps: a comparison looks at all messages for every queue */
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

/* Those that are named. */
static int
check_files(struct log_engine *l, struct log_facts *out, struct slu_err *err)
{
	uint32_t next = 0;
	struct log_file *f;

	while ((f = log_files_next(&l->files, &next)) != NULL) {
		struct slu_err why = { 0 };
		int rc;

		log_file_pin(f);
		rc = log_file_check(f, &why);
		log_file_unpin(f);
		out->files++;
		if (rc == SLU_ENOMEM)
			return slu_fail(err, SLU_ENOMEM, "%s", why.text);
		if (rc && out->bad_files++ == 0)
			(void)slu_fail(&out->first_bad, (enum slu_code)rc,
				       "%.150s (message %" PRIu64 ")", why.text, f->id);
	}
	return 0;
}

int
log_check(const struct engine_conf *conf, struct log_facts *out, struct slu_err *err)
{
	const struct log_conf plain = { 0 };
	struct wal_stats stats;
	struct ledger_size size;
	struct locks_size locks;
	struct log_engine *l;
	int rc;

	rc = log_new(&l, conf, &plain, err);
	if (rc)
		return rc;
	rc = log_open_wal(l, conf, &plain, true, err);
	if (!rc) {
		wal_stats(l->wal, &stats);
		ledger_size(l->ledger, &size);
		locks_size(l->clerk.locks, &locks);
		*out = (struct log_facts){
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
			out->wrong = locks_scan_check(l->clerk.locks);
		rc = check_files(l, out, err);
	}
	log_free(l);
	return rc;
}
