// Preloaded, answers for MKL the questions by which it chooses its kernels: it then takes those of
// Intel's processors with AVX-512 on any processor that has the instructions. On others it takes
// narrow ones, so that what it would do there cannot be timed here. For timing alone.

extern "C" {

int mkl_serv_intel_cpu();
int mkl_serv_intel_cpu_true();
int mkl_serv_cpuiszen();

int mkl_serv_intel_cpu() { return 1; }
int mkl_serv_intel_cpu_true() { return 1; }
int mkl_serv_cpuiszen() { return 0; }
}
