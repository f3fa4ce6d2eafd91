#pragma once

// PETLAB_CLONES compiles a function for several instruction sets, of which the best is taken at run
// time. A loader without indirect functions (or another processor) takes the plain compilation.
#if defined(__x86_64__) && defined(__gnu_linux__)
#define PETLAB_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define PETLAB_CLONES
#endif
// What a clone calls must be inlined into it to be compiled for its instruction set.
#define PETLAB_INLINE inline __attribute__((always_inline))
