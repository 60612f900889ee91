#include "auth/web.h"

#include "base/parse.h"

#include <arpa/inet.h>
#include <strings.h>

enum {
	NUMBER_MAX = 64 /* a longer text is not an IP address */
};

static bool
same(struct slice a, struct slice b)
{
	return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0;
}

static bool
is_port(struct slice s)
{
	for (size_t i = 1; i < s.n; i++)
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
	return s.n == 0 || s.p[0] == ':';
}

/* Without its port: "h:1", "[::1]:1". Text with anything else behind the host is returned
 * whole: "[::1].evil.com" is not "[::1]". */
static struct slice
host_of(struct slice s)
{
	const bool bracketed = s.n > 0 && s.p[0] == '[';
	const char *const end = s.n ? memchr(s.p, bracketed ? ']' : ':', s.n) : NULL;
	const size_t n = end ? (size_t)(end - s.p) + bracketed : s.n;

	return end && is_port((struct slice){ s.p + n, s.n - n }) ? (struct slice){ s.p, n } : s;
}

/* A host in numbers. */
struct host_number {
	bool is_one, loopback;
};

static struct host_number
number_of(struct slice host)
{
	const bool bracketed = host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']';
	struct in6_addr v6;
	struct in_addr v4;
	char text[NUMBER_MAX];

	if (bracketed)
		host = (struct slice){ host.p + 1, host.n - 2 };
	if (host.n >= sizeof text)
		return (struct host_number){ false, false };
	memcpy(text, host.p ? host.p : "", host.n);
	text[host.n] = '\0';
	if (bracketed)
		return inet_pton(AF_INET6, text, &v6) == 1
			       ? (struct host_number){ true, IN6_IS_ADDR_LOOPBACK(&v6) }
			       : (struct host_number){ false, false };
	return inet_pton(AF_INET, text, &v4) == 1
		       ? (struct host_number){ true, ntohl(v4.s_addr) >> 24 == 127 }
		       : (struct host_number){ false, false };
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
		return true; /* a browser always sends Host */
	for (unsigned i = 0; i < n_hosts; i++)
		if (same(host, slice_of(hosts[i])) || strcmp(hosts[i], "*") == 0)
			return true;
	if (!q->local && number_of(host).is_one)
		return true;
	return q->is_named && q->is_named(q->named_arg, host);
}

bool
web_is_own_host(const struct web_request *q, char *const *hosts, unsigned n_hosts)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]";

	for (size_t i = 0; i < q->host.n; i++)
		if (!memchr(letters, q->host.p[i], sizeof letters - 1))
			return false;
	return q->host.n > 0 && !q->is_unix && may_call(q, hosts, n_hosts);
}

static int
refuse_host(const struct web_request *q, struct slu_err *err)
{
	char shown[SHOWN_TEXT];

	return slu_fail(err, SLU_EFORBIDDEN,
			"Host %s is not a name of this server: add it to auth.hosts%s",
			parse_shown(host_of(q->host), shown),
			q->no_tokens ? " (--auth-hosts NAME); without tokens only known names may "
				       "call, because web pages can make browsers send any other"
				     : ", or use a token");
}

/* Is SCHEME://HOST[/PATH] at this host? */
static bool
is_own(struct slice url, struct slice host)
{
	const char *const mark = memmem(url.p, url.n, "://", 3);
	const size_t skip = mark ? (size_t)(mark - url.p) + 3 : 0;
	const char *const slash = mark ? memchr(url.p + skip, '/', url.n - skip) : NULL;
	const size_t end = slash ? (size_t)(slash - url.p) : url.n;

	return mark && same((struct slice){ url.p + skip, end - skip }, host);
}

static int
refuse_page(const char *field, struct slice value, struct slu_err *err)
{
	char shown[SHOWN_TEXT];

	return slu_fail(err, SLU_EFORBIDDEN, "a web page of another site may not call this server (%s %s)",
			field, parse_shown(value, shown));
}

/* WEB-4 */
static int
check_get(const struct web_request *q, struct slu_err *err)
{
	static const char browser[] = "Mozilla/";
	const size_t n = sizeof browser - 1;

	if (q->fetch_site.p || q->origin.p)
		return 0;
	if (q->referer.p)
		return is_own(q->referer, q->host) ? 0 : refuse_page("Referer", q->referer, err);
	if (q->agent.n >= n && strncasecmp(q->agent.p, browser, n) == 0)
		return slu_fail(err, SLU_EFORBIDDEN, "a browser that does not tell which page it shows may not "
						     "change anything by GET; use POST");
	return 0;
}

/* WEB-5 */
static int
check_change(const struct web_request *q, struct slu_err *err)
{
	const bool by_page = q->origin.p || (q->fetch_site.p && !slice_eq(q->fetch_site, SLICE("none")));

	if (!q->changes || !by_page || q->console.p)
		return 0;
	return slu_fail(err, SLU_EFORBIDDEN, "a web page that changes something must send the field Sluice-Console");
}

int
web_check(const struct web_request *q, char *const *hosts, unsigned n_hosts,
	  struct slu_err *err)
{
	if (q->fetch_site.p && !slice_eq(q->fetch_site, SLICE("same-origin")) &&
	    !slice_eq(q->fetch_site, SLICE("none")))
		return refuse_page("Sec-Fetch-Site", q->fetch_site, err);
	if (q->origin.p && !is_own(q->origin, q->host))
		return refuse_page("Origin", q->origin, err);
	if (!may_call(q, hosts, n_hosts))
		return refuse_host(q, err);
	if (check_change(q, err))
		return SLU_EFORBIDDEN;
	return q->get_changes ? check_get(q, err) : 0;
}
