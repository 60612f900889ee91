/*
 * files.h - how many files, and so connections, this process may have open.
 */
#ifndef NET_FILES_H
#define NET_FILES_H

/* Raise the limit of open files of this process to at least n if the system lets us;
 * returns what the limit is now. */
unsigned long files_allow(unsigned long n);

#endif
