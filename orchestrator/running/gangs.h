#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "orchestrator/running/run_context.h"
#include "orchestrator/running/run_state.h"

namespace petlab::orchestrator {

/// Says which waiting trials a worker can train together with those that it is about to get.
class Gangs {
 public:
  Gangs(const RunContext& context, const RunState& state);

  /// True if `candidate` can be trained together with the trials of `gang`, on the slot's device.
  /// Always true if no gangs are wanted, or if the gang is empty.
  bool may_join(const std::vector<std::size_t>& gang, std::size_t candidate,
                const WorkerSlot& slot) const;

 private:
  bool has_memory(const std::vector<std::size_t>& gang, std::size_t candidate,
                  const WorkerSlot& slot) const;

  const RunContext& context_;
  const RunState& state_;
  std::vector<std::optional<std::size_t>> groups_;  // by trial; empty: no gangs are wanted
};

}  // namespace petlab::orchestrator
