/*
 * large.c - a message larger than you want to have in memory: from a stream, in pieces.
 *
 *      large            8 MiB of numbers, in memory
 *      large FOLDER     on disk: the payload has a file of its own
 */
#include <sluice/sluice.h>

#include <stdio.h>
#include <string.h>

enum {
	BLOCK = 1024,
	BLOCKS = 8 * 1024
};

/* Stands for a socket or a file: a block at a time, then the end. */
static int64_t
next_block(void *arg, void *p, size_t size)
{
	int *left = arg;

	if (*left == 0 || size < BLOCK)
		return 0;
	memset(p, 'a' + --*left % 26, BLOCK);
	return BLOCK;
}

static int
consume(struct slu_broker *b, struct slu_err *err)
{
	const struct slu_claim_options in_pieces = { SLU_OPTIONS_INIT(struct slu_claim_options), .in_pieces = true };
	char block[BLOCK];
	struct slu_message m;
	size_t n;
	int rc;

	rc = slu_claim(b, "films", &in_pieces, &m, 1, &n, err);
	if (rc || n == 0)
		return rc;
	for (uint64_t at = 0; at < m.size && !rc; at += BLOCK)
		rc = slu_read(b, &m, at, block, BLOCK, err);
	printf("%zu bytes, the last is %c\n", m.size, block[BLOCK - 1]);
	if (!rc)
		rc = slu_ack(b, &m, NULL, 0, err);
	slu_message_release(&m);
	return rc;
}

int
main(int argc, char **argv)
{
	struct slu_broker *b = NULL;
	struct slu_err err = { 0 };
	int left = BLOCKS, rc;
	struct slu_put film = { SLU_OPTIONS_INIT(struct slu_put), .read = next_block, .read_arg = &left };

	rc = slu_open(&b, argc > 1 ? argv[1] : NULL, NULL, &err);
	if (!rc)
		rc = slu_enqueue(b, "films", &film, 1, &err);
	if (!rc)
		rc = consume(b, &err);
	if (rc)
		fprintf(stderr, "%s\n", err.text);
	slu_close(b);
	return rc != 0;
}
