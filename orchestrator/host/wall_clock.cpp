#include "orchestrator/host/wall_clock.h"

#include <chrono>

namespace petlab::orchestrator {

double wall_clock_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace petlab::orchestrator
