#include "beanstalk/line.h"

#include "base/id.h"

const struct bean_command_row bean_commands[BEAN_KINDS] = {
#define X(id, name, args, stat) [BEAN_##id] = { name, args, stat },
	BEAN_COMMANDS(X)
#undef X
};

#define EXACT (1ull << 53) /* doubles hold all integers below it */

bool
bean_line_is_http(struct slice line)
{
	static const char *const methods[] = { "GET ", "POST ", "PUT ", "HEAD ", "OPTIONS ", "DELETE ", "PATCH ",
					       "CONNECT ", "TRACE ", "PRI " };

	for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
		const struct slice method = slice_of(methods[i]);

		if (line.n >= method.n && memcmp(line.p, method.p, method.n) == 0)
			return true;
	}
	return false;
}

/* Takes the next word; words are separated by spaces. */
static struct slice
next_word(struct slice *rest)
{
	size_t n = 0;

	while (rest->n > 0 && *rest->p == ' ')
		slice_skip(rest, 1);
	while (n < rest->n && rest->p[n] != ' ')
		n++;
	const struct slice word = { rest->p, n };

	slice_skip(rest, n);
	return word;
}

static bool
read_number(struct slice word, uint64_t max, uint64_t *out)
{
	uint64_t v = 0;

	for (size_t i = 0; i < word.n; i++) {
		const unsigned digit = (unsigned char)word.p[i] - '0';

		if (digit > 9 || v > (max - digit) / 10)
			return false;
		v = v * 10 + digit;
	}
	*out = v;
	return word.n > 0;
}

static bool
read_args(const char *args, struct slice rest, struct bean_line *out)
{
	unsigned n = 0;

	for (; *args; args++) {
		const struct slice word = next_word(&rest);

		if (*args == 't')
			out->tube = word;
		else if (!read_number(word, *args == 'i' ? UINT64_MAX : UINT32_MAX, &out->numbers[n++]))
			return false;
		if (word.n == 0)
			return false;
	}
	return rest.n == 0;
}

enum bean_error
bean_line_parse(struct slice line, struct bean_line *out)
{
	struct slice rest = line;
	const struct slice name = next_word(&rest);

	if (bean_line_is_http(line))
		return BEAN_HTTP;
	if (line.n && memchr(line.p, '\0', line.n))
		return BEAN_BAD_FORMAT;
	if (name.p != line.p)
		return BEAN_UNKNOWN;
	*out = (struct bean_line){ 0 };
	for (unsigned i = 0; i < BEAN_KINDS; i++) {
		if (!slice_eq(name, slice_of(bean_commands[i].name)))
			continue;
		out->command = (enum bean_command)i;
		return read_args(bean_commands[i].args, rest, out) ? BEAN_OK : BEAN_BAD_FORMAT;
	}
	return BEAN_UNKNOWN;
}

uint64_t
bean_id_out(uint64_t id)
{
	const uint64_t seq = id & ((1u << ID_SEQ_BITS) - 1);
	const uint64_t number = id >> (ID_NODE_BITS + ID_SEQ_BITS) << ID_SEQ_BITS | seq;

	return id_node(id) == 0 && number < EXACT ? number : id;
}

uint64_t
bean_id_in(uint64_t number)
{
	const uint64_t seq = number & ((1u << ID_SEQ_BITS) - 1);

	if (number >= EXACT)
		return number <= ID_MAX ? number : 0;
	return number >> ID_SEQ_BITS << (ID_NODE_BITS + ID_SEQ_BITS) | seq;
}
