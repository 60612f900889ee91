/*
 * check.c - is what a server was told good enough to start it? (node.h)
 */
#include "api/dialect.h"
#include "server/addresses.h"
#include "server/inboxes.h"
#include "server/limits.h"
#include "server/links.h"
#include "server/login.h"
#include "server/masking.h"
#include "server/node.h"
#include "server/place.h"
#include "server/projected.h"
#include "server/tlsfiles.h"
#include "server/shards.h"
#include "server/webhooks.h"

#include <sys/resource.h>

enum {
	FILES = 32, /* that a server has open, with a few connections */
	SHARD_FILES = 8
};

/* With fewer, what is opened last fails, and libuv aborts where it must have some. */
static int
check_files(const struct conf *conf, struct slu_err *err)
{
	const unsigned need = FILES + SHARD_FILES * shards_lanes(conf);
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_max >= need)
		return 0;
	return slu_fail(err, SLU_EINVAL,
			"only %lu files may be open, %u are needed at least: raise "
			"the limit (ulimit -n)",
			(unsigned long)limit.rlim_max, need);
}

static int
check_audit(const struct conf *conf, struct slu_err *err)
{
	return conf->audit_file ? place_check("--audit-file", conf->audit_file, PLACE_FILE, err) : 0;
}

static int
check_codeq(const struct conf *conf, struct slu_err *err)
{
	struct slu_err why = { 0 };
	const int rc = dialect_check_base(conf->codeq_path, &why);

	return rc ? slu_fail(err, (enum slu_code)rc, "codeq.path: %s", why.text) : 0;
}

/* at_open: node_open does the same when it reads the files, which may be read only once (a
 * pipe). */
static const struct {
	conf_check *check;
	bool at_open;
} rows[] = {
	{ addresses_check, false },
	{ check_files, false },
	{ shards_check, false },
	{ links_check, false },
	{ limits_check, false },
	{ inboxes_check, false },
	{ check_audit, false },
	{ check_codeq, false },
	{ webhooks_check, false },
	{ masking_check, false },
	{ projected_check, false },
	{ shards_check_stored, true },
	{ login_check, true },
	{ tlsfiles_check, true },
};

int
node_check(const struct conf *conf, struct slu_err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof rows / sizeof rows[0]; i++)
		if (!rows[i].at_open)
			rc = rows[i].check(conf, err);
	return rc;
}

void
node_faults(const struct conf *conf, struct conf_faults *faults)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct slu_err err = { 0 };
		const int rc = rows[i].check(conf, &err);

		if (rc)
			faults_add(faults, "%s", *err.text ? err.text : slu_err_row(rc)->text);
	}
}
