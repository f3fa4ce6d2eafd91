// A preloaded library that makes MKL choose its kernels for Intel processors with AVX-512 on any
// processor that has these instructions. MKL chooses narrower kernels on other makers' processors,
// which hides how fast it would be on Intel's. Only for benchmarks.

extern "C" {

int mkl_serv_intel_cpu();
int mkl_serv_intel_cpu_true();
int mkl_serv_cpuiszen();

int mkl_serv_intel_cpu() { return 1; }
int mkl_serv_intel_cpu_true() { return 1; }
int mkl_serv_cpuiszen() { return 0; }
}
