#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "protocol/decisions.h"

namespace petlab::exchange {

/// The user's decisions about a trial on another machine, and the trial's attempts here.
struct ForeignDecisions {
  std::vector<protocol::Decision> all;
  /// Numbers of its attempts: there to here.
  std::map<std::int64_t, std::int64_t> numbers;
  bool attempts_come = false;  ///< some of those attempts are being merged
  bool own_attempts = false;   ///< the trial has further attempts here
};

/// Selects the decisions that apply here and are not in `here`, with attempt numbers translated.
/// Retries, reruns, discards and early stops come with the attempts that they concern. A trial
/// hidden there is hidden here if all its attempts came from there and no local decision
/// contradicts. Cancellations concern one machine's runs and are never merged.
std::vector<protocol::Decision> decisions_to_take(const ForeignDecisions& there,
                                                  const std::vector<protocol::Decision>& here);

}  // namespace petlab::exchange
