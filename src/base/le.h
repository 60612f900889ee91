/*
 * le.h - little-endian integers in files: the same bytes on every machine.
 */
#ifndef BASE_LE_H
#define BASE_LE_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline void
le16_put(char *p, uint16_t v)
{
	v = htole16(v);
	memcpy(p, &v, sizeof v);
}

static inline void
le32_put(char *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof v);
}

static inline void
le64_put(char *p, uint64_t v)
{
	v = htole64(v);
	memcpy(p, &v, sizeof v);
}

static inline uint16_t
le16_get(const char *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof v);
	return le16toh(v);
}

static inline uint32_t
le32_get(const char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof v);
	return le32toh(v);
}

static inline uint64_t
le64_get(const char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof v);
	return le64toh(v);
}

#endif
