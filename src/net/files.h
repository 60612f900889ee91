/*
 * files.h - the limit of open files of this process, and so of connections.
 */
#ifndef NET_FILES_H
#define NET_FILES_H

/* Raises the limit of open files of this process to at least n if the system allows it.
 * Returns the limit. */
unsigned long files_allow(unsigned long n);

#endif
