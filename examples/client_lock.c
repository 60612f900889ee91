/*
 * client_lock.c - one program of many does the nightly job: a lock with a lease. And a
 * counter that many may add to: acquire, change, commit in one call, the lease kept alive
 * meanwhile.
 */
#include <sluice/client.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int
nightly(struct slu_client *c, struct slu_err *err)
{
	const struct slu_acquire what = { SLU_OPTIONS_INIT(struct slu_acquire), .key = "example/nightly", .ttl = 10 * SLU_SEC, .wait = SLU_MIN };
	struct slu_lease lease, seen;
	int rc = slu_lock_acquire(c, &what, &lease, NULL, err);

	if (rc)
		return rc;
	rc = slu_lock_describe(c, "example/nightly", &seen, NULL, err); /* anybody may */
	if (!rc)
		printf("%s works, with token %" PRIu64 "\n", seen.owner, lease.token);
	if (!rc)
		rc = slu_lock_keep(c, &lease, 20 * SLU_SEC, NULL, err); /* it takes longer */
	if (slu_lock_release(c, &lease, rc ? SLU_ROLLBACK : SLU_COMMIT, NULL, rc ? NULL : err))
		return 1;
	return rc;
}

/* Runs under the lock; 0 commits, anything else rolls back. */
static int
add_one(struct slu_client *c, struct slu_lease *lease, struct slu_state *state, void *arg,
	struct slu_err *err)
{
	int *sum = arg;
	char text[24];
	int n;

	*sum = (state->text ? atoi(state->text) : 0) + 1;
	n = snprintf(text, sizeof text, "%d", *sum);
	return slu_state_put(c, lease, text, (size_t)n, NULL, NULL, err);
}

int
main(void)
{
	const struct slu_client_config config = { SLU_OPTIONS_INIT(struct slu_client_config), .servers = getenv("SLUICE_SERVER") };
	const struct slu_acquire what = { SLU_OPTIONS_INIT(struct slu_acquire), .key = "example/count", .wait = SLU_NEVER };
	struct slu_client *c;
	struct slu_err err;
	int sum = 0;
	int rc = slu_client_new(&c, &config, &err);

	if (!rc)
		rc = nightly(c, &err);
	if (!rc)
		rc = slu_lock_update(c, &what, add_one, &sum, NULL, &err);
	slu_client_free(c);
	if (rc)
		fprintf(stderr, "%s\n", err.text);
	else
		printf("the count is %d\n", sum);
	return rc || sum == 0;
}
