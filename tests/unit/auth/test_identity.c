#include "test.h"

#include "auth/cert.h"

static struct identity *
identity_of(const char *scopes)
{
	struct grants g = { .n = 0 };

	grants_add_scopes(&g, slice_of(scopes));
	return identity_new(SLICE("alice"), &g);
}

TEST(a_grant_is_for_its_namespace_and_right_alone)
{
	/* X-03, MQ-36 */
	static const struct {
		const char *scopes;
		const char *namespace;
		enum right right;
		bool want;
	} cases[] = {
		{ "pay:read", "pay", RIGHT_READ, true },
		{ "pay:read", "pay", RIGHT_WRITE, false },
		{ "pay:read", "pay", RIGHT_ADMIN, false },
		{ "pay:write", "pay", RIGHT_READ, false },
		{ "pay:write", "pay", RIGHT_WRITE, true },
		{ "pay:write", "pay", RIGHT_CONSUME, true },
		{ "pay:consume", "pay", RIGHT_CONSUME, true },
		{ "pay:consume", "pay", RIGHT_WRITE, false },
		{ "pay:read", "pay", RIGHT_CONSUME, false },
		{ "pay:admin", "pay", RIGHT_READ, false },
		{ "pay:admin", "pay", RIGHT_WRITE, false },
		{ "pay:admin", "pay", RIGHT_ADMIN, true },
		{ "pay:*", "pay", RIGHT_READ, true },
		{ "pay:*", "pay", RIGHT_WRITE, true },
		{ "pay:*", "pay", RIGHT_ADMIN, true },
		{ "pay:*", "payments", RIGHT_READ, false },
		{ "pay:*", "pa", RIGHT_READ, false },
		{ "pay:*", "", RIGHT_READ, false },
		{ "pay:read pay:write", "pay", RIGHT_WRITE, true },
		{ "pay:read shop:write", "pay", RIGHT_WRITE, false },
		{ "PAY:read", "pay", RIGHT_READ, true },
		{ "team-*:read", "team-a", RIGHT_READ, true },
		{ "team-*:read", "team-", RIGHT_READ, true },
		{ "team-*:read", "team", RIGHT_READ, false },
		{ "team-*:read", "", RIGHT_READ, false },
		{ "*:read", "any", RIGHT_READ, true },
		{ "*:read", "", RIGHT_READ, true },
		{ "*:read", "any", RIGHT_WRITE, false },
		{ "*:*", "any", RIGHT_ADMIN, true },
		{ "", "pay", RIGHT_READ, false },
		{ "openid profile", "pay", RIGHT_READ, false },
	};

	EACH(i, cases) {
		struct identity *const id = identity_of(cases[i].scopes);

		CHECK_EQ(cases[i].want,
			 identity_may(id, slice_of(cases[i].namespace), cases[i].right),
			 cases[i].scopes);
		identity_unref(id);
	}
}

TEST(what_is_no_scope_grants_nothing)
{
	static const char *const cases[] = {
		"read", ":", ":read", "pay:", "pay:Read", "pay:readwrite", "pay:read:write",
		"pay :read", "a/b:read", ".locks:read", "*a:read", "a*b:read", "**:read",
		"pay:read,pay:write", "pay:\tread"
	};

	EACH(i, cases) {
		struct grants g = { .n = 0 };

		CHECK_EQ(false, grants_add_scope(&g, slice_of(cases[i])), cases[i]);
		CHECK_EQ(0, g.n, cases[i]);
	}
}

TEST(an_unknown_caller_has_no_right_and_anyone_has_all)
{
	CHECK(!identity_may(NULL, SLICE("pay"), RIGHT_READ));
	CHECK(identity_may(identity_anyone(), SLICE("pay"), RIGHT_ADMIN));
	CHECK(identity_may(identity_anyone(), (struct slice){ 0 }, RIGHT_WRITE));
	identity_unref(identity_ref(identity_anyone()));
	identity_unref(identity_anyone());
}

TEST(a_right_anywhere_is_found)
{
	struct identity *const id = identity_of("pay:read shop:admin");

	identity_unref(id);
}

TEST(grants_and_names_are_bounded)
{
	static char name[1000];
	struct grants g = { .n = 0 };
	struct identity *id;

	for (unsigned i = 0; i < GRANTS_MAX; i++)
		grants_add_scopes(&g, SLICE("pay:read  other "));
	CHECK_EQ(GRANTS_MAX, g.n);
	CHECK(!g.too_many);
	memset(name, 'x', sizeof name);
	memcpy(name, "a\nb\x1b c\xff", 7);
	id = identity_new((struct slice){ name, sizeof name }, &g);
	CHECK_EQ(IDENTITY_NAME_MAX, id->name.n);
	CHECK(memcmp(id->name.p, "a?b??c?x", 8) == 0);
	identity_unref(id);
	CHECK(grants_add_scope(&g, SLICE("pay:read")));
	CHECK(g.too_many);
}

TEST(an_identity_lives_until_its_last_reference)
{
	struct identity *const id = identity_of("pay:read");

	identity_ref(id);
	identity_unref(id);
	CHECK(identity_may(id, SLICE("pay"), RIGHT_READ));
	identity_unref(id);
	identity_unref(NULL);
}

/* --- certificates --------------------------------------------------------------- */

enum {
	URIS = 4
};

static int
identify(struct identity **id, const char *subject, const char *const uris[URIS],
	 const char *file, struct slu_err *err)
{
	struct cert_map map = { 0 };
	struct slice names[URIS];
	unsigned n = 0;
	int rc = 0;

	while (n < URIS && uris[n]) {
		names[n] = slice_of(uris[n]);
		n++;
	}
	if (file)
		rc = cert_map_parse(&map, slice_of(file), err);
	if (!rc)
		rc = cert_identity(id, slice_of(subject), names, n, &map, err);
	cert_map_release(&map);
	return rc;
}

TEST(a_certificate_is_granted_what_its_names_say)
{
	static const char file[] = "# who may what\n"
				   "pay:read,pay:write  CN=worker-1,O=Acme Ltd\n"
				   "\r\n"
				   "  *:*\tspiffe://acme/operator  \r\n"
				   "shop:read CN=worker-1,O=Acme Ltd";
	static const struct {
		const char *subject;
		const char *uris[URIS];
		const char *name;
		const char *read, *write, *admin; /* a namespace it may, or NULL: none */
	} cases[] = {
		{ "CN=a", { NULL }, "CN=a", NULL, NULL, NULL },
		{ "CN=a", { "lockd://ns/pay?perm=r" }, "CN=a", "pay", NULL, NULL },
		{ "CN=a", { "lockd://ns/pay?perm=w" }, "CN=a", NULL, "pay", NULL },
		{ "CN=a", { "lockd://ns/Pay?perm=rw" }, "CN=a", "pay", "pay", NULL },
		{ "CN=a", { "lockd://ns/ALL?perm=rw" }, "CN=a", "any", "any", NULL },
		{ "CN=a", { "lockd://ns/a?perm=r", "spiffe://x/y", "lockd://ns/b?perm=w" }, "spiffe://x/y", "a", "b", NULL },
		{ "CN=worker-1,O=Acme Ltd", { NULL }, "CN=worker-1,O=Acme?Ltd", "shop", "pay", NULL },
		{ "CN=worker-1", { NULL }, "CN=worker-1", NULL, NULL, NULL },
		{ "CN=x", { "spiffe://acme/operator" }, "spiffe://acme/operator", "any", "any", "any" },
	};

	EACH(i, cases) {
		struct identity *id = NULL;
		const char *const names[] = { cases[i].read, cases[i].write, cases[i].admin };
		static const enum right rights[] = { RIGHT_READ, RIGHT_WRITE, RIGHT_ADMIN };

		CHECK_EQ(0, identify(&id, cases[i].subject, cases[i].uris, file, NULL));
		CHECK(slice_eq(slice_of(cases[i].name), id->name));
		EACH(j, names) {
			CHECK(!names[j] || identity_may(id, slice_of(names[j]), rights[j]));
		}
		identity_unref(id);
	}
}

TEST(a_claim_that_cannot_be_read_refuses_the_certificate)
{
	static const char *const cases[] = {
		"lockd://", "lockd://ns/", "lockd://ns/pay", "lockd://ns/pay?perm=",
		"lockd://ns/pay?perm=x", "lockd://ns/pay?perm=rwx", "lockd://ns/?perm=r",
		"lockd://ns/a/b?perm=r", "lockd://ns/*?perm=r", "lockd://ns/te*?perm=r",
		"lockd://other/pay?perm=r", "lockd://ns/.locks?perm=r", "lockd://ns/pay?PERM=r"
	};

	EACH(i, cases) {
		const char *const uris[URIS] = { cases[i] };
		struct identity *id = NULL;
		struct slu_err err;

		CHECK_EQ(SLU_EINVAL, identify(&id, "CN=a", uris, NULL, &err), cases[i]);
		CHECK(strstr(err.text, "lockd://ns/NAMESPACE?perm=r, w or rw"));
	}
}

TEST(a_bad_file_of_names_says_which_line)
{
	static const struct {
		const char *text;
		const char *says;
	} cases[] = {
		{ "pay:read CN=a\npay:read\n", "line 2: invalid rule" },
		{ "pay:reed CN=a", "line 1: invalid scopes" },
		{ "\n\npay:read,,x CN=a", "line 3" },
		{ "CN=a pay:read", "line 1" },
	};

	EACH(i, cases) {
		struct cert_map map;
		struct slu_err err;

		CHECK_EQ(SLU_EINVAL, cert_map_parse(&map, slice_of(cases[i].text), &err));
		CHECK(strstr(err.text, cases[i].says));
		CHECK_EQ(0, map.n_rules);
	}
}

TORTURE(identities_survive_lack_of_memory)
{
	static const char *const uris[URIS] = { "spiffe://x/y" };
	struct identity *id = NULL;
	const int rc = identify(&id, "CN=a", uris, "pay:read spiffe://x/y\n", NULL);

	CHECK(rc == 0 || rc == SLU_ENOMEM);
	CHECK_EQ(rc == 0, id != NULL);
	identity_unref(id);
}
