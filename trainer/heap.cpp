// How petlab-trainer's memory is had from the system: by jemalloc, which this file is linked with.
// glibc's heap loses what lies between blocks that stay (a third of a large step), and gives back
// large blocks at once, whose pages the system clears anew for the next of their size.

extern "C" {

// Read by jemalloc before main; MALLOC_CONF of the environment goes before it. Pages that were let
// go for ten seconds stay the process's until the system wants them, and the largest blocks share
// their arena with all others.
const char* malloc_conf = "oversize_threshold:0,muzzy_decay_ms:-1";
}
