#pragma once

// PETLAB_CLONES compiles a function for several instruction sets; the best is chosen at run time.
// Loaders without indirect functions, and other processors, get only the plain version.
#if defined(__x86_64__) && defined(__gnu_linux__)
#define PETLAB_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
// The same split in two, for functions with a separate version for 64-byte vectors. Functions
// marked PETLAB_WIDE exist only on x86-64; call them only if has_wide_vectors().
#define PETLAB_WIDE __attribute__((target("avx512f")))
#define PETLAB_NARROW_CLONES __attribute__((target_clones("avx2", "default")))
namespace petlab::trainer {
inline bool has_wide_vectors() { return __builtin_cpu_supports("avx512f") != 0; }
}  // namespace petlab::trainer
#else
#define PETLAB_CLONES
#define PETLAB_NARROW_CLONES
#endif
// Functions that a clone calls must be inlined, to be compiled for its instruction set.
#define PETLAB_INLINE inline __attribute__((always_inline))
#define PETLAB_INLINE_LAMBDA __attribute__((always_inline))
// Place before a loop whose pointers may be equal, but where no iteration reads what another
// writes.
#if defined(__clang__)
#define PETLAB_TURNS_APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define PETLAB_TURNS_APART _Pragma("GCC ivdep")
#endif
