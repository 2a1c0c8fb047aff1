/* embed.c - what the embedding program provides for the command: a reader and a writer of tables. */
#include "common/embed.h"

static const embedded_tables *embedded;

void embed_tables(const embedded_tables *tables) {
    embedded = tables;
}

const embedded_tables *get_tables(void) {
    return embedded;
}
