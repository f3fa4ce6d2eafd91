#include "orchestrator/running/event_delivery.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/shown.h"

namespace petlab::orchestrator {
namespace {

constexpr int kTries = 3;
// Limit of a command's captured output, part of which is shown if the command fails.
constexpr std::size_t kHookOutput = std::size_t{1} << 20;

// Returns the last line of a command's standard error that is not empty.
std::string last_error(const std::string& errors) {
  const std::vector<std::string> lines = base::printable_lines(errors);
  const auto last = std::find_if(lines.rbegin(), lines.rend(),
                                 [](const std::string& line) { return !line.empty(); });
  return last == lines.rend() ? std::string() : fmt::format(" ({})", base::excerpt(*last));
}

}  // namespace

EventDelivery::EventDelivery(boost::asio::io_context& io, EventCommand command,
                             std::function<void(const std::string&)> delivered,
                             std::function<void(const std::string&)> note)
    : command_(std::move(command)),
      delivered_(std::move(delivered)),
      note_(std::move(note)),
      retry_(io),
      children_(io) {}

void EventDelivery::add(Event event) {
  queue_.push_back(std::move(event));
  deliver_next();
}

void EventDelivery::deliver_next() {
  if (busy_ || queue_.empty()) return;
  busy_ = true;
  base::ChildCommand call;
  call.program = "/bin/sh";
  call.arguments = {"-c", command_.text};
  call.time_limit = command_.limit;
  call.output_limit = kHookOutput;
  call.input = queue_.front().json;
  children_.run(std::move(call), [this](const base::ChildAnswer& answer) { answered(answer); });
}

void EventDelivery::answered(const base::ChildAnswer& answer) {
  if (!answer.problem.empty() && ++tries_ < kTries) {
    retry_.expires_after(command_.retry_delay * (1 << (tries_ - 1)));
    retry_.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      busy_ = false;
      deliver_next();
    });
    return;
  }
  if (answer.problem.empty()) {
    delivered_(queue_.front().id);
    failing_ = false;
  } else {
    leave(answer.problem + last_error(answer.errors));
  }
  queue_.pop_front();
  tries_ = 0;
  busy_ = false;
  deliver_next();
}

// If a command keeps failing, only the first event is noted, with the reason.
void EventDelivery::leave(const std::string& why) {
  ++left_;
  if (std::exchange(failing_, true)) return;
  note_(fmt::format("--on-event: {} was not delivered in {} tries: the command {}",
                    queue_.front().about, kTries, why));
}

}  // namespace petlab::orchestrator
