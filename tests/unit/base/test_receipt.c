#include "test.h"

#include "base/base64.h"
#include "base/crc32c.h"
#include "base/id.h"
#include "base/le.h"
#include "base/receipt.h"

/* namespace a, queue b, id 4194305, token 12. */
#define GOLDEN "AQEBAEAAAAAAAAwAAAAAAAAAYWLejTgT"

static const char *
text_of(const struct receipt *r, struct buf *b)
{
	buf_clear(b);
	receipt_write(r, b);
	return buf_str(b);
}

TEST(a_receipt_has_these_bytes)
{
	const struct receipt r = { SLICE("a"), SLICE("b"), 4194305, 12 };
	struct buf b;

	buf_init(&b, 1024);
	CHECK_STR(GOLDEN, text_of(&r, &b));
	buf_release(&b);
}

TEST(a_receipt_comes_back_as_it_was)
{
	char name[RECEIPT_NAME];
	struct buf b;

	memset(name, 'x', sizeof name);
	buf_init(&b, 1024);
	for (size_t n = 1; n <= RECEIPT_NAME; n++) {
		const struct receipt r = { { name, n }, { name, RECEIPT_NAME + 1 - n }, ID_MAX, UINT64_MAX };
		char room[RECEIPT_TEXT];
		struct receipt got;

		(void)text_of(&r, &b);
		CHECK(b.n <= RECEIPT_TEXT);
		CHECK_EQ(0, receipt_parse(buf_slice(&b), room, &got, NULL));
		CHECK(slice_eq(r.space, got.space) && slice_eq(r.queue, got.queue));
		CHECK_EQ(ID_MAX, got.id);
		CHECK_EQ(UINT64_MAX, got.token);
	}
	buf_release(&b);
}

TEST(the_longest_receipt_is_below_512_characters)
{
	char name[RECEIPT_NAME];
	const struct receipt r = { { name, sizeof name }, { name, sizeof name }, ID_MAX, UINT64_MAX };
	struct buf b;

	memset(name, 'z', sizeof name);
	buf_init(&b, 1024);
	(void)text_of(&r, &b);
	CHECK_EQ(371, b.n);
	buf_release(&b);
}

TEST(no_receipt_looks_like_an_id)
{
	char name[RECEIPT_NAME];
	struct buf b;

	memset(name, '0', sizeof name);
	buf_init(&b, 1024);
	for (size_t n = 1; n <= RECEIPT_NAME; n++) {
		const struct receipt r = { { name, n }, { name, n }, n, n };
		uint64_t id;

		CHECK_EQ(SLU_EINVAL, id_parse(slice_of(text_of(&r, &b)), &id, NULL));
		CHECK(b.p[0] == 'A' && b.p[1] >= 'Q' && b.p[1] <= 'Y');
	}
	buf_release(&b);
}

TEST(every_change_of_a_character_is_found)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=. ";
	char text[] = GOLDEN, room[RECEIPT_TEXT];
	struct receipt got;

	for (size_t i = 0; i < sizeof text - 1; i++) {
		const char was = text[i];

		for (const char *c = letters; *c; c++) {
			text[i] = *c;
			if (*c != was)
				CHECK_EQ(SLU_EINVAL, receipt_parse(slice_of(text), room, &got, NULL), text);
		}
		text[i] = was;
	}
	for (size_t n = 0; n < sizeof text - 1; n++)
		CHECK_EQ(SLU_EINVAL, receipt_parse((struct slice){ text, n }, room, &got, NULL));
}

/* Bytes whose checksum is right and which are no receipt all the same. */
TEST(a_right_checksum_is_not_enough)
{
	static const struct {
		const char *label;
		unsigned at;
		uint8_t byte;
	} cases[] = {
		{ "another version", 0, 2 },
		{ "no namespace", 1, 0 },
		{ "a namespace beyond the end", 1, 2 },
		{ "a namespace far beyond the end", 1, 255 },
		{ "an id of 64 bits", 9, 0x80 },
		{ "no id", 2, 0 },
		{ "no token", 10, 0 },
	};
	const struct receipt r = { SLICE("a"), SLICE("b"), 1, 12 };

	EACH(i, cases) {
		char bytes[RECEIPT_BYTES], room[RECEIPT_TEXT], text[RECEIPT_TEXT];
		const size_t n = receipt_encode(&r, bytes);
		struct slu_err err = { 0 };
		struct receipt got;

		bytes[cases[i].at] = (char)cases[i].byte;
		le32_put(bytes + n - 4, crc32c(0, bytes, n - 4));
		base64url_encode((struct slice){ bytes, n }, text);
		CHECK_EQ(SLU_EINVAL, receipt_parse((struct slice){ text, base64url_text(n) }, room, &got, &err), cases[i].label);
		CHECK_CONTAINS("invalid receipt: \"", err.text);
	}
}

TEST(a_refusal_shows_the_receipt_and_says_what_was_expected)
{
	char room[RECEIPT_TEXT], longer[RECEIPT_TEXT + 1];
	struct receipt got;
	struct slu_err err;

	CHECK_EQ(SLU_EINVAL, receipt_parse(SLICE("l-17"), room, &got, &err));
	CHECK_STR("invalid receipt: \"l-17\"; expected the whole receipt of a delivered message", err.text);
	memset(longer, 'A', sizeof longer);
	CHECK_EQ(SLU_EINVAL, receipt_parse((struct slice){ longer, sizeof longer }, room, &got, NULL));
	CHECK_EQ(SLU_EINVAL, receipt_parse((struct slice){ 0 }, room, &got, NULL));
}
