/*
 * client_large.c - 32 MiB, sent as they are made and received as they are read: neither
 * side ever has them in memory. Then the same into a file, and to a descriptor.
 */
#include <sluice/client.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	LARGE = 32 << 20
};

static int64_t
make(void *arg, void *p, size_t size)
{
	int64_t *left = arg;
	const int64_t n = *left < (int64_t)size ? *left : (int64_t)size;

	memset(p, 'x', (size_t)n);
	*left -= n;
	return n; /* 0: that was all */
}

static int
send_one(struct slu_client *c, struct slu_err *err)
{
	int64_t left = LARGE;
	const struct slu_send what = { SLU_OPTIONS_INIT(struct slu_send), .source = make, .source_arg = &left };

	return slu_client_send(c, "example-large", &what, NULL, NULL, err);
}

static int
count(struct slu_delivery *d, struct slu_err *err)
{
	static char room[1 << 16];
	size_t sum = 0, n = 1;
	int rc = 0;

	while (!rc && n > 0) {
		rc = slu_delivery_read(d, room, sizeof room, &n, err);
		sum += n;
	}
	printf("%zu bytes\n", sum);
	return rc ? rc : sum == LARGE ? 0
				      : slu_fail(err, SLU_EFAILED, "not all");
}

static int
save(struct slu_delivery *d, struct slu_err *err)
{
	(void)remove("example-large.out");
	return slu_delivery_save(d, "example-large.out", err);
}

static int
pass_on(struct slu_delivery *d, struct slu_err *err)
{
	const int fd = open("/dev/null", O_WRONLY); /* or a pipe, a socket ... */
	const int rc = slu_delivery_write(d, fd, err);

	close(fd);
	return rc;
}

int
main(void)
{
	static int (*const ways[])(struct slu_delivery *, struct slu_err *) = { count, save, pass_on };
	const struct slu_client_config config = { SLU_OPTIONS_INIT(struct slu_client_config), .servers = getenv("SLUICE_SERVER") };
	struct slu_delivery *d;
	struct slu_client *c;
	struct slu_err err;
	int rc = slu_client_new(&c, &config, &err);

	for (int i = 0; i < 3 && !rc; i++) {
		rc = send_one(c, &err);
		if (rc)
			break;
		rc = slu_client_receive(c, "example-large", &(struct slu_receive){ SLU_OPTIONS_INIT(struct slu_receive), .wait = SLU_NEVER }, &d, NULL, &err);
		if (!rc)
			rc = ways[i](d, &err);
		if (!rc)
			rc = slu_delivery_ack(d, NULL, &err);
		slu_delivery_close(d);
	}
	slu_client_free(c);
	if (rc)
		fprintf(stderr, "%s\n", err.text);
	return rc ? 1 : 0;
}
