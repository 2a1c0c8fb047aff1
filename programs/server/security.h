/* security.h - what the process gives up once it knows what it needs. */
#ifndef SERVER_SECURITY_H
#define SERVER_SECURITY_H

#include <stdbool.h>
#include <stddef.h>

/* Becomes another user, for good; NULL: stays. Complains and gives false when it cannot. */
bool become_user(const char *name);

/* Lets this thread and those it starts see no more files than the system's, to read, and these folders, to write (NULL
 * ones are left out); and call nothing that a server of documents has no use for: no other program, no connection to
 * elsewhere, nothing that changes the system. Where the kernel has no such means (Landlock, seccomp) they are left out;
 * *missing names them, or is NULL. False, with a message: it failed. */
bool confine(const char *const *folders, size_t count, const char **missing);

#endif
