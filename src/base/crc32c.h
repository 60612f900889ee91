/*
 * crc32c.h - the checksum of everything on disk.
 *
 * CRC-32C (Castagnoli), as in iSCSI, ext4 and SSE 4.2. The first seed is 0, and the
 * result of one call is the seed of the next, so that parts add up to the whole:
 *
 *         crc32c(crc32c(0, a, n), b, m) == crc32c(0, ab, n + m)
 *
 * A segment of the log starts with its own random number instead, so that it does not
 * accept a record of another segment.
 *
 * Uses the processor's instruction if it has one. Any thread.
 */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(uint32_t seed, const void *data, size_t n);

/* The same by tables, on any machine; for crc32c and tests. */
uint32_t crc32c_portable(uint32_t seed, const void *data, size_t n);

#endif
