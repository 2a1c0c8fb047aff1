/* embed.c - who reads and writes tables for the command. */
#include "common/embed.h"

static const embedded_tables *embedded;

void embed_tables(const embedded_tables *tables) {
    embedded = tables;
}

const embedded_tables *get_tables(void) {
    return embedded;
}
