/*
 * tls_inner.h - what the files of TLS share, and who else needs OpenSSL's names.
 */
#ifndef NET_TLS_INNER_H
#define NET_TLS_INNER_H

#include "net/tls_context.h"

#include <openssl/ssl.h>
#include <stdatomic.h>

enum {
	TLS_WARNING = 512
};

struct tls_context {
	SSL_CTX *ssl;
	BIO_METHOD *method;
	_Atomic unsigned refs;
	char warning[TLS_WARNING];
};

BIO_METHOD *tls_bio_method(void); /* NULL: no memory */

#endif
