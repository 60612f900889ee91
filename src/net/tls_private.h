/*
 * tls_private.h - what the files of TLS share.
 */
#ifndef NET_TLS_PRIVATE_H
#define NET_TLS_PRIVATE_H

#include "net/tls_context.h"

#include <openssl/ssl.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
	TLS_WARNING = 512
};

struct tls_context {
	SSL_CTX *ssl;
	BIO_METHOD *method;
	_Atomic unsigned refs;
	bool peers; /* TLSCONTEXT-5 */
	char warning[TLS_WARNING];
};

BIO_METHOD *tls_bio_method(void); /* NULL: no memory */

#endif
