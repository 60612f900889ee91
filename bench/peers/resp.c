#include "peers/resp.h"

#include "peers/peer.h"

#include <stdio.h>

void
resp_command(struct buf *out, unsigned words)
{
	buf_putc(out, '*');
	peer_put_number(out, words);
	buf_put(out, "\r\n", 2);
}

void
resp_word(struct buf *out, struct slice word)
{
	buf_putc(out, '$');
	peer_put_number(out, word.n);
	buf_put(out, "\r\n", 2);
	buf_put(out, word.p, word.n);
	buf_put(out, "\r\n", 2);
}

void
resp_text(struct buf *out, const char *word)
{
	resp_word(out, slice_of(word));
}

void
resp_number(struct buf *out, uint64_t n)
{
	char digits[24];
	const int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);

	resp_word(out, (struct slice){ digits, (size_t)len });
}

bool
resp_next(struct slice *in, struct resp *r)
{
	struct slice rest = *in, line;

	if (!peer_line(&rest, &line) || line.n < 2)
		return false;
	r->kind = line.p[0];
	r->text = (struct slice){ line.p + 1, line.n - 1 };
	r->n = line.p[1] == '-' ? -1 : (int64_t)peer_number(r->text);
	if (r->kind == '$' && r->n >= 0) {
		if (rest.n < (size_t)r->n + 2)
			return false;
		r->text = (struct slice){ rest.p, (size_t)r->n };
		slice_skip(&rest, (size_t)r->n + 2);
	}
	*in = rest;
	return true;
}

size_t
resp_whole(struct slice in)
{
	struct slice rest = in;
	struct resp r;

	for (int64_t parts = 1; parts > 0; parts--) {
		if (!resp_next(&rest, &r))
			return 0;
		if (r.kind == '*' && r.n > 0)
			parts += r.n;
	}
	return in.n - rest.n;
}
