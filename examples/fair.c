/*
 * fair.c - who goes next in a queue inside your program: weights of shares, limits, holds, kinds of work, and an ack that
 * begins the next message.
 */
#include <sluice/policy.h>

#include <stdio.h>

#define PUT SLU_OPTIONS_INIT(struct slu_put), .payload = "x", .size = 1

/* gold has two turns for each of silver; at most 2 messages of the queue are worked on at once. */
static int
set_up(struct slu_broker *b, struct slu_err *err)
{
	const struct slu_policy policy = {
		SLU_OPTIONS_INIT(struct slu_policy),
		.share_weights = "gold=2",
		.concurrency = 2,
	};
	struct slu_put puts[] = {
		{ PUT, .share = "gold" },
		{ PUT, .share = "gold" },
		{ PUT, .share = "gold" },
		{ PUT, .share = "silver" },
		{ PUT, .kind = "thumbnail", .queue = "media" }, /* another queue, in the same step */
		{ PUT, .kind = "video", .queue = "media" },
	};
	const int rc = slu_policy_set(b, "jobs", &policy, err);

	return rc ? rc : slu_enqueue(b, "jobs", puts, sizeof puts / sizeof puts[0], err);
}

/* A setting is changed: the others stay as they are. */
static int
raise_limit(struct slu_broker *b, struct slu_err *err)
{
	struct slu_policy policy = { SLU_OPTIONS_INIT(struct slu_policy) };
	const int rc = slu_policy_get(b, "jobs", &policy, err);

	policy.concurrency += 1;
	return rc ? rc : slu_policy_set(b, "jobs", &policy, err);
}

/* Each job that is done begins a mail, in one step: no crash loses it, and none doubles it. */
static int
work(struct slu_broker *b, struct slu_err *err)
{
	struct slu_message m[4];
	struct slu_use uses[4];
	size_t n, n_uses;
	int rc;

	rc = slu_claim(b, "jobs", NULL, m, 4, &n, err); /* 3: the limit */
	if (!rc)
		rc = slu_limits(b, "jobs", NULL, uses, 4, &n_uses, err);
	if (!rc)
		printf("%u of %u leased\n", uses[0].leased, uses[0].concurrency);
	for (size_t i = 0; i < n; i++) {
		struct slu_put mail = { PUT, .queue = "mails" };
		const struct slu_finish_options next = { SLU_OPTIONS_INIT(struct slu_finish_options), .puts = &mail, .n = 1 };

		printf("%s\n", m[i].share);
		if (!rc)
			rc = slu_finish(b, &m[i], &next, err);
		slu_message_release(&m[i]);
	}
	return rc;
}

/* The service that a video needs is down: nothing of the queue for a minute. Then somebody knows better. */
static int
hold_and_take(struct slu_broker *b, struct slu_err *err)
{
	struct slu_hold_options hold = { SLU_OPTIONS_INIT(struct slu_hold_options), .hold = SLU_MIN };
	const struct slu_claim_options video = { SLU_OPTIONS_INIT(struct slu_claim_options), .kinds = "video,audio" };
	struct slu_message m;
	size_t n;
	int rc;

	rc = slu_hold(b, "media", &hold, err);
	hold.hold = 0;
	if (!rc)
		rc = slu_hold(b, "media", &hold, err);
	if (!rc)
		rc = slu_claim(b, "media", &video, &m, 1, &n, err);
	if (rc || n == 0)
		return rc ? rc : 1;
	printf("a %s\n", m.kind);
	rc = slu_ack(b, &m, NULL, 0, err);
	slu_message_release(&m);
	return rc;
}

int
main(void)
{
	struct slu_broker *b = NULL;
	struct slu_queue_stats mails = { 0 };
	struct slu_err err = { 0 };
	int rc;

	rc = slu_open(&b, NULL, NULL, &err);
	if (!rc)
		rc = set_up(b, &err);
	if (!rc)
		rc = raise_limit(b, &err);
	if (!rc)
		rc = work(b, &err);
	if (!rc)
		rc = hold_and_take(b, &err);
	if (!rc)
		rc = slu_stats(b, "mails", &mails, &err);
	if (rc)
		fprintf(stderr, "%s\n", err.text);
	slu_close(b);
	return rc || mails.ready != 3;
}
