/*
 * redis_server.h - a Redis server of a test's own.
 *
 * It listens on a unix socket in the folder of the test, keeps nothing on disk and ends
 * with the process that started it.
 */
#ifndef TESTS_REDIS_SERVER_H
#define TESTS_REDIS_SERVER_H

/* Start it, unless it runs; returns when it answers. Skips the test where there is none. */
void redis_server_start(const char *path);

#endif
