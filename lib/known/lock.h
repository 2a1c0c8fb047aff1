/* lock.h - a lock for many readers and few writers. */
#ifndef DP_LOCK_H
#define DP_LOCK_H

#include <pthread.h>
#include <stdbool.h>

/* Writers go first: what is read all the time must not keep them waiting. No thread may lock it twice. */
static inline bool dp_lock_init(pthread_rwlock_t *lock) {
    pthread_rwlockattr_t attributes;
    if (pthread_rwlockattr_init(&attributes))
        return false;
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    bool made = !pthread_rwlock_init(lock, &attributes);
    pthread_rwlockattr_destroy(&attributes);
    return made;
}

#endif
