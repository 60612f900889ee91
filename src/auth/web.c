#include "auth/web.h"

#include "base/parse.h"

#include <arpa/inet.h>
#include <strings.h>

enum {
	NUMBER_MAX = 64 /* longer is no address in numbers */
};

static bool
same(struct slice a, struct slice b)
{
	return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0;
}

/* Without its port: "h:1", "[::1]:1". */
static struct slice
host_of(struct slice s)
{
	const char *end = s.n ? memchr(s.p, ':', s.n) : NULL;

	if (s.n > 0 && s.p[0] == '[') {
		end = memchr(s.p, ']', s.n);
		end = end ? end + 1 : NULL;
	}
	return (struct slice){ s.p, end ? (size_t)(end - s.p) : s.n };
}

/* A host in numbers. */
struct number {
	bool is_one, loopback;
};

static struct number
number_of(struct slice host)
{
	const bool bracketed = host.n > 2 && host.p[0] == '[';
	struct in6_addr v6;
	struct in_addr v4;
	char text[NUMBER_MAX];

	if (bracketed)
		host = (struct slice){ host.p + 1, host.n - 2 };
	if (host.n >= sizeof text)
		return (struct number){ false, false };
	memcpy(text, host.p ? host.p : "", host.n);
	text[host.n] = '\0';
	if (bracketed)
		return inet_pton(AF_INET6, text, &v6) == 1
			       ? (struct number){ true, IN6_IS_ADDR_LOOPBACK(&v6) }
			       : (struct number){ false, false };
	return inet_pton(AF_INET, text, &v4) == 1
		       ? (struct number){ true, ntohl(v4.s_addr) >> 24 == 127 }
		       : (struct number){ false, false };
}

static bool
is_loopback(struct slice host)
{
	return same(host, SLICE("localhost")) || number_of(host).loopback;
}

static bool
may_call(const struct web_request *q, char *const *hosts, unsigned n_hosts)
{
	const struct slice host = host_of(q->host);

	if (q->is_unix || !q->host.p || is_loopback(host))
		return true; /* without a Host it is no browser */
	for (unsigned i = 0; i < n_hosts; i++)
		if (same(host, slice_of(hosts[i])) || strcmp(hosts[i], "*") == 0)
			return true;
	return !q->local && number_of(host).is_one;
}

static bool
is_own_origin(struct slice origin, struct slice host)
{
	const char *const mark = memmem(origin.p, origin.n, "://", 3);
	const size_t skip = mark ? (size_t)(mark - origin.p) + 3 : 0;

	return mark && same((struct slice){ origin.p + skip, origin.n - skip }, host);
}

int
web_check(const struct web_request *q, char *const *hosts, unsigned n_hosts,
	  struct slu_err *err)
{
	char shown[SHOWN_TEXT];

	if (q->fetch_site.p && !slice_eq(q->fetch_site, SLICE("same-origin")) &&
	    !slice_eq(q->fetch_site, SLICE("none")))
		return slu_fail(err, SLU_EFORBIDDEN,
				"a web page of another site may not call this server "
				"(Sec-Fetch-Site %s)",
				parse_shown(q->fetch_site, shown));
	if (q->origin.p && !is_own_origin(q->origin, q->host))
		return slu_fail(err, SLU_EFORBIDDEN,
				"a web page of another site may not call this server (Origin %s)",
				parse_shown(q->origin, shown));
	if (!may_call(q, hosts, n_hosts))
		return slu_fail(err, SLU_EFORBIDDEN,
				"Host %s is not a name of this server: add it to auth.hosts, or "
				"configure tokens",
				parse_shown(host_of(q->host), shown));
	return 0;
}
