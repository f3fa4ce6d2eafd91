// petlab-trainer is linked with this file and allocates through jemalloc. glibc's heap loses the
// gaps between long-lived blocks (a third of a large step), and returns large blocks to the system
// immediately, which must then clear the pages of the next such block.

extern "C" {

// jemalloc reads this before main; MALLOC_CONF in the environment overrides it. Pages unused for
// ten seconds stay with the process until the system needs them, and the largest blocks share the
// arena of all others.
const char* malloc_conf = "oversize_threshold:0,muzzy_decay_ms:-1";
}
