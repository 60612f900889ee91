#include "api/lockd/id.h"

#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	XID_LEN = LOCKD_XID_TEXT - 1,
	TOKEN_LEN = 8,
	FLAGS = LOCKD_TXN_GIVEN | LOCKD_CORRELATED
};

/* --- xids --------------------------------------------------------------------- */

/* 96 bits, five at a time; the last character has one of them. */
const char *
lockd_xid_text(const struct lockd_xid *x, char out[static LOCKD_XID_TEXT])
{
	for (unsigned i = 0; i < XID_LEN; i++) {
		unsigned digit = 0;

		for (unsigned bit = i * 5; bit < i * 5 + 5; bit++)
			digit = digit << 1 |
				(bit < LOCKD_XID * 8 ? x->b[bit / 8] >> (7 - bit % 8) & 1 : 0);
		out[i] = "0123456789abcdefghijklmnopqrstuv"[digit];
	}
	out[XID_LEN] = '\0';
	return out;
}

static int
digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'v' ? c - 'a' + 10 : -1;
}

bool
lockd_xid_parse(struct slice s, struct lockd_xid *out)
{
	struct lockd_xid x = { { 0 } };

	if (s.n != XID_LEN)
		return false;
	for (unsigned i = 0; i < XID_LEN; i++) {
		const int digit = digit_of(s.p[i]);

		if (digit < 0)
			return false;
		for (unsigned k = 0; k < 5; k++) {
			const unsigned bit = i * 5 + k;
			const unsigned value = (unsigned)digit >> (4 - k) & 1;

			if (bit >= LOCKD_XID * 8 && value)
				return false;
			if (bit < LOCKD_XID * 8)
				x.b[bit / 8] |= (unsigned char)(value << (7 - bit % 8));
		}
	}
	*out = x;
	return true;
}

bool
lockd_xid_is_zero(const struct lockd_xid *x)
{
	static const struct lockd_xid zero;

	return memcmp(x, &zero, sizeof zero) == 0;
}

/* --- leases ------------------------------------------------------------------- */

static void
put_token(struct lockd_xid *x, uint64_t token)
{
	for (unsigned i = 0; i < TOKEN_LEN; i++)
		x->b[i] = (unsigned char)(token >> (8 * (TOKEN_LEN - 1 - i)));
}

static void
put_check(struct lockd_xid *x, uint32_t check)
{
	for (unsigned i = 0; i < LOCKD_XID - TOKEN_LEN; i++)
		x->b[TOKEN_LEN + i] = (unsigned char)(check >> (24 - 8 * i));
}

static uint32_t
check_of(const struct lockd_xid *x)
{
	uint32_t check = 0;

	for (unsigned i = TOKEN_LEN; i < LOCKD_XID; i++)
		check = check << 8 | x->b[i];
	return check;
}

/* A lease and its transaction differ in their last bytes. */
struct lockd_xid
lockd_txn_of(uint64_t token)
{
	struct lockd_xid x;

	put_token(&x, token);
	put_check(&x, fnv1a32(x.b, TOKEN_LEN));
	return x;
}

static struct lockd_xid
lease_of(uint64_t token, const struct lockd_xid *txn, unsigned flags)
{
	const unsigned char low = (unsigned char)flags;
	struct lockd_xid x;
	uint32_t check;

	put_token(&x, token);
	check = fnv1a32_more(FNV1A32_START, "lease", 5);
	check = fnv1a32_more(check, x.b, TOKEN_LEN);
	check = fnv1a32_more(check, txn->b, LOCKD_XID);
	check = fnv1a32_more(check, &low, 1);
	put_check(&x, (check & ~(uint32_t)FLAGS) | flags);
	return x;
}

const char *
lockd_lease_text(uint64_t token, const struct lockd_xid *txn, unsigned flags,
		 char out[static LOCKD_XID_TEXT])
{
	const bool given = !lockd_xid_is_zero(txn);
	const struct lockd_xid own = given ? *txn : lockd_txn_of(token);
	const struct lockd_xid x = lease_of(token, &own,
					    (flags & LOCKD_CORRELATED) | (given ? LOCKD_TXN_GIVEN : 0));

	return lockd_xid_text(&x, out);
}

static uint64_t
token_of(const struct lockd_xid *x)
{
	uint64_t token = 0;

	for (unsigned i = 0; i < TOKEN_LEN; i++)
		token = token << 8 | x->b[i];
	return token;
}

uint64_t
lockd_lease_token(struct slice s)
{
	struct lockd_xid x;

	return lockd_xid_parse(s, &x) && token_of(&x) > 0 ? token_of(&x) : LOCKD_NO_TOKEN;
}

uint64_t
lockd_lease_parse(struct slice s, const struct lockd_xid *txn, unsigned *flags)
{
	const uint64_t token = lockd_lease_token(s);
	struct lockd_xid x, own, want;

	*flags = 0;
	if (token == LOCKD_NO_TOKEN || !lockd_xid_parse(s, &x))
		return LOCKD_NO_TOKEN;
	*flags = check_of(&x) & FLAGS;
	own = lockd_txn_of(token);
	if (lockd_xid_is_zero(txn) && *flags & LOCKD_TXN_GIVEN)
		return token; /* the transaction is not known here */
	want = lease_of(token, lockd_xid_is_zero(txn) ? &own : txn, *flags);
	return memcmp(&x, &want, sizeof x) == 0 ? token : LOCKD_NO_TOKEN;
}

bool
lockd_txn_is_ours(const struct lockd_xid *txn)
{
	const struct lockd_xid own = lockd_txn_of(token_of(txn));

	return memcmp(&own, txn, sizeof own) == 0;
}

/* --- etags -------------------------------------------------------------------- */

const char *
lockd_meta_text(const struct lockd_meta *m, char out[static LOCKD_ETAG_TEXT])
{
	(void)snprintf(out, LOCKD_ETAG_TEXT, "%" PRIx64 "-%" PRIx64 "-%" PRIx64, /* fits */
		       m->token, (uint64_t)(m->until / SLU_US), (uint64_t)m->seconds & 0xffffff);
	return out;
}

/* Takes hex digits from the front of *s, and the mark behind them, if mark is not 0. */
static bool
take_hex(struct slice *s, char mark, uint64_t *out)
{
	uint64_t n = 0;
	size_t i = 0;

	for (; i < s->n && i < 16 && s->p[i] != mark; i++) {
		const int digit = digit_of(s->p[i]);

		if (digit < 0 || digit > 15)
			return false;
		n = n << 4 | (uint64_t)digit;
	}
	if (i == 0 || (mark ? i == s->n || s->p[i] != mark : i < s->n))
		return false;
	slice_skip(s, i + (mark != 0));
	*out = n;
	return true;
}

bool
lockd_meta_parse(struct slice s, struct lockd_meta *out)
{
	uint64_t token, until, seconds;

	if (!take_hex(&s, '-', &token) || !take_hex(&s, '-', &until) ||
	    !take_hex(&s, '\0', &seconds) || until > INT64_MAX / SLU_US || seconds > 0xffffff)
		return false;
	*out = (struct lockd_meta){ token, (slu_time)until * SLU_US, (int64_t)seconds };
	return true;
}

const char *
lockd_etag_text(uint64_t etag, char out[static LOCKD_ETAG_TEXT])
{
	(void)snprintf(out, LOCKD_ETAG_TEXT, "%016" PRIx64, etag); /* fits */
	return out;
}

static bool
is_around(char c)
{
	return c == ' ' || c == '\t' || c == '"';
}

uint64_t
lockd_etag_parse(struct slice s)
{
	uint64_t etag;

	while (s.n > 0 && is_around(s.p[0]))
		s = (struct slice){ s.p + 1, s.n - 1 };
	while (s.n > 0 && is_around(s.p[s.n - 1]))
		s.n--;
	return s.n == 16 && take_hex(&s, '\0', &etag) ? etag : 0;
}

const char *
lockd_uuid_text(slu_time wall, uint64_t a, uint64_t b, char out[static LOCKD_UUID_TEXT])
{
	const uint64_t ms = (uint64_t)(wall / SLU_MS);

	(void)snprintf(out, LOCKD_UUID_TEXT, /* fits */
		       "%08" PRIx64 "-%04" PRIx64 "-7%03" PRIx64 "-%04" PRIx64 "-%012" PRIx64,
		       ms >> 16 & 0xffffffff, ms & 0xffff, a & 0xfff, 0x8000 | (a >> 12 & 0x3fff),
		       b & 0xffffffffffff);
	return out;
}
