#include "test.h"

#include "exec/mailbox.h"
#include "fakeclock.h"

enum {
	POSTERS = 4,
	EACH_POSTS = 5000
};

struct letter {
	int from;
	int number;
	slu_time stamp;
	struct list node;
};

static struct letter *
first_of(struct list *mail)
{
	CHECK(!list_is_empty(mail));
	return CONTAINER(mail->next, struct letter, node);
}

static void
open_mailbox(struct mailbox *in, struct clock *clock)
{
	CHECK_EQ(0, mailbox_init(in, clock, NULL));
}

TEST(mail_comes_out_in_order_and_once)
{
	struct letter letters[] = { { .number = 0 }, { .number = 1 }, { .number = 2 } };
	struct list mail;
	struct mailbox in;
	bool closed;
	int n = 0;

	list_init(&mail);
	open_mailbox(&in, &clock_system);
	EACH(i, letters)
		CHECK_EQ(0, mailbox_post(&in, &letters[i].node, &letters[i].stamp));
	mailbox_take(&in, SLU_NEVER, 1, &mail, &closed);
	CHECK(!closed);
	LIST_EACH(i, &mail)
		CHECK_EQ(n++, CONTAINER(i, struct letter, node)->number);
	CHECK_EQ(3, n);
	list_init(&mail);
	mailbox_take(&in, 0, 1, &mail, &closed);
	CHECK(list_is_empty(&mail));
	mailbox_release(&in);
}

TEST(mail_is_stamped_with_the_moment_it_went_in)
{
	struct fakeclock clock;
	struct letter a, b;
	struct list mail;
	struct mailbox in;
	bool closed;

	list_init(&mail);
	fakeclock_init(&clock, 100, 0);
	open_mailbox(&in, &clock.clock);
	mailbox_post(&in, &a.node, &a.stamp);
	fakeclock_advance(&clock, 5);
	mailbox_post(&in, &b.node, &b.stamp);
	fakeclock_advance(&clock, 5);
	CHECK_EQ(110, mailbox_take(&in, 0, 1, &mail, &closed), "now is read with the take");
	CHECK_EQ(100, a.stamp);
	CHECK_EQ(105, b.stamp);
	mailbox_release(&in);
}

struct taker {
	struct mailbox in;
	pthread_t thread;
	slu_time until;
	uint32_t enough;
	struct list mail;
	slu_time now;
	bool closed;
	_Atomic bool back;
};

static void *
take(void *arg)
{
	struct taker *t = arg;

	t->now = mailbox_take(&t->in, t->until, t->enough, &t->mail, &t->closed);
	t->back = true;
	return NULL;
}

static void
taker_start(struct taker *t, struct fakeclock *clock, slu_time until, uint32_t enough)
{
	*t = (struct taker){ .until = until, .enough = enough };
	list_init(&t->mail);
	open_mailbox(&t->in, &clock->clock);
	CHECK_EQ(0, pthread_create(&t->thread, NULL, take, t));
	WAIT_UNTIL(fakeclock_sleepers(clock) == 1);
}

static void
taker_end(struct taker *t)
{
	pthread_join(t->thread, NULL);
	mailbox_release(&t->in);
}

TEST(a_sleeper_is_woken_by_mail)
{
	struct fakeclock clock;
	struct letter a = { .number = 7 };
	struct taker t;

	fakeclock_init(&clock, 0, 0);
	taker_start(&t, &clock, SLU_NEVER, 1);
	CHECK(!t.back);
	mailbox_post(&t.in, &a.node, NULL);
	taker_end(&t);
	CHECK_EQ(7, first_of(&t.mail)->number);
}

/* No thread sleeps here: a woken one might sleep again before the test looks. */
TEST(a_sleeper_is_woken_by_enough_mail_and_not_by_less)
{
	struct letter letters[3];
	struct mailbox in;

	open_mailbox(&in, &clock_system);
	in.sleeping = true;
	in.enough = 3;
	mailbox_post(&in, &letters[0].node, NULL);
	mailbox_post(&in, &letters[1].node, NULL);
	CHECK(in.sleeping);
	mailbox_post(&in, &letters[2].node, NULL);
	CHECK(!in.sleeping);
	mailbox_release(&in);
}

TEST(a_sleeper_takes_all_that_it_waited_for)
{
	struct letter letters[3];
	struct fakeclock clock;
	struct taker t;

	fakeclock_init(&clock, 0, 0);
	taker_start(&t, &clock, SLU_NEVER, 3);
	EACH(i, letters)
		mailbox_post(&t.in, &letters[i].node, NULL);
	taker_end(&t);
	CHECK(t.mail.next->next->next == &letters[2].node);
}

TEST(news_wake_a_sleeper_that_waits_for_more_mail)
{
	struct fakeclock clock;
	struct letter a = { .number = 7 };
	struct taker t;

	fakeclock_init(&clock, 0, 0);
	taker_start(&t, &clock, SLU_NEVER, 3);
	mailbox_post(&t.in, &a.node, NULL);
	mailbox_poke(&t.in);
	taker_end(&t);
	CHECK_EQ(7, first_of(&t.mail)->number);
}

TEST(a_sleeper_wakes_at_its_moment_and_not_before)
{
	struct fakeclock clock;
	struct taker t;

	fakeclock_init(&clock, 0, 0);
	taker_start(&t, &clock, 50, 1);
	CHECK_EQ(50, fakeclock_until(&clock));
	fakeclock_advance(&clock, 49);
	CHECK(!t.back);
	fakeclock_advance(&clock, 1);
	taker_end(&t);
	CHECK_EQ(50, t.now);
	CHECK(list_is_empty(&t.mail));
}

TEST(closing_wakes_the_sleeper_once_and_refuses_what_comes_later)
{
	struct fakeclock clock;
	struct letter a = { .number = 1 }, owed = { .number = 2 };
	struct taker t;

	fakeclock_init(&clock, 0, 0);
	taker_start(&t, &clock, SLU_NEVER, 1);
	mailbox_close(&t.in);
	pthread_join(t.thread, NULL);
	CHECK(t.closed);
	CHECK_EQ(SLU_ECLOSED, mailbox_post(&t.in, &a.node, NULL));

	mailbox_post_owed(&t.in, &owed.node);
	mailbox_take(&t.in, SLU_NEVER, 1, &t.mail, &t.closed);
	CHECK_EQ(2, first_of(&t.mail)->number, "what is waited for still comes");
	CHECK(t.closed);
	list_init(&t.mail);
	CHECK_EQ(0, mailbox_take(&t.in, 0, 1, &t.mail, &t.closed));
	CHECK(t.closed);
	mailbox_release(&t.in);
}

/* The whole of one poster's mail, posted as fast as it can. */
struct poster {
	struct mailbox *in;
	pthread_t thread;
	struct letter letters[EACH_POSTS];
};

static struct poster posters[POSTERS];

static void *
post_all(void *arg)
{
	struct poster *p = arg;

	EACH(i, p->letters)
		CHECK_EQ(0, mailbox_post(p->in, &p->letters[i].node, &p->letters[i].stamp));
	return NULL;
}

static void
start_posters(struct mailbox *in)
{
	for (int i = 0; i < POSTERS; i++) {
		posters[i].in = in;
		for (int k = 0; k < EACH_POSTS; k++)
			posters[i].letters[k] = (struct letter){ .from = i, .number = k };
		pthread_create(&posters[i].thread, NULL, post_all, &posters[i]);
	}
}

/* MAILBOX-1 and MAILBOX-2 for what one take brought. Returns how many. */
static int
check_mail(struct list *mail, int *next, slu_time *last, slu_time now)
{
	int n = 0;

	LIST_EACH(i, mail) {
		const struct letter *l = CONTAINER(i, struct letter, node);

		CHECK_EQ(next[l->from]++, l->number, "in order per poster");
		CHECK(l->stamp >= *last);
		CHECK(l->stamp <= now);
		*last = l->stamp;
		n++;
	}
	*last = now;
	return n;
}

TEST(many_threads_post_and_nothing_is_lost)
{
	int next[POSTERS] = { 0 };
	slu_time last = 0;
	struct mailbox in;
	int n = 0;

	open_mailbox(&in, &clock_system);
	start_posters(&in);
	while (n < POSTERS * EACH_POSTS) {
		struct list mail;
		bool closed;
		slu_time now;

		list_init(&mail);
		now = mailbox_take(&in, SLU_NEVER, 1, &mail, &closed);
		n += check_mail(&mail, next, &last, now);
	}
	for (int i = 0; i < POSTERS; i++)
		pthread_join(posters[i].thread, NULL);
	CHECK_EQ(POSTERS * EACH_POSTS, n);
	mailbox_release(&in);
}
