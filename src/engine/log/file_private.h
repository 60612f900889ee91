/*
 * file_private.h - what the files of the table of payload files share.
 *
 *      file.c          the table: names, pins, open and close
 *      file_remove.c   how files go
 *
 * All but logengine_file_number: under mtx, or while no other thread uses the files.
 */
#ifndef ENGINE_LOG_FILE_PRIVATE_H
#define ENGINE_LOG_FILE_PRIVATE_H

#include "engine/log/file.h"

/* Reads the number in the name of a file. Returns false if it is not the name of a payload file. */
bool logengine_file_number(const char *name, uint64_t *number);

/* Return MAP_NONE, or SLAB_NONE if there is no memory. */
uint32_t logengine_file_find(const struct logengine_files *s, uint64_t number);
uint32_t logengine_file_add(struct logengine_files *s, uint64_t number);

struct logengine_file *logengine_file_at(const struct logengine_files *s, uint32_t handle);
void logengine_file_forget(struct logengine_files *s, struct logengine_file *f);

/* The next number of a file is higher than this one. */
void logengine_files_note(struct logengine_files *s, uint64_t number);

/* FILE-8: whether another node has written the file for the owner of now, and whether the owner has
 * removed that file. A copy of the other node may still name it. */
bool logengine_file_is_brought(const struct logengine_files *s, uint64_t number);
bool logengine_file_is_spent(const struct logengine_files *s, uint64_t number);

/* The file may be removed. Returns true if logengine_files_sweep has work. */
bool logengine_file_let_go(struct logengine_files *s, struct logengine_file *f);

/* Not under mtx. logengine_files_sweep has work. The caller is counted in `users`, so the files and the
 * woken thread stay; it is not counted any more when this returns. */
void logengine_files_wake(struct logengine_files *s);

#endif
