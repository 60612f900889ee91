/*
 * The settings of a store: golden bytes, and nodes that search or create them at once.
 */
#include "members/settings.h"
#include "test.h"

static struct settings
some_settings(char c)
{
	struct settings s = { .version = 1, .format = 3, .shards = 16 };

	memset(s.uuid, c, sizeof s.uuid);
	memset(s.secret, c, sizeof s.secret);
	return s;
}

TEST(settings_have_these_bytes)
{
	static const unsigned char head[] = {
		's', 'l', 'u', 'i', 'c', 'e', 's', 't',
		/* sum */ 0x61, 0x99, 0x76, 0x1e, /* format */ 3, 0, 0, 0,
		/* version */ 1, 0, 0, 0, 0, 0, 0, 0, /* uuid */ 'a', 'a', 'a', 'a'
	};
	const struct settings s = some_settings('a');
	struct settings back;
	char object[SETTINGS_SIZE], again[SETTINGS_SIZE];

	settings_encode(&s, object);
	CHECK_EQ(0, settings_decode(&back, (struct slice){ object, sizeof object }, NULL));
	settings_encode(&back, again);
	CHECK(memcmp(object, again, sizeof object) == 0);
	CHECK_EQ('a', object[71]);
	CHECK_EQ(16, object[72]);
	for (size_t i = 0; i < sizeof head; i++)
		CHECK_EQ(head[i], (unsigned char)object[i]);
	for (size_t i = 0; i < sizeof object; i++) {
		object[i] ^= 0x10;
		CHECK_EQ(SLU_ECORRUPT, settings_decode(&back, (struct slice){ object, sizeof object }, NULL));
		object[i] ^= 0x10;
		CHECK_EQ(SLU_ECORRUPT, settings_decode(&back, (struct slice){ object, i }, NULL));
	}
}

/* A program that reads format 1 alone does not know the place, and refuses the store. */
TEST(a_store_that_places_by_namespace_has_a_format_of_its_own)
{
	struct settings s = some_settings('a'), back;
	char object[SETTINGS_SIZE];

	CHECK_EQ(1, settings_format(SETTINGS_BY_QUEUE));
	CHECK_EQ(2, settings_format(SETTINGS_BY_NAMESPACE));
	s.format = 2;
	s.place = SETTINGS_BY_NAMESPACE;
	settings_encode(&s, object);
	CHECK_EQ(1, object[76]);
	CHECK_EQ(0, settings_decode(&back, (struct slice){ object, sizeof object }, NULL));
	CHECK_EQ(SETTINGS_BY_NAMESPACE, back.place);
	s.place = SETTINGS_PLACES;
	settings_encode(&s, object);
	CHECK_EQ(SLU_ECORRUPT, settings_decode(&back, (struct slice){ object, sizeof object }, NULL));
}

TEST(the_name_holds_the_version)
{
	char name[LINE_NAME_MAX];

	settings_name(name, 12);
	CHECK_STR("settings/00000000000000000012", name);
	CHECK_EQ(12, settings_version(name));
	CHECK_EQ(0, settings_version("settings/12"));
	CHECK_EQ(0, settings_version("setting/00000000000000000012"));
}

/* ---- The search, in a store of two versions at most ---- */

static struct {
	char objects[2][SETTINGS_SIZE];
	bool exists[2];
	char names[2][LINE_NAME_MAX];
} store;

static void
execute(const struct line_request *r, struct line_answer *a, const char *names[2])
{
	const uint64_t i = settings_version(r->name) - 1;

	*a = (struct line_answer){ .result = LINE_OK, .names = names };
	if (r->verb == LINE_LIST) { /* a name a page */
		for (unsigned k = 0; k < 2; k++) {
			settings_name(store.names[k], k + 1);
			if (!store.exists[k] || strcmp(store.names[k], r->after) <= 0)
				continue;
			a->more = a->n_names > 0;
			if (a->more)
				break;
			names[a->n_names++] = store.names[k];
		}
	} else if (r->verb == LINE_GET) {
		a->result = store.exists[i] ? LINE_OK : LINE_ABSENT;
		a->object = (struct slice){ store.objects[i], SETTINGS_SIZE };
	} else if (store.exists[i]) {
		a->result = LINE_EXISTS;
	} else {
		store.exists[i] = true;
		memcpy(store.objects[i], r->object.p, SETTINGS_SIZE);
	}
}

static const struct slu_backoff retry = { .base = 1, .max = 1 };

/* One request of a search; `fails`: it is executed and the answer is lost. */
static bool
step(struct settings_search *s, slu_time now, bool fails)
{
	struct line_request r;
	struct line_answer a;
	const char *names[2];

	if (!settings_search_next(s, now, &r))
		return false;
	execute(&r, &a, names);
	if (fails)
		a.result = LINE_FAILED;
	settings_search_reply(s, &a, now, 0);
	return true;
}

TEST(two_nodes_that_start_at_once_agree_on_the_settings)
{
	/* Every order of the first six requests of two nodes; each may lose an answer. */
	for (unsigned order = 0; order < 64; order++)
		for (unsigned lost = 0; lost < 64; lost++) {
			struct settings_search s[2];
			slu_time now = 0;

			memset(&store, 0, sizeof store);
			for (unsigned i = 0; i < 2; i++) {
				const struct settings mine = some_settings((char)('a' + i));

				settings_search_init(&s[i], &mine, &retry);
			}
			for (unsigned i = 0; i < 6; i++)
				(void)step(&s[order >> i & 1], ++now, lost >> i & 1);
			while (step(&s[0], ++now, false) || step(&s[1], ++now, false))
				;
			CHECK(s[0].found && s[1].found);
			CHECK(memcmp(&s[0].settings, &s[1].settings, sizeof s[0].settings) == 0);
			CHECK(!store.exists[1]);
		}
}

TEST(the_highest_version_counts)
{
	struct settings later = some_settings('l');
	const struct settings mine = some_settings('m');
	struct settings_search s;

	memset(&store, 0, sizeof store);
	later.version = 2;
	store.exists[0] = store.exists[1] = true;
	settings_encode(&mine, store.objects[0]);
	settings_encode(&later, store.objects[1]);
	settings_search_init(&s, &mine, &retry);
	while (step(&s, 0, false))
		;
	CHECK(s.found);
	CHECK_EQ(2, s.settings.version);
	CHECK_EQ('l', s.settings.uuid[0]);
}

TEST(damaged_settings_are_refused_by_name)
{
	const struct settings mine = some_settings('m');
	struct settings_search s;

	memset(&store, 0, sizeof store);
	store.exists[0] = true;
	settings_search_init(&s, &mine, &retry);
	while (step(&s, 0, false))
		;
	CHECK(s.failed && !s.found);
	CHECK_STR("settings/00000000000000000001: damaged settings of the store", s.err.text);
}
