#include "test.h"

#include "net/files.h"
#include "net/listen.h"

#include <sluice/err.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void
open_ok(struct listener *l, const char *address, unsigned threads)
{
	struct slu_err err = { 0 };

	CHECK_EQ(0, listener_open(l, "http", address, threads, &err), err.text);
}

TEST(addresses_that_make_no_sense_are_refused)
{
	static const struct {
		const char *address, *says;
	} cases[] = {
		{ "", "expected host:port" },
		{ "7171", "expected host:port" },
		{ "::1:7171", "expected host:port" },
		{ "[::1", "expected host:port" },
		{ "127.0.0.1:", "expected a port" },
		{ "127.0.0.1:65536", "expected a port" },
		{ "127.0.0.1:-1", "expected a port" },
		{ "127.0.0.1:http", "expected a port" },
		{ "unix:", "expected a path" },
		{ "unix:/tmp/x?mode=999", "expected a mode" },
		{ "unix:/tmp/x?mode=", "expected a mode" },
	};

	EACH(i, cases) {
		struct slu_err err = { 0 };
		struct listener l;

		CHECK_EQ(SLU_EINVAL, listener_open(&l, "http", cases[i].address, 1, &err),
			 cases[i].address);
		CHECK_CONTAINS(cases[i].says, err.text);
		CHECK_EQ(SLU_EINVAL, listen_check(cases[i].address, &err), cases[i].address);
		CHECK_CONTAINS(cases[i].says, err.text);
	}
}

TEST(a_check_takes_no_address_and_knows_what_time_may_mend)
{
	struct slu_err err = { 0 };
	struct listener l;
	char address[64];

	open_ok(&l, "127.0.0.1:0", 2);
	(void)snprintf(address, sizeof address, "127.0.0.1:%u", l.port);
	CHECK_EQ(0, listen_check(address, &err)); /* in use, now */
	listener_close(&l);
	CHECK_EQ(0, listen_check(address, &err));
	open_ok(&l, address, 2);
	listener_close(&l);
	CHECK_EQ(0, listen_check("203.0.113.7:0", &err)); /* an interface may come up */
	CHECK_EQ(SLU_EDOWN, listener_open(&l, "http", "203.0.113.7:0", 1, &err));
	CHECK_CONTAINS("not an address of this machine", err.text);
	CHECK_EQ(SLU_EINVAL, listen_check("unix:none/socket", &err));
	CHECK_EQ(0, listen_check("unix:socket", &err));
	CHECK(access("socket", F_OK) != 0);
}

TEST(port_0_becomes_a_real_one_for_all_threads)
{
	struct listener l;

	open_ok(&l, "127.0.0.1:0", 3);
	CHECK(l.port > 0);
	for (unsigned i = 0; i < 3; i++) {
		const int fd = listener_take(&l, i);

		CHECK_EQ(0, listen(fd, 1));
		close(fd);
	}
	CHECK_CONTAINS("http://127.0.0.1:", l.name);
	listener_close(&l);
}

TEST(ipv6_is_an_address_too)
{
	struct slu_err err = { 0 };
	struct listener l;

	if (listener_open(&l, "http", "[::1]:0", 2, &err))
		test_skip(err.text); /* a machine without it */
	CHECK_CONTAINS("http://[::1]:", l.name);
	listener_close(&l);
}

/* LISTEN-1, with one and with several threads on either side. */
TEST(a_port_in_use_is_an_error_that_names_it)
{
	for (unsigned first = 1; first <= 2; first++)
		for (unsigned second = 1; second <= 2; second++) {
			struct listener a, b;
			struct slu_err err = { 0 };
			char address[64];

			open_ok(&a, "127.0.0.1:0", first);
			CHECK_EQ(0, listen(a.fds[0], 1));
			(void)snprintf(address, sizeof address, "127.0.0.1:%u", a.port);
			CHECK_EQ(SLU_EEXISTS, listener_open(&b, "http", address, second, &err));
			CHECK_CONTAINS(address, err.text);
			CHECK_CONTAINS("choose another", err.text);
			listener_close(&a);
			open_ok(&b, address, second);
			listener_close(&b);
		}
}

TEST(a_unix_socket_has_its_mode_and_goes_when_closed)
{
	struct listener l;
	struct stat st;

	open_ok(&l, "unix:sock", 2);
	CHECK_EQ(0, stat("sock", &st));
	CHECK_EQ(0660, st.st_mode & 0777);
	CHECK_STR("unix:sock", l.name);
	listener_close(&l);
	CHECK_EQ(-1, stat("sock", &st));

	open_ok(&l, "unix:sock?mode=0600", 1);
	CHECK_EQ(0, stat("sock", &st));
	CHECK_EQ(0600, st.st_mode & 0777);
	listener_close(&l);
}

/* LISTEN-2. */
TEST(only_a_unix_socket_without_a_listener_is_replaced)
{
	struct listener a, b;
	struct slu_err err = { 0 };

	open_ok(&a, "unix:sock", 1);
	CHECK_EQ(0, listen(a.fds[0], 1));
	CHECK_EQ(SLU_EEXISTS, listener_open(&b, "http", "unix:sock", 1, &err));
	CHECK_CONTAINS("in use", err.text);
	close(listener_take(&a, 0)); /* as if it had been killed */
	open_ok(&b, "unix:sock", 1);
	CHECK_EQ(0, listen(b.fds[0], 1));
	listener_close(&a); /* LISTEN-4: the file is b's now */
	CHECK_EQ(0, access("sock", F_OK));
	listener_close(&b);
	CHECK_EQ(-1, access("sock", F_OK));

	close(open("sock", O_CREAT | O_WRONLY, 0600));
	CHECK_EQ(SLU_EEXISTS, listener_open(&b, "http", "unix:sock", 1, &err));
	CHECK_CONTAINS("is not a socket", err.text);
	CHECK_EQ(0, access("sock", F_OK));
}

TEST(a_path_that_is_too_long_is_refused)
{
	char address[256] = "unix:/";
	struct slu_err err = { 0 };
	struct listener l;

	memset(address + 6, 'x', 120);
	CHECK_EQ(SLU_EINVAL, listener_open(&l, "http", address, 1, &err));
	CHECK_EQ(SLU_EDOWN, listener_open(&l, "http", "unix:/no/such/folder/s", 1, &err));
	CHECK_CONTAINS("/no/such/folder/s", err.text);
}

TORTURE(a_listener_opens_or_leaves_nothing)
{
	struct slu_err err = { 0 };
	struct listener l;
	const int rc = listener_open(&l, "http", "unix:sock", 2, &err);

	CHECK(rc == 0 || rc == SLU_ENOMEM);
	listener_close(&l);
	CHECK_EQ(-1, access("sock", F_OK));
}

static int
option_of(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int value = 0;

	CHECK_EQ(0, getsockopt(fd, level, name, &value, &len));
	return value;
}

/* LISTEN-5. */
TEST(connections_inherit_the_settings_of_their_listener)
{
	struct sockaddr_in sa = {
		.sin_family = AF_INET,
		.sin_addr = { htonl(INADDR_LOOPBACK) },
	};
	const int client = socket(AF_INET, SOCK_STREAM, 0);
	struct listener l;
	int fd;

	open_ok(&l, "127.0.0.1:0", 1);
	CHECK_EQ(0, listen(l.fds[0], 1));
	sa.sin_port = htons((uint16_t)l.port);
	CHECK_EQ(0, connect(client, (struct sockaddr *)&sa, sizeof sa));
	fd = accept(l.fds[0], NULL, NULL);
	CHECK(fd >= 0);
	CHECK(option_of(fd, IPPROTO_TCP, TCP_NODELAY));
	CHECK(option_of(fd, SOL_SOCKET, SO_KEEPALIVE));
	CHECK_EQ(60, option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE));
	close(fd);
	close(client);
	listener_close(&l);
}

TEST(the_limit_of_files_is_raised_as_far_as_allowed)
{
	const unsigned long now = files_allow(1);

	CHECK(now >= 1);
	CHECK(files_allow(now) >= now);
	CHECK(files_allow(1UL << 40) >= now);
}
