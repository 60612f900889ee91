/*
 * api.h - what every public header needs: version, linkage, visibility, time.
 *
 * Everything exported is named slu_ or SLU_. The headers compile as C11 and as
 * C++11 and include nothing beyond the C standard library.
 */
#ifndef SLUICE_API_H
#define SLUICE_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The version of these headers. Programs can compare SLU_VERSION in #if. */
#define SLU_VERSION_MAJOR 0
#define SLU_VERSION_MINOR 2
#define SLU_VERSION_PATCH 0
#define SLU_VERSION_TEXT  "0.2.0"
#define SLU_VERSION       (SLU_VERSION_MAJOR * 10000 + SLU_VERSION_MINOR * 100 + SLU_VERSION_PATCH)

#ifdef __cplusplus
#define SLU_BEGIN_DECLS extern "C" {
#define SLU_END_DECLS   }
#else
#define SLU_BEGIN_DECLS
#define SLU_END_DECLS
#endif

#if defined(__GNUC__)
#define SLU_API             __attribute__((visibility("default")))
#define SLU_PRINTF(fmt, va) __attribute__((format(printf, fmt, va)))
#define SLU_NORETURN        __attribute__((noreturn))
#else
#define SLU_API
#define SLU_PRINTF(fmt, va)
#define SLU_NORETURN
#endif

/* Nanoseconds: a length of time, or a moment on a clock. Signed, so that
 * differences need no care; 292 years is enough of both. */
typedef int64_t slu_time;

#define SLU_US    ((slu_time)1000)
#define SLU_MS    (1000 * SLU_US)
#define SLU_SEC   (1000 * SLU_MS)
#define SLU_MIN   (60 * SLU_SEC)
#define SLU_HOUR  (60 * SLU_MIN)
#define SLU_NEVER INT64_MAX /* no deadline; wait for as long as it takes */

SLU_BEGIN_DECLS

/* The version of the library that runs, as SLU_VERSION_TEXT has it: a program that was built
 * with older headers sees a newer one here. */
SLU_API const char *slu_version(void);

/* Free what a function of the library says is yours to free. NULL is fine. */
SLU_API void slu_free(void *p);

SLU_END_DECLS

#endif
