/*
 * A program outside of the tree that speaks to a server, were there one. Compiles as C and
 * as C++; test_install.py builds it with pkg-config alone.
 */
#include <sluice/client.h>
#include <sluice/panic.h>

#include <stdio.h>
#include <string.h>

static int
give_up(void *arg)
{
	slu_panic("%s", (const char *)arg);
}

int
main(void)
{
	struct slu_client_config config;
	struct slu_client_put put;
	struct slu_client *c;
	struct slu_err err;

	memset(&config, 0, sizeof config);
	memset(&put, 0, sizeof put);
	config.struct_size = sizeof config;
	put.struct_size = sizeof put;
	config.servers = "unix:/nowhere/at/all";
	config.patience = -1;
	if (slu_client_new(&c, &config, &err))
		return 1;
	if (slu_client_enqueue(c, "mail", &put, 1, NULL, &err) != SLU_EDOWN)
		return 1;
	slu_client_free(c);
	if (slu_guard(give_up, (void *)"enough", &err) != SLU_EPANIC)
		return 1;
	puts("works");
	return 0;
}
