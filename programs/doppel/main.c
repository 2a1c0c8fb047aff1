/* main.c - the program doppel: the command (command.c), and nothing else. */
#include "common/embed.h"

int main(int argc, char **argv) {
    return doppel_main(argc, argv);
}
