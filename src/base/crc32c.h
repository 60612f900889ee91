/*
 * crc32c.h - the checksum of everything on disk.
 *
 * CRC-32C (Castagnoli), as in iSCSI, ext4 and SSE 4.2. Start with 0; what one call
 * returns is the seed of the next, so a sum over parts is the sum of the whole:
 *
 *         crc32c(crc32c(0, a, n), b, m) == crc32c(0, ab, n + m)
 *
 * Any other seed gives a sum of its own: a segment seeds with its random number, so
 * that no record of another segment passes for one of its own.
 *
 * Uses the processor's instruction where there is one. Safe from any thread.
 */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(uint32_t seed, const void *data, size_t n);

/* The same by tables, on any machine; for tests and for crc32c itself. */
uint32_t crc32c_portable(uint32_t seed, const void *data, size_t n);

#endif
