#include "serving/turns.h"

#include <algorithm>
#include <utility>

namespace petlab::serving {

void Turns::ask(const void* who, Time now, std::function<void()> begin) {
  waiting_.push_back({who, std::move(begin)});
  fill(now);
}

void Turns::took(const void* who, Time now) {
  for (Turn& turn : turns_) {
    if (turn.who == who) turn.took = now;
  }
}

void Turns::leave(const void* who, Time now) {
  std::erase_if(turns_, [&](const Turn& turn) { return turn.who == who; });
  fill(now);
}

void Turns::look(Time now) {
  std::erase_if(turns_, [&](const Turn& turn) {
    return now - turn.took >= patience_ || now - turn.begun >= longest_;
  });
  fill(now);
}

void Turns::clear() {
  // Destroying a waiting callback may call leave().
  const std::deque<Waiting> forgotten = std::exchange(waiting_, {});
}

void Turns::fill(Time now) {
  while (!waiting_.empty() && turns_.size() < kAtOnce) {
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    turns_.push_back({next.who, now, now});
    next.begin();
  }
}

}  // namespace petlab::serving
