/*
 * stores.c - the stores of the server: one row each.
 */
#include "store/azure/azure.h"
#include "store/file/file.h"
#include "store/postgres/postgres.h"
#include "store/s3/s3.h"

const struct store_ops *const store_rows[] = {
	&store_file,
	&store_postgres,
	&store_s3,
	&store_azure,
	NULL,
};
