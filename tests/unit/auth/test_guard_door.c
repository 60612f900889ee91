/*
 * test_guard_door.c - which requests are admitted, before any other part of them is looked at.
 */
#include "token_fixture.h"

#include "auth/guard.h"
#include "fakeclock.h"

static struct fakeclock fake;

enum {
	LOOPBACK,
	UNIX,
	PUBLIC,
	PRIVATE
};

static const struct guard_place places[] = {
	[LOOPBACK] = { .local = true },
	[UNIX] = { .local = true, .is_unix = true },
	[PUBLIC] = { .local = false },
	[PRIVATE] = { .local = true, .is_unix = true, .is_private = true },
};

#define SECRET "hunter2-pet-hunter2-pet-hunter2-pet"

static struct guard
start(const char *secret)
{
	const struct auth_conf conf = { .secret = secret };
	struct guard g = { .places = places };

	fakeclock_init(&fake, SLU_SEC, NOW);
	CHECK_EQ(0, auth_open(&g.auth, &conf, 1, &fake.clock, NULL));
	return g;
}

static struct slice
field(const char *text)
{
	return text ? slice_of(text) : (struct slice){ 0 };
}

/* Its code, and that an identity comes with success alone. */
static int
check(const struct guard *g, struct guard_request *q)
{
	struct identity *who = NULL;
	struct slu_err err = { 0 };
	const int rc = guard_check(g, q, &who, &err);

	CHECK(rc == 0 ? !*err.text : *err.text && !who);
	CHECK_EQ(rc == 0 && q->needs != NEEDS_NOTHING, who != NULL);
	identity_unref(who);
	return rc;
}

/* --- the owner --------------------------------------------------------------------- */

TEST(the_owner_needs_no_certificate_on_a_private_unix_socket)
{
	static const struct {
		const char *label;
		const char *secret;
		unsigned place;
		bool is_owner;
		int want;
	} cases[] = {
		{ "the owner", NULL, PRIVATE, true, 0 },
		{ "another user", NULL, PRIVATE, false, SLU_EAUTH },
		{ "a socket for others, too", NULL, UNIX, true, SLU_EAUTH },
		{ "where there are keys", SECRET, PRIVATE, true, SLU_EAUTH },
	};

	EACH(i, cases) {
		struct guard g = start(cases[i].secret);
		struct guard_request q = {
			.needs = RIGHT_ADMIN,
			.listener = cases[i].place,
			.is_owner = cases[i].is_owner,
		};

		g.certificates = true;
		CHECK_EQ(cases[i].want, check(&g, &q), cases[i].label);
		auth_close(g.auth);
	}
}

/* --- web pages -------------------------------------------------------------------- */

TEST(without_tokens_web_pages_are_refused)
{
	static char *const hosts[] = { (char *)"queue.example" };
	static const struct {
		const char *label;
		unsigned place;
		const char *host, *origin, *site;
		bool good;
	} cases[] = {
		{ "a program", LOOPBACK, "127.0.0.1:7171", NULL, NULL, true },
		{ "by name", LOOPBACK, "localhost:7171", NULL, NULL, true },
		{ "by name, no port", LOOPBACK, "LocalHost", NULL, NULL, true },
		{ "by IPv6", LOOPBACK, "[::1]:7171", NULL, NULL, true },
		{ "another loopback", LOOPBACK, "127.9.9.9:1", NULL, NULL, true },
		{ "HTTP/1.0", LOOPBACK, NULL, NULL, NULL, true },
		{ "a name that was configured", LOOPBACK, "Queue.Example:80", NULL, NULL, true },
		{ "our own page", LOOPBACK, "127.0.0.1:7171", "http://127.0.0.1:7171", "same-origin", true },
		{ "our own page, TLS", LOOPBACK, "localhost:7171", "https://LOCALHOST:7171", NULL, true },
		{ "typed by a person", LOOPBACK, "localhost:7171", NULL, "none", true },

		{ "rebinding", LOOPBACK, "evil.example:7171", NULL, NULL, false },
		{ "rebinding, same origin", LOOPBACK, "evil.example:7171", "http://evil.example:7171", "same-origin", false },
		{ "a number that is not ours", LOOPBACK, "10.0.0.1:7171", NULL, NULL, false },
		{ "almost localhost", LOOPBACK, "localhost.evil.example", NULL, NULL, false },
		{ "almost a number", LOOPBACK, "127.0.0.1.evil.example", NULL, NULL, false },
		{ "almost configured", LOOPBACK, "queue.example.evil", NULL, NULL, false },
		{ "no name", LOOPBACK, "", NULL, NULL, false },
		{ "no bracket", LOOPBACK, "[::1", NULL, NULL, false },
		{ "almost IPv6", LOOPBACK, "[::1].evil.com", NULL, NULL, false },
		{ "almost IPv6, with a port", LOOPBACK, "[::1].evil.com:7171", NULL, NULL, false },
		{ "almost a port", LOOPBACK, "127.0.0.1:80.evil.com", NULL, NULL, false },
		{ "another site", LOOPBACK, "127.0.0.1:7171", "https://evil.example", NULL, false },
		{ "another port", LOOPBACK, "127.0.0.1:7171", "http://127.0.0.1:3000", NULL, false },
		{ "a sandbox", LOOPBACK, "127.0.0.1:7171", "null", NULL, false },
		{ "an empty origin", LOOPBACK, "127.0.0.1:7171", "", NULL, false },
		{ "cross-site", LOOPBACK, "127.0.0.1:7171", NULL, "cross-site", false },
		{ "same-site", LOOPBACK, "127.0.0.1:7171", NULL, "same-site", false },
		{ "unknown site", LOOPBACK, "127.0.0.1:7171", NULL, "new-site", false },

		{ "unix, any name", UNIX, "whatever", NULL, NULL, true },
		{ "unix, by a proxy", UNIX, "localhost", "https://evil.example", NULL, false },
		{ "beyond loopback, a number", PUBLIC, "10.0.0.1:7171", NULL, NULL, true },
		{ "beyond loopback, IPv6", PUBLIC, "[2001:db8::1]", NULL, NULL, true },
		{ "beyond loopback, a name", PUBLIC, "evil.example", NULL, NULL, false },
		{ "beyond loopback, configured", PUBLIC, "queue.example", NULL, NULL, true },
	};
	struct guard g = start(NULL);

	g.hosts = hosts;
	g.n_hosts = 1;
	EACH(i, cases) {
		struct guard_request q = {
			.needs = RIGHT_ADMIN,
			.listener = cases[i].place,
			.web.host = field(cases[i].host),
			.web.origin = field(cases[i].origin),
			.web.fetch_site = field(cases[i].site),
		};

		CHECK_EQ(cases[i].good ? 0 : SLU_EFORBIDDEN, check(&g, &q), cases[i].label);
	}
	auth_close(g.auth);
}

TEST(without_tokens_a_get_that_changes_something_is_not_a_browsers)
{
	static const struct {
		const char *label, *site, *origin, *referer, *agent;
		bool good;
	} cases[] = {
		{ "a program", NULL, NULL, NULL, "curl/8.0", true },
		{ "a program without a name", NULL, NULL, NULL, NULL, true },
		{ "an image of another page", NULL, NULL, "http://evil.example/", "Mozilla/5.0 (X11)", false },
		{ "any Referer of another page", NULL, NULL, "http://evil.example/", NULL, false },
		{ "a page that hides its address", NULL, NULL, NULL, "Mozilla/5.0 (X11)", false },
		{ "a Referer without a host", NULL, NULL, "about:client", NULL, false },
		{ "an almost own Referer", NULL, NULL, "http://localhost:7171.evil.example/", NULL, false },
		{ "our own page, an old browser", NULL, NULL, "http://localhost:7171/x", "Mozilla/5.0", true },
		{ "our own page", "same-origin", NULL, NULL, "Mozilla/5.0", true },
		{ "our own page by Origin", NULL, "http://localhost:7171", NULL, "Mozilla/5.0", true },
		{ "another page by Origin", NULL, "http://evil.example", NULL, "Mozilla/5.0", false },
	};
	struct guard g = start(NULL);

	EACH(i, cases) {
		struct guard_request q = {
			.needs = RIGHT_WRITE,
			.web.host = SLICE("localhost:7171"),
			.web.origin = field(cases[i].origin),
			.web.fetch_site = field(cases[i].site),
			.web.referer = field(cases[i].referer),
			.web.agent = field(cases[i].agent),
			.web.get_changes = true,
		};

		CHECK_EQ(cases[i].good ? 0 : SLU_EFORBIDDEN, check(&g, &q), cases[i].label);
		q.web.get_changes = false;
		CHECK_EQ(cases[i].good || !cases[i].origin ? 0 : SLU_EFORBIDDEN, check(&g, &q), cases[i].label);
	}
	auth_close(g.auth);
}

TEST(without_tokens_a_change_by_a_page_has_the_field_of_the_console)
{
	static const struct {
		const char *label, *site, *origin, *console;
		bool changes, good;
	} cases[] = {
		{ "a program", NULL, NULL, NULL, true, true },
		{ "our own page reads", "same-origin", NULL, NULL, false, true },
		{ "a form of our own page", "same-origin", NULL, NULL, true, false },
		{ "a form of our own page by Origin", NULL, "http://localhost:7171", NULL, true, false },
		{ "a person", "none", NULL, NULL, true, true },
		{ "the console", "same-origin", "http://localhost:7171", "1", true, true },
		{ "another page with the field", "cross-site", NULL, "1", true, false },
	};
	struct guard g = start(NULL);

	EACH(i, cases) {
		struct guard_request q = {
			.needs = RIGHT_WRITE,
			.web.host = SLICE("localhost:7171"),
			.web.origin = field(cases[i].origin),
			.web.fetch_site = field(cases[i].site),
			.web.console = field(cases[i].console),
			.web.changes = cases[i].changes,
		};

		CHECK_EQ(cases[i].good ? 0 : SLU_EFORBIDDEN, check(&g, &q), cases[i].label);
	}
	auth_close(g.auth);
}

TEST(a_star_is_any_host)
{
	static char *const hosts[] = { (char *)"*" };
	struct guard_request q = { .needs = RIGHT_READ, .web.host = SLICE("any.example") };
	struct guard g = start(NULL);

	g.hosts = hosts;
	g.n_hosts = 1;
	CHECK_EQ(0, check(&g, &q));
	auth_close(g.auth);
}

/* --- tokens ----------------------------------------------------------------------- */

static const char *
bearer(const char *scheme, const char *scope)
{
	static char text[TOKEN_TEXT];
	struct key k = { 0 };
	char claims[128];

	CHECK_EQ(0, key_secret(&k, JWT_HS256, SLICE(SECRET), NULL));
	(void)snprintf(claims, sizeof claims, "{\"exp\":1800000001,\"scope\":\"%s\"}", scope);
	(void)snprintf(text, sizeof text, "%s%s", scheme, fx_token(&k, "{\"alg\":\"HS256\"}", claims).p);
	key_release(&k);
	return text;
}

TEST(with_keys_a_token_is_needed)
{
	static const struct {
		const char *label, *scheme, *scope; /* NULL: no token */
		unsigned needs;
		int want;
	} cases[] = {
		{ "none", NULL, NULL, RIGHT_READ, SLU_EAUTH },
		{ "health", NULL, NULL, NEEDS_NOTHING, 0 },
		{ "good", "Bearer ", "pay:read", RIGHT_READ, 0 },
		{ "small letters", "bearer ", "pay:read", RIGHT_READ, 0 },
		{ "more spaces", "Bearer   ", "pay:read", RIGHT_READ, 0 },
		{ "no space", "Bearer", "pay:read", RIGHT_READ, SLU_EAUTH },
		{ "no scheme", "", "pay:read", RIGHT_READ, SLU_EAUTH },
		{ "another scheme", "Basic ", "pay:read", RIGHT_READ, SLU_EAUTH },
		{ "a tab", "Bearer\t", "pay:read", RIGHT_READ, SLU_EAUTH },
		/* In which namespace a right is needed is asked later. */
		{ "another right", "Bearer ", "pay:read", RIGHT_WRITE, 0 },
		{ "no right", "Bearer ", "openid", RIGHT_READ, 0 },
		{ "any, with read", "Bearer ", "pay:read", NEEDS_ANY, 0 },
		{ "any, with write", "Bearer ", "pay:write", NEEDS_ANY, 0 },
		{ "any, with none", "Bearer ", "pay:admin", NEEDS_ANY, 0 },
		{ "a holder, with consume", "Bearer ", "pay:consume", NEEDS_HOLDER, 0 },
		{ "a holder, with write", "Bearer ", "pay:write", NEEDS_HOLDER, 0 },
		{ "a holder, with read", "Bearer ", "pay:read", NEEDS_HOLDER, 0 },
		{ "both, in two scopes", "Bearer ", "pay:read pay:write", RIGHT_READ | RIGHT_WRITE, 0 },
		{ "both, with one", "Bearer ", "pay:read", RIGHT_READ | RIGHT_WRITE, 0 },
		{ "the server, of one namespace", "Bearer ", "pay:*", NEEDS_SERVER, SLU_EFORBIDDEN },
		{ "the server, to look", "Bearer ", "*:read", NEEDS_SERVER, SLU_EFORBIDDEN },
		{ "the server", "Bearer ", "*:admin", NEEDS_SERVER, 0 },
		{ "a bad one for health", "Bearer x", "", NEEDS_NOTHING, 0 },
	};
	const struct guard g = start(SECRET);

	EACH(i, cases) {
		struct guard_request q = {
			.needs = cases[i].needs,
			.authorization = cases[i].scope ? slice_of(bearer(cases[i].scheme, cases[i].scope)) : (struct slice){ 0 },
			.web.host = SLICE("any.example"), /* a page has no token */
			.web.origin = SLICE("https://any.example"),
		};

		CHECK_EQ(cases[i].want, check(&g, &q), cases[i].label);
	}
	auth_close(g.auth);
}

TEST(metrics_have_a_setting_of_their_own)
{
	static const struct {
		enum guard_metrics metrics;
		unsigned place;
		const char *scope, *host;
		int want;
	} cases[] = {
		{ METRICS_LOCAL, LOOPBACK, NULL, "localhost", 0 },
		{ METRICS_LOCAL, UNIX, NULL, "x", 0 },
		{ METRICS_LOCAL, PUBLIC, NULL, "10.0.0.1", SLU_EAUTH },
		{ METRICS_LOCAL, LOOPBACK, NULL, "evil.example", SLU_EFORBIDDEN },
		{ METRICS_LOCAL, LOOPBACK, "pay:read", "localhost", 0 }, /* a token makes it no worse */
		{ METRICS_OPEN, PUBLIC, NULL, "10.0.0.1", 0 },
		{ METRICS_TOKEN, LOOPBACK, NULL, "localhost", SLU_EAUTH },
		{ METRICS_TOKEN, PUBLIC, "*:read", "10.0.0.1", 0 },
		{ METRICS_TOKEN, PUBLIC, "pay:read", "10.0.0.1", SLU_EFORBIDDEN },
		{ METRICS_TOKEN, PUBLIC, "*:write", "10.0.0.1", SLU_EFORBIDDEN },
	};
	struct guard g = start(SECRET);

	EACH(i, cases) {
		struct guard_request q = {
			.needs = NEEDS_METRICS,
			.listener = cases[i].place,
			.web.host = slice_of(cases[i].host),
			.authorization = cases[i].scope ? slice_of(bearer("Bearer ", cases[i].scope)) : (struct slice){ 0 },
		};

		g.metrics = cases[i].metrics;
		CHECK_EQ(cases[i].want, check(&g, &q));
	}
	auth_close(g.auth);
}

TEST(a_refusal_has_a_reason)
{
	static const struct {
		const char *authorization;
		unsigned needs;
		enum refusal want;
	} cases[] = {
		{ NULL, RIGHT_READ, REFUSAL_NO_TOKEN },
		{ "Basic x", RIGHT_READ, REFUSAL_BAD_TOKEN },
		{ "Bearer a.b.c", RIGHT_READ, REFUSAL_BAD_TOKEN },
	};
	struct guard g = start(SECRET);
	struct guard_request late = { .needs = RIGHT_READ, .authorization = slice_of(bearer("Bearer ", "pay:read")) };

	EACH(i, cases) {
		struct guard_request q = { .needs = cases[i].needs, .authorization = field(cases[i].authorization) };

		CHECK_EQ(SLU_EAUTH, check(&g, &q));
		CHECK_EQ(cases[i].want, q.refusal);
	}
	fakeclock_set_wall(&fake, NOW + 100 * SLU_HOUR);
	CHECK_EQ(SLU_EAUTH, check(&g, &late));
	CHECK_EQ(REFUSAL_EXPIRED, late.refusal);
	auth_close(g.auth);
	g = start(NULL);
	late.web.host = SLICE("evil.example");
	CHECK_EQ(SLU_EFORBIDDEN, check(&g, &late));
	CHECK_EQ(REFUSAL_WEB_PAGE, late.refusal);
	auth_close(g.auth);
	for (unsigned i = 0; i < REFUSALS_COUNT; i++)
		CHECK(*refusal_name((enum refusal)i));
}

/* --- certificates ----------------------------------------------------------------- */

TEST(a_certificate_is_as_good_as_a_token_and_a_token_goes_first)
{
	const struct slice read = SLICE("lockd://ns/pay?perm=r"), broken = SLICE("lockd://ns/pay");
	struct guard_request q = { .needs = RIGHT_READ, .subject = SLICE("CN=a"), .uris = &read, .n_uris = 1 };
	struct guard g = start(NULL);

	g.certificates = true;
	CHECK(guard_is_on(&g));
	CHECK_EQ(0, check(&g, &q));
	q.needs = NEEDS_SERVER;
	CHECK_EQ(SLU_EFORBIDDEN, check(&g, &q));
	CHECK_EQ(REFUSAL_SCOPE, q.refusal);
	q.uris = &broken;
	CHECK_EQ(SLU_EAUTH, check(&g, &q));
	q.subject = (struct slice){ 0 };
	CHECK_EQ(SLU_EAUTH, check(&g, &q), "none was sent");
	auth_close(g.auth);
	g = start(SECRET);
	g.certificates = true;
	q = (struct guard_request){ .needs = RIGHT_WRITE, .subject = SLICE("CN=a"), .uris = &read, .n_uris = 1 };
	q.authorization = slice_of(bearer("Bearer ", "pay:write"));
	CHECK_EQ(0, check(&g, &q));
	q.authorization = SLICE("Bearer nonsense");
	q.needs = RIGHT_READ;
	CHECK_EQ(SLU_EAUTH, check(&g, &q), "not saved by the certificate");
	auth_close(g.auth);
}

static bool
is_queue_internal(const void *arg, struct slice host)
{
	return arg == places && slice_eq(host, SLICE("queue.internal"));
}

/* A browser shows its certificate to the server whatever page asks it to. */
TEST(a_certificate_that_a_page_makes_a_browser_show_is_refused)
{
	static const struct {
		const char *label, *host, *origin, *site;
		bool good;
	} cases[] = {
		{ "a program", "127.0.0.1:7171", NULL, NULL, true },
		{ "a program, by the name in the server's certificate", "queue.internal:7171", NULL, NULL, true },
		{ "our own page", "queue.internal:7171", "https://queue.internal:7171", "same-origin", true },
		{ "another name", "evil.example:7171", NULL, NULL, false },
		{ "another page", "queue.internal:7171", "https://evil.example", NULL, false },
		{ "another site", "queue.internal:7171", NULL, "cross-site", false },
	};
	const struct slice read = SLICE("lockd://ns/pay?perm=r");
	struct guard g = start(NULL);

	g.certificates = true;
	EACH(i, cases) {
		struct guard_request q = {
			.needs = RIGHT_READ,
			.listener = PUBLIC,
			.subject = SLICE("CN=a"),
			.uris = &read,
			.n_uris = 1,
			.web.host = field(cases[i].host),
			.web.origin = field(cases[i].origin),
			.web.fetch_site = field(cases[i].site),
			.web.is_named = is_queue_internal,
			.web.named_arg = places,
		};

		CHECK_EQ(cases[i].good ? 0 : SLU_EFORBIDDEN, check(&g, &q), cases[i].label);
	}
	auth_close(g.auth);
}
