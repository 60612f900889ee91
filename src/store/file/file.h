/*
 * file.h - a store in a folder, also on a file system that several machines share.
 *
 *      file:///srv/sluice
 *
 *      /srv/sluice/0/group/00000000000000000007     an object: its name is its path
 *      /srv/sluice/.tmp/5e1f00c2a1b09d37.lock       one open store; the process holds a lock on it
 *      /srv/sluice/.tmp/5e1f00c2a1b09d37.12         a temporary file of that store
 *
 * A put writes a temporary file, syncs it, links it to its name and syncs the folder. `link` fails
 * if the name exists, so one put wins (STORE-1), and the object is whole before it has a name
 * (STORE-2). An NFS client repeats a link whose answer it lost and then gets EEXIST although its
 * link was made: so after every failed link the number of links decides.
 *
 * A crash leaves temporary files behind. The next store_open removes the files of dead processes: a
 * dead process holds no lock.
 *
 * Requests fail while the folder is moved away or another folder is in its place, for example a
 * copy from a backup. They succeed again when the folder is back.
 *
 * Which file systems are allowed: place.c.
 */
#ifndef STORE_FILE_FILE_H
#define STORE_FILE_FILE_H

#include "store/store.h"

extern const struct store_ops store_file;

#endif
