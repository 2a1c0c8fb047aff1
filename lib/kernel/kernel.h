/* kernel.h - the inner loops, each as portable C and as variants for CPU levels.
 *
 * A kernel NAME lives in NAME.c, with portable C first, variants below it by target attribute, and one list
 * dp_NAME_variants[] of {name, needs, run}, best first, ended by the portable one (needs 0). The list feeds the
 * dispatch, the tests (every variant against the last) and the benchmarks. dp_NAME() is the best variant for this CPU.
 */
#ifndef DP_KERNEL_H
#define DP_KERNEL_H

#include "base/base.h"

/* Declares the variants of a kernel: DP_KERNEL(thing, size_t, (const char *p, size_t n)) gives the type dp_thing_fn,
 * the list dp_thing_variants and the chooser dp_thing_kernel(). */
#define DP_KERNEL(name, result, arguments)                   \
    typedef result(*dp_##name##_fn) arguments;               \
    typedef struct dp_##name##_variant {                     \
        const char *name;                                    \
        int needs;                                           \
        dp_##name##_fn run;                                  \
    } dp_##name##_variant;                                   \
    extern const dp_##name##_variant dp_##name##_variants[]; \
    dp_##name##_fn dp_##name##_kernel(void);

/* Defines the chooser, below the list. The choice is made once; two threads that race both find the same. */
#define DP_KERNEL_CHOOSER(name)                                                   \
    dp_##name##_fn dp_##name##_kernel(void) {                                     \
        static _Atomic(dp_##name##_fn) chosen;                                    \
        dp_##name##_fn run = atomic_load_explicit(&chosen, memory_order_relaxed); \
        if (run)                                                                  \
            return run;                                                           \
        const dp_##name##_variant *variant = dp_##name##_variants;                \
        while (variant->needs > dp_cpu_level())                                   \
            variant++;                                                            \
        atomic_store_explicit(&chosen, variant->run, memory_order_relaxed);       \
        return variant->run;                                                      \
    }

/* Target attributes of the levels. */
#define DP_TARGET_AVX2 __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt")))
#define DP_TARGET_AVX512                                                                                          \
    __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2," \
                          "avx512bitalg,avx512vpopcntdq")))

#endif
