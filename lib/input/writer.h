/* writer.h - an output file: dp_writer_open, dp_writer_write ..., dp_writer_finish.
 *
 * It is compressed by its name: .gz with gzip, .zst with zstd, else plain. Compressed files are made of blocks that are
 * compressed each by itself, by several threads, so that they can be read by several threads too; their bytes do not
 * depend on the number of threads. A file appears under its name once it is whole, and not at all if it does not get
 * there; what is not a plain file, a pipe or a device, is written as it comes. */
#ifndef DP_WRITER_H
#define DP_WRITER_H

#include "base/base.h"

typedef struct dp_writer dp_writer;

/* `path` is copied; NULL or "-" is stdout, which is not compressed. threads: for compression; 0 or 1: the caller's. */
doppel_status dp_writer_open(dp_writer **writer, const char *path, int threads, doppel_error *error);

/* By one thread at a time. After a failure only finish is left to be called. */
doppel_status dp_writer_write(dp_writer *writer, const void *bytes, size_t length, doppel_error *error);

/* Ends the file and frees the writer (NULL is fine). With `ok` the file takes its place, if all of it could be written;
 * without, it is removed, and *error is left as it is. */
doppel_status dp_writer_finish(dp_writer *writer, bool ok, doppel_error *error);

/* ---- between writer.c and writer_pack.c ---- */

typedef enum dp_pack_codec { DP_PACK_GZIP, DP_PACK_ZSTD } dp_pack_codec;

typedef struct dp_packer dp_packer;

/* Takes packed bytes, in order, in the thread that calls the packer; gives 0 or an errno. */
typedef int (*dp_pack_sink)(void *user, const char *bytes, size_t length);

/* NULL when there is no memory. */
dp_packer *dp_packer_create(dp_pack_codec codec, int threads, dp_pack_sink sink, void *user);

/* Packs bytes; gives 0 or an errno, after which only free is left to be called. */
int dp_packer_add(dp_packer *packer, const char *bytes, size_t length);

/* Packs what is left. No bytes at all make a file with one empty block. */
int dp_packer_finish(dp_packer *packer);

/* Ends the threads. NULL is fine. */
void dp_packer_free(dp_packer *packer);

#endif
