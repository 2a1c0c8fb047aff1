/* cpu.c - which kernels this CPU can run. DOPPEL_CPU=portable|avx2|avx512|neon lowers the level, for tests and for
 * doubt. */
#include "base/base.h"

#include <stdlib.h>

/* Each level asks for everything its kernels use (DP_TARGET_* in kernel.h); AVX-512 begins with Ice Lake and Zen 4. */
int dp_cpu_best(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                __builtin_cpu_supports("popcnt");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                  __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
                  __builtin_cpu_supports("avx512bitalg") && __builtin_cpu_supports("avx512vpopcntdq");
    return avx512 ? DP_CPU_AVX512 : avx2 ? DP_CPU_AVX2 : DP_CPU_PORTABLE;
#elif defined(__aarch64__)
    return DP_CPU_NEON;
#else
    return DP_CPU_PORTABLE;
#endif
}

static const char *const level_names[] = {
#if defined(__aarch64__)
    "portable", "neon"
#else
    "portable", "avx2", "avx512"
#endif
};

static int find_level(void) {
    int best = dp_cpu_best();
    const char *wanted = getenv("DOPPEL_CPU");
    for (int level = 0; wanted && level < best; level++)
        if (!strcmp(wanted, level_names[level]))
            return level;
    return best;
}

int dp_cpu_level(void) {
    static _Atomic int level = -1;
    int found = atomic_load_explicit(&level, memory_order_relaxed);
    if (found < 0) {
        found = find_level();
        atomic_store_explicit(&level, found, memory_order_relaxed);
    }
    return found;
}

const char *doppel_cpu_level(void) {
    return level_names[dp_cpu_level()];
}
