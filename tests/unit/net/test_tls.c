/*
 * test_tls.c - two sessions that speak to each other without a socket.
 */
#include "test.h"

#include "base/mem.h"
#include "net/tls.h"
#include "net/tls_make.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- certificates -------------------------------------------------------------- */

static void
make(const char *path, const char *ca, const char *names, int days)
{
	const struct tls_recipe r = { .subject = path, .ca = ca, .names = names, .days = days };
	struct slu_err err = { 0 };

	CHECK_EQ(0, tls_make(path, &r, &err), err.text);
}

#define CLAIM "lockd://ns/pay?perm=rw"

static void
make_all(void)
{
	make("ca", NULL, NULL, 30);
	make("other", NULL, NULL, 30);
	make("server", "ca", "DNS:localhost,IP:127.0.0.1", 30);
	make("client", "ca", "URI:spiffe://acme/w,URI:" CLAIM ",DNS:worker", 30);
}

/* --- two sides ----------------------------------------------------------------- */

struct side {
	struct tls_context *context;
	struct tls_room *room;
	struct tls *tls;
	enum tls_state state;
	struct buf got;
};

static struct side server, client;
static struct slu_err why;

static void
side_close(struct side *s)
{
	tls_free(s->tls);
	tls_room_free(s->room);
	tls_context_unref(s->context);
	buf_release(&s->got);
	memset(s, 0, sizeof *s);
}

static void
close_both(void)
{
	side_close(&server);
	side_close(&client);
}

static int
open_side(struct side *s, const char *host)
{
	s->room = tls_room_new();
	s->tls = s->room ? tls_new(s->context, s->room, host) : NULL;
	buf_init(&s->got, 64 << 20);
	return s->tls ? 0 : SLU_ENOMEM;
}

static int
open_both(struct tls_server_conf sc, struct tls_client_conf cc, const char *host)
{
	int rc;

	sc.cert = sc.cert ? sc.cert : "server.pem";
	sc.key = sc.key ? sc.key : "server.key";
	cc.ca_file = cc.ca_file ? cc.ca_file : "ca.pem";
	rc = tls_context_server(&server.context, &sc, &why);
	if (!rc)
		rc = tls_context_client(&client.context, &cc, &why);
	if (!rc)
		rc = open_side(&server, NULL);
	if (!rc)
		rc = open_side(&client, host ? host : "localhost");
	return rc;
}

/* Bytes of `from` to `to`, `piece` at a time. Returns how many plain ones were whole. */
static size_t
carry(struct side *from, struct side *to, size_t piece)
{
	size_t whole = 0;

	while (tls_out(from->tls).n > 0) {
		const struct slice out = tls_out(from->tls);
		const size_t n = out.n < piece ? out.n : piece;
		struct slice plain;

		if (to->state != TLS_FAILED) {
			to->state = tls_take(to->tls, (struct slice){ out.p, n }, &plain);
			buf_put(&to->got, plain.p, plain.n);
		}
		whole += tls_sent(from->tls, n);
	}
	return whole;
}

static void
shake_hands(size_t piece)
{
	struct slice plain;

	client.state = tls_take(client.tls, (struct slice){ NULL, 0 }, &plain);
	while (tls_out(client.tls).n > 0 || tls_out(server.tls).n > 0) {
		carry(&client, &server, piece);
		carry(&server, &client, piece);
	}
}

static void
say(struct side *from, struct side *to, const char *p, size_t n)
{
	while (n > 0) {
		const size_t room = tls_room_for(from->tls);
		const size_t k = n < room ? n : room;

		CHECK(k > 0);
		CHECK_EQ(0, tls_put(from->tls, p, k));
		CHECK_EQ(0, tls_put_end(from->tls));
		CHECK_EQ(k, carry(from, to, TLS_READ));
		p += k;
		n -= k;
	}
}

static void
meet(struct tls_server_conf sc, struct tls_client_conf cc)
{
	CHECK_EQ(0, open_both(sc, cc, NULL), why.text);
	shake_hands(TLS_READ);
	CHECK_EQ(TLS_OPEN, client.state, client.room->why);
	CHECK_EQ(TLS_OPEN, server.state, server.room->why);
}

/* --- what holds ---------------------------------------------------------------- */

TEST(two_sides_agree_however_the_bytes_are_cut)
{
	static const size_t pieces[] = { 1, 7, 100, TLS_READ };

	make_all();
	EACH(i, pieces) {
		CHECK_EQ(0, open_both((struct tls_server_conf){ 0 }, (struct tls_client_conf){ 0 }, NULL));
		shake_hands(pieces[i]);
		CHECK_EQ(TLS_OPEN, server.state);
		CHECK_STR("TLSv1.3", tls_version(server.tls));
		CHECK(!tls_peer(server.tls));
		say(&client, &server, "ping", 4);
		say(&server, &client, "pong", 4);
		CHECK_STR("ping", buf_str(&server.got));
		CHECK_STR("pong", buf_str(&client.got));
		close_both();
	}
}

TEST(large_bodies_arrive_whole_both_ways)
{
	const size_t n = 5 * 1000 * 1000 + 17;
	char *const body = malloc(n);
	uint64_t seed = test_seed();

	make_all();
	for (size_t i = 0; i < n; i++)
		body[i] = (char)test_random(&seed);
	meet((struct tls_server_conf){ 0 }, (struct tls_client_conf){ 0 });
	say(&client, &server, body, n);
	say(&server, &client, body, n);
	CHECK_EQ(n, server.got.n);
	CHECK_EQ(0, memcmp(body, server.got.p, n));
	CHECK_EQ(n, client.got.n);
	CHECK_EQ(0, memcmp(body, client.got.p, n));
	close_both();
	free(body);
}

/* TLS-2 */
TEST(a_plain_byte_is_out_when_its_record_is)
{
	char body[TLS_RECORD + 100] = { 0 };
	size_t total, first, whole = 0;

	make_all();
	meet((struct tls_server_conf){ 0 }, (struct tls_client_conf){ 0 });
	CHECK_EQ(0, tls_put(server.tls, body, sizeof body));
	CHECK_EQ(0, tls_put_end(server.tls));
	total = tls_out(server.tls).n;
	first = total - 100 - (total - sizeof body) / 2; /* two records, one overhead each */
	CHECK_EQ(0, tls_sent(server.tls, first - 1));
	CHECK_EQ(TLS_RECORD, tls_sent(server.tls, 1));
	while (tls_out(server.tls).n > 1)
		whole += tls_sent(server.tls, 1);
	CHECK_EQ(0, whole);
	CHECK_EQ(100, tls_sent(server.tls, 1));
	CHECK_EQ(0, tls_out(server.tls).n);
	close_both();
}

TEST(what_flies_stays_where_it_is)
{
	char body[1000] = { 0 };
	struct slice flying, plain;
	struct buf copy;

	make_all();
	meet((struct tls_server_conf){ 0 }, (struct tls_client_conf){ 0 });
	CHECK_EQ(0, tls_put(server.tls, body, sizeof body));
	CHECK_EQ(0, tls_put_end(server.tls));
	flying = tls_fly(server.tls);
	buf_init(&copy, 10000);
	buf_put(&copy, flying.p, flying.n);
	CHECK_EQ(0, tls_out(server.tls).n);
	CHECK_EQ(0, tls_put(server.tls, "more", 4));
	CHECK_EQ(0, tls_put_end(server.tls));
	CHECK_EQ(0, memcmp(copy.p, flying.p, flying.n));
	(void)tls_take(client.tls, flying, &plain);
	CHECK_EQ(sizeof body, plain.n);
	CHECK_EQ(sizeof body, tls_landed(server.tls));
	CHECK_EQ(4, carry(&server, &client, TLS_READ));
	CHECK_STR("more", buf_str(&client.got));
	buf_release(&copy);
	close_both();
}

TEST(small_pieces_share_a_record)
{
	size_t n;

	make_all();
	meet((struct tls_server_conf){ 0 }, (struct tls_client_conf){ 0 });
	for (int i = 0; i < 100; i++)
		CHECK_EQ(0, tls_put(server.tls, "0123456789", 10));
	CHECK_EQ(0, tls_put_end(server.tls));
	n = tls_out(server.tls).n;
	CHECK(n > 1000 && n < 1000 + 64);
	close_both();
}

/* TLS-4 */
TEST(a_goodbye_is_reported_and_the_other_side_may_still_send)
{
	make_all();
	meet((struct tls_server_conf){ 0 }, (struct tls_client_conf){ 0 });
	say(&client, &server, "last", 4);
	tls_put_bye(client.tls);
	tls_put_bye(client.tls);
	carry(&client, &server, TLS_READ);
	CHECK_EQ(TLS_ENDED, server.state);
	CHECK_STR("last", buf_str(&server.got));
	CHECK_EQ(SLU_EDOWN, tls_put(client.tls, "x", 1));
	say(&server, &client, "answer", 6);
	CHECK_STR("answer", buf_str(&client.got));
	close_both();
}

/* --- trust ------------------------------------------------------------ */

static const struct tls_server_conf demanding = { .client_ca = "ca.pem",
						  .client_auth = TLS_AUTH_REQUIRED };
static const struct tls_client_conf shows_cert = { .cert = "client.pem", .key = "client.key" };

TEST(a_client_is_known_by_the_names_in_its_certificate)
{
	const struct tls_peer *p;

	make_all();
	meet(demanding, shows_cert);
	p = tls_peer(server.tls);
	CHECK(p != NULL);
	CHECK_STR("CN=client", p->subject);
	CHECK_EQ(2, p->n_uris);
	CHECK_STR("spiffe://acme/w", p->uris[0]);
	CHECK_STR(CLAIM, p->uris[1]);
	CHECK_EQ(1, p->n_dns);
	CHECK_STR("worker", p->dns[0]);
	CHECK(strlen(p->serial) > 16 && strlen(p->serial) <= 32); /* a random one may begin with 0 */
	CHECK_EQ(0, strlen(p->serial) % 2);
	close_both();
}

TEST(a_client_without_a_certificate_is_served_where_it_is_optional)
{
	make_all();
	meet((struct tls_server_conf){ .client_ca = "ca.pem", .client_auth = TLS_AUTH_OPTIONAL },
	     (struct tls_client_conf){ 0 });
	CHECK(!tls_peer(server.tls));
	close_both();
}

/* Which side refuses the other, and the error text. Fault 35 of the list of faults. */
TEST(what_is_not_trusted_is_refused_and_both_sides_learn_why)
{
	static const struct {
		const char *label;
		struct tls_server_conf sc;
		struct tls_client_conf cc;
		const char *host;
		enum tls_fault client_fault, server_fault;
	} rows[] = {
		{ "unknown CA", .cc = { .ca_file = "other.pem" }, .client_fault = TLS_FAULT_UNKNOWN_CA, .server_fault = TLS_FAULT_CERT_REFUSED },
		{ "expired", .sc = { .cert = "old.pem", .key = "old.key" }, .client_fault = TLS_FAULT_EXPIRED, .server_fault = TLS_FAULT_CERT_REFUSED },
		{ "another host", .host = "queue.example", .client_fault = TLS_FAULT_HOST, .server_fault = TLS_FAULT_CERT_REFUSED },
		{ "another address", .host = "127.0.0.2", .client_fault = TLS_FAULT_HOST, .server_fault = TLS_FAULT_CERT_REFUSED },
		{ "no client certificate", .sc = { .client_ca = "ca.pem", .client_auth = TLS_AUTH_REQUIRED }, .client_fault = TLS_FAULT_NO_CERT, .server_fault = TLS_FAULT_NO_CERT },
		{ "client of another CA", .sc = { .client_ca = "other.pem", .client_auth = TLS_AUTH_REQUIRED }, .cc = { .cert = "client.pem", .key = "client.key" }, .client_fault = TLS_FAULT_CERT_REFUSED, .server_fault = TLS_FAULT_UNKNOWN_CA },
		{ "the same where it is optional", .sc = { .client_ca = "other.pem", .client_auth = TLS_AUTH_OPTIONAL }, .cc = { .cert = "client.pem", .key = "client.key" }, .client_fault = TLS_FAULT_CERT_REFUSED, .server_fault = TLS_FAULT_UNKNOWN_CA },
		{ "expired client", .sc = { .client_ca = "ca.pem", .client_auth = TLS_AUTH_OPTIONAL }, .cc = { .cert = "old.pem", .key = "old.key" }, .client_fault = TLS_FAULT_CERT_REFUSED, .server_fault = TLS_FAULT_EXPIRED },
	};

	make_all();
	make("old", "ca", "DNS:localhost", -3);
	EACH(i, rows) {
		CHECK_EQ(0, open_both(rows[i].sc, rows[i].cc, rows[i].host), rows[i].label);
		shake_hands(TLS_READ);
		CHECK_EQ(TLS_FAILED, client.state, rows[i].label);
		CHECK_EQ(rows[i].client_fault, client.room->fault, rows[i].label);
		CHECK_EQ(TLS_FAILED, server.state, rows[i].label);
		CHECK_EQ(rows[i].server_fault, server.room->fault, rows[i].label);
		CHECK(server.room->why[0] && client.room->why[0]);
		close_both();
	}
}

/* Names that half would be other names: refused whole. */
/* TLSCONTEXT-5 */
static void
shake_as_peers(const char *ca, const char *of_server, const char *of_client)
{
	char files[4][32];
	struct tls_peers_conf conf = { files[0], files[1], ca }, other = { files[2], files[3], ca };

	(void)snprintf(files[0], sizeof files[0], "%s.pem", of_server);
	(void)snprintf(files[1], sizeof files[1], "%s.key", of_server);
	(void)snprintf(files[2], sizeof files[2], "%s.pem", of_client);
	(void)snprintf(files[3], sizeof files[3], "%s.key", of_client);
	CHECK_EQ(0, tls_context_peers(&server.context, &conf, &why), why.text);
	CHECK_EQ(0, tls_context_peers(&client.context, &other, &why), why.text);
	CHECK_EQ(0, open_side(&server, NULL));
	CHECK_EQ(0, open_side(&client, ""));
	shake_hands(TLS_READ);
}

TEST(peers_with_a_ca_check_each_other_and_peers_without_one_do_not)
{
	static const struct {
		const char *label, *ca, *server, *client;
		bool open;
	} cases[] = {
		{ "no CA: any certificate", NULL, "server", "stranger", true },
		{ "of the CA; no name is checked", "ca.pem", "server", "client", true },
		{ "a stranger calls", "ca.pem", "server", "stranger", false },
		{ "a stranger is called", "ca.pem", "stranger", "client", false },
	};

	make_all();
	make("stranger", "other", "DNS:localhost", 30);
	EACH(i, cases) {
		shake_as_peers(cases[i].ca, cases[i].server, cases[i].client);
		CHECK_EQ(cases[i].open, server.state == TLS_OPEN && client.state == TLS_OPEN, cases[i].label);
		close_both();
	}
}

TEST(a_binding_belongs_to_one_session)
{
	uint8_t bindings[2][2][TLS_BINDING];

	make_all();
	for (int i = 0; i < 2; i++) {
		shake_as_peers(NULL, "server", "client");
		CHECK(strcmp("TLSv1.3", tls_version(client.tls)) == 0);
		CHECK(tls_binding(server.tls, bindings[i][0]));
		CHECK(tls_binding(client.tls, bindings[i][1]));
		CHECK(memcmp(bindings[i][0], bindings[i][1], TLS_BINDING) == 0);
		close_both();
	}
	CHECK(memcmp(bindings[0][0], bindings[1][0], TLS_BINDING) != 0);
}

TEST(a_certificate_with_names_beyond_the_bounds_is_refused)
{
	static char many[TLS_URIS_MAX * 16 + 100], lengthy[TLS_NAME_MAX + 100];
	static const struct {
		const char *label, *names, *why;
	} rows[] = {
		{ "too many", many, "more than 64 URI names" },
		{ "too long", lengthy, "longer than 512" },
		{ "a space", "URI:lockd://ns/a b", "not printable" },
	};
	size_t n = 0;

	for (int i = 0; i <= TLS_URIS_MAX; i++)
		n += (size_t)snprintf(many + n, sizeof many - n, "%sURI:a:%d", i ? "," : "", i);
	memset(lengthy, 'x', TLS_NAME_MAX + 5);
	memcpy(lengthy, "URI:", 4);
	make_all();
	EACH(i, rows) {
		struct tls_client_conf cc = { .cert = "odd.pem", .key = "odd.key" };

		make("odd", "ca", rows[i].names, 30);
		CHECK_EQ(0, open_both(demanding, cc, NULL));
		shake_hands(TLS_READ);
		CHECK_EQ(TLS_FAILED, server.state, rows[i].label);
		CHECK_CONTAINS(rows[i].why, server.room->why);
		CHECK(!tls_peer(server.tls));
		close_both();
		CHECK_EQ(0, unlink("odd.pem") | unlink("odd.key"));
	}
}

TEST(bytes_that_are_no_tls_fail_the_session)
{
	static const char junk[] = "\x16\x03\x01\x00\x05hello, world, this is no handshake";
	struct slice plain;

	make_all();
	CHECK_EQ(0, open_both((struct tls_server_conf){ 0 }, (struct tls_client_conf){ 0 }, NULL));
	CHECK(tls_is_fresh(server.tls));
	CHECK_EQ(TLS_FAILED, tls_take(server.tls, SLICE(junk), &plain));
	CHECK(!tls_is_fresh(server.tls));
	CHECK_EQ(TLS_FAILED, tls_take(server.tls, SLICE(junk), &plain));
	close_both();
}

TEST(a_changed_byte_fails_the_session)
{
	char record[200];
	struct slice plain;

	make_all();
	meet((struct tls_server_conf){ 0 }, (struct tls_client_conf){ 0 });
	CHECK_EQ(0, tls_put(client.tls, "pay 10", 6));
	CHECK_EQ(0, tls_put_end(client.tls));
	CHECK(tls_out(client.tls).n < sizeof record);
	memcpy(record, tls_out(client.tls).p, tls_out(client.tls).n);
	record[8] ^= 1;
	CHECK_EQ(TLS_FAILED, tls_take(server.tls, (struct slice){ record, tls_out(client.tls).n }, &plain));
	CHECK_EQ(0, plain.n);
	close_both();
}

/* --- files --------------------------------------------------------------------- */

TEST(a_file_that_will_not_do_is_named_with_its_reason)
{
	static const struct {
		const char *label;
		struct tls_server_conf conf;
		const char *says;
	} rows[] = {
		{ "no certificate", { .key = "server.key" }, "needs a certificate" },
		{ "not there", { .cert = "nowhere.pem", .key = "server.key" }, "certificate nowhere.pem: No such file" },
		{ "no PEM", { .cert = "junk", .key = "server.key" }, "certificate junk: " },
		{ "key of another", { .cert = "server.pem", .key = "client.key" }, "key client.key is not the key of certificate server.pem" },
		{ "key is none", { .cert = "server.pem", .key = "server.pem" }, "key server.pem: " },
		{ "locked key", { .cert = "server.pem", .key = "locked.key" }, "locked with a password" },
		{ "no CA named", { .cert = "server.pem", .key = "server.key", .client_auth = TLS_AUTH_REQUIRED }, "need a CA file" },
		{ "CA is none", { .cert = "server.pem", .key = "server.key", .client_ca = "junk", .client_auth = TLS_AUTH_REQUIRED }, "CA file junk: " },
	};
	FILE *f = fopen("junk", "w");

	CHECK(f && fputs("junk\n", f) >= 0 && fclose(f) == 0);
	make_all();
	CHECK_EQ(0, system("openssl pkey -in server.key -aes256 -passout pass:x -out locked.key"));
	EACH(i, rows) {
		struct tls_context *x = NULL;

		CHECK_EQ(SLU_EINVAL, tls_context_server(&x, &rows[i].conf, &why), rows[i].label);
		CHECK_CONTAINS(rows[i].says, why.text);
		CHECK(!x);
	}
}

TEST(an_operator_is_warned_of_open_keys_and_old_certificates)
{
	struct tls_context *x;

	make_all();
	make("soon", "ca", NULL, 5);
	make("old", "ca", NULL, -1);
	CHECK_EQ(0, tls_context_server(&x, &(struct tls_server_conf){ .cert = "server.pem", .key = "server.key" }, &why));
	CHECK(!tls_context_warning(x));
	tls_context_unref(x);
	CHECK_EQ(0, chmod("soon.key", 0644));
	CHECK_EQ(0, tls_context_server(&x, &(struct tls_server_conf){ .cert = "soon.pem", .key = "soon.key" }, &why));
	CHECK_CONTAINS("everybody on this machine can read key soon.key", tls_context_warning(x));
	CHECK_CONTAINS("soon.pem expires in ", tls_context_warning(x));
	tls_context_unref(x);
	CHECK_EQ(0, tls_context_server(&x, &(struct tls_server_conf){ .cert = "old.pem", .key = "old.key" }, &why));
	CHECK_CONTAINS("old.pem has expired", tls_context_warning(x));
	tls_context_unref(x);
}

TEST(a_slot_gives_the_newest_and_older_sessions_keep_theirs)
{
	struct tls_context *first, *second, *got;
	struct tls_slot slot;

	make_all();
	tls_slot_init(&slot);
	CHECK(!tls_slot_get(&slot));
	meet((struct tls_server_conf){ 0 }, (struct tls_client_conf){ 0 });
	first = tls_context_ref(server.context);
	tls_slot_set(&slot, first);
	CHECK_EQ(0, tls_context_server(&second, &(struct tls_server_conf){ .cert = "server.pem", .key = "server.key" }, &why));
	tls_slot_set(&slot, second);
	got = tls_slot_get(&slot);
	CHECK(got == second);
	tls_context_unref(got);
	tls_context_unref(first);
	tls_context_unref(second);
	say(&client, &server, "still", 5);
	CHECK_STR("still", buf_str(&server.got));
	tls_slot_release(&slot);
	close_both();
}

/* --- memory -------------------------------------------------------------------- */

static void *
ssl_alloc(size_t n, const char *file, int line)
{
	(void)file;
	(void)line;
	return mem_alloc(n);
}

static void *
ssl_realloc(void *p, size_t n, const char *file, int line)
{
	(void)file;
	(void)line;
	return mem_realloc(p, n);
}

static void
ssl_free(void *p, const char *file, int line)
{
	(void)file;
	(void)line;
	mem_free(p);
}

/* OpenSSL's memory is ours, so that its allocations fail as well. Before anything else
 * of it runs. */
__attribute__((constructor)) static void
share_memory(void)
{
	(void)CRYPTO_set_mem_functions(ssl_alloc, ssl_realloc, ssl_free);
}

/* One connection from files to a word, with allocation n failing. */
static void
connect_failing(long n)
{
	mem_fail_at(n);
	if (open_both(demanding, shows_cert, NULL) == 0) {
		shake_hands(TLS_READ);
		if (server.state == TLS_OPEN && client.state == TLS_OPEN &&
		    tls_put(client.tls, "ping", 4) == 0 && tls_put_end(client.tls) == 0)
			carry(&client, &server, TLS_READ);
		if (!mem_failed())
			CHECK_STR("ping", buf_str(&server.got));
	}
	close_both();
}

/* There are some 10,000 of them, nearly all OpenSSL's: a step at a time, from another
 * one with another TEST_SEED; TEST_STEP=1 takes all. What OpenSSL sets up once for a
 * process must have been: it does not try again. */
TEST_LIMIT(a_connection_without_memory_fails_and_leaves_nothing, 600)
{
	const char *const said = getenv("TEST_STEP");
	const long step = said ? atol(said) : 53;
	uint64_t seed = test_seed();
	long n = 1 + (long)(test_random(&seed) % (uint64_t)step);
	bool failed;

	make_all();
	connect_failing(0);
	do {
		connect_failing(n);
		failed = mem_failed();
		n += step;
	} while (failed);
	mem_fail_at(0);
	printf("# up to allocation %ld failed\n", n);
}
