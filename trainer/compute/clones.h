#pragma once

// PETLAB_CLONES compiles a function for several instruction sets, of which the best is taken at run
// time. A loader without indirect functions (or another processor) takes the plain compilation.
#if defined(__x86_64__) && defined(__gnu_linux__)
#define PETLAB_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
// The same in two parts, for what is written otherwise for vectors of 64 bytes: PETLAB_WIDE's are
// to be called where has_wide_vectors() alone, and are not there on another processor.
#define PETLAB_WIDE __attribute__((target("avx512f")))
#define PETLAB_NARROW_CLONES __attribute__((target_clones("avx2", "default")))
namespace petlab::trainer {
inline bool has_wide_vectors() { return __builtin_cpu_supports("avx512f") != 0; }
}  // namespace petlab::trainer
#else
#define PETLAB_CLONES
#define PETLAB_NARROW_CLONES
#endif
// What a clone calls must be inlined into it to be compiled for its instruction set.
#define PETLAB_INLINE inline __attribute__((always_inline))
#define PETLAB_INLINE_LAMBDA __attribute__((always_inline))
// Before a loop whose pointers may be equal, but that writes no place which another turn reads.
#if defined(__clang__)
#define PETLAB_TURNS_APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define PETLAB_TURNS_APART _Pragma("GCC ivdep")
#endif
