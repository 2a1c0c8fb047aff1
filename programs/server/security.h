/* security.h - what the process gives up once it knows what it needs. */
#ifndef SERVER_SECURITY_H
#define SERVER_SECURITY_H

#include <stdbool.h>
#include <stddef.h>

/* Becomes another user, for good; NULL: stays. Complains and gives false when it cannot. */
bool become_user(const char *name);

/* The folders that are still needed; NULL ones are left out. */
typedef struct needed_folders {
    const char *to_write[8], *to_read[2];
    bool connects; /* to a store */
} needed_folders;

/* Lets this thread and those it starts see no more files than the system's, to read, and these folders; and call
 * nothing that a server of documents has no use for: no other program, no connection to elsewhere (unless it has to),
 * nothing that changes the system. Where the kernel has no such means (Landlock, seccomp) they are left out; *missing
 * names them, or is NULL. False, with a message: it failed. */
bool confine(const needed_folders *folders, const char **missing);

#endif
