#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "protocol/decisions.h"

namespace petlab::orchestrator {

/// What the user decided on a trial on another machine, and what of that trial is here.
struct ForeignDecisions {
  std::vector<protocol::Decision> all;
  /// Its attempts there, and the numbers that they have here.
  std::map<std::int64_t, std::int64_t> numbers;
  bool attempts_come = false;  ///< some of those are taken over now
  bool own_attempts = false;   ///< the trial was tried here, too
};

/// Those that mean something here and are not among `here`, their attempts by the numbers of here.
/// Results that are to be made again, or were discarded, come with the attempts that they speak of.
/// What is hidden there is hidden here where all that the trial has came from there and nobody
/// decided otherwise. Who cancels a trial says where it is not to be run: that is not taken over.
std::vector<protocol::Decision> decisions_to_take(const ForeignDecisions& there,
                                                  const std::vector<protocol::Decision>& here);

}  // namespace petlab::orchestrator
