/* writer.h - an output file: doppel_writer_open, doppel_writer_write ..., doppel_writer_finish (doppel.h).
 *
 * It is compressed by its name: .gz with gzip, .zst with zstd, else plain. Compressed files are made of blocks that are
 * compressed each by itself, by several threads, so that they can be read by several threads too; their bytes do not
 * depend on the number of threads. A file appears under its name once it is whole, and not at all if it does not get
 * there; what is not a plain file, a pipe or a device, is written as it comes. */
#ifndef DP_WRITER_H
#define DP_WRITER_H

#include "base/base.h"

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
