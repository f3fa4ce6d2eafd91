#include "orchestrator/running/neighbours.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/files.h"
#include "base/shallow_json.h"
#include "orchestrator/host/error.h"
#include "orchestrator/planning/device_health.h"

namespace petlab::orchestrator {
namespace {

constexpr auto kRead = std::chrono::milliseconds(200);
constexpr auto kRenew = std::chrono::seconds(1);
// A run that has not renewed its file for this long is suspended or stuck.
constexpr double kStaleSeconds = 5;
// Runs of equal claim take turns no more often than this, because a worker that takes over loads
// its backbone anew.
constexpr auto kTurn = std::chrono::seconds(10);
// A free slot that the first in line has not taken after this long is of no use to it: it may be
// restricted to other cores.
constexpr auto kDefer = std::chrono::seconds(2);
// A run that waits has taken a slot this long after another has yielded it.
constexpr auto kTaken = std::chrono::seconds(1);
constexpr const char* kSuffix = ".run";

// Since the host started, so that its runs can compare it.
double seconds_of(EventLoop::Time time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

std::string to_text(const RunNeeds& run, EventLoop::Time now) {
  const nlohmann::ordered_json content = {
      {"sweep", run.sweep}, {"places", run.places}, {"places_of_slot", run.places_of_slot},
      {"holds", run.holds}, {"wants", run.wants},   {"priority", run.priority},
      {"nice", run.nice},   {"served", run.served}, {"at", seconds_of(now)}};
  return content.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// The needs in a file of a run that lives; std::nullopt if it has died, is suspended, or is just
// writing the file.
std::optional<RunNeeds> needs_in(const std::filesystem::path& file, EventLoop::Time now) {
  std::ifstream in(file);
  const nlohmann::json content = base::shallow_json_or_none(in);
  if (!content.is_object()) return std::nullopt;
  try {
    if (seconds_of(now) - content.at("at").get<double>() > kStaleSeconds) return std::nullopt;
    if (!LockFile::is_held(file)) return std::nullopt;
    RunNeeds run;
    run.sweep = content.at("sweep").get<std::string>();
    run.places = content.at("places").get<std::vector<std::string>>();
    run.places_of_slot = content.at("places_of_slot").get<std::int64_t>();
    run.holds = content.at("holds").get<std::int64_t>();
    run.wants = content.at("wants").get<std::int64_t>();
    run.priority = content.at("priority").get<std::int64_t>();
    run.nice = content.at("nice").get<bool>();
    run.served = content.at("served").get<double>();
    const bool possible = run.places_of_slot > 0 && run.holds >= 0 && run.wants >= 0;
    return possible ? std::optional(run) : std::nullopt;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;  // of another version of petlab
  } catch (const Error&) {
    return std::nullopt;  // of a user who does not let others read it
  }
}

// The core or GPUs of a slot: "cpu-5" of "cpu-5.1".
std::vector<std::string> places_of(const WorkerSlot& slot) {
  if (slot.device.empty()) return {slot.name.substr(0, slot.name.find('.'))};
  return gpus_of(slot.device);
}

}  // namespace

Neighbours::Neighbours(RunContext& context, RunState& state, std::optional<SharedPlaces> places)
    : context_(context), state_(state), places_(std::move(places)) {
  if (!places_) return;
  mine_.sweep = context.input.sweep.name;
  mine_.places = places_->places;
  mine_.places_of_slot = places_->places_of_slot;
  mine_.nice = context.input.options.nice;
}

Neighbours::~Neighbours() {
  std::error_code ignored;
  if (file_) std::filesystem::remove(file_->file(), ignored);
}

void Neighbours::announce(std::int64_t wants) {
  if (!places_) return;
  const EventLoop::Time now = context_.loop.now();
  const bool first = !file_;
  if (first && !join()) return;
  if (!first) {
    mine_.served += std::chrono::duration<double>(now - served_at_).count() *
                    static_cast<double>(mine_.holds) / weight_of(mine_);
  }
  served_at_ = now;
  mine_.holds = 0;
  for (const auto& [name, slot] : state_.slots.all())
    mine_.holds += slot.health.retired ? 0 : slot.gpus;
  mine_.wants = std::max<std::int64_t>(0, wants);
  mine_.priority = state_.trials.schedule().highest_priority().value_or(mine_.priority);
  const bool news = first || mine_.holds != announced_.needs.holds ||
                    mine_.wants != announced_.needs.wants ||
                    mine_.priority != announced_.needs.priority;
  if (!news && now - announced_.at < kRenew) return;
  announced_ = {mine_, now};
  try {
    file_->write(to_text(mine_, now));
  } catch (const Error&) {
    // The disk may be full. The others then share as if this run were not there.
  }
}

// Creates the file. False if it must be tried again, because another run holds it for a moment to
// see whether this one lives.
bool Neighbours::join() {
  std::error_code error;
  std::filesystem::create_directories(places_->folder, error);  // else try_lock() says why
  file_ = LockFile::try_lock(places_->folder / (context_.input.options.owner + kSuffix));
  if (!file_) return false;
  remove_dead();
  read_others();
  // It begins like the run that was served least: it has no claim for the time before.
  const auto least =
      std::min_element(others_.begin(), others_.end(),
                       [](const RunNeeds& a, const RunNeeds& b) { return a.served < b.served; });
  if (least != others_.end()) mine_.served = least->served;
  return true;
}

// Removes the files of killed runs.
void Neighbours::remove_dead() {
  for (const std::filesystem::path& file : base::entries_of(places_->folder)) {
    if (file.extension() != kSuffix || file.filename() == file_->file().filename()) continue;
    try {
      std::error_code ignored;
      // Held until the file is gone, so that no run that begins uses it.
      const std::optional<LockFile> lock = LockFile::try_lock(file);
      if (lock) std::filesystem::remove(file, ignored);
    } catch (const Error&) {
      // It belongs to another user, or its run has just removed it.
    }
  }
}

void Neighbours::read_others() {
  const EventLoop::Time now = context_.loop.now();
  if (now - read_at_ < kRead) return;
  read_at_ = now;
  others_.clear();
  files_.clear();
  for (const std::filesystem::path& file : base::entries_of(places_->folder)) {
    if (file.extension() != kSuffix || file.filename() == file_->file().filename()) continue;
    if (std::optional<RunNeeds> needs = needs_in(file, now)) {
      others_.push_back(std::move(*needs));
      files_.push_back(file.filename());
    }
  }
}

bool Neighbours::may_take_slot() {
  if (!file_) return true;
  read_others();
  const EventLoop::Time now = context_.loop.now();
  if (goes_first(mine_, others_) == nullptr) {
    defers_since_.reset();
    return true;
  }
  if (!defers_since_) defers_since_ = now;
  if (now - *defers_since_ < kDefer) return false;
  defers_since_ = now;
  return true;
}

std::string Neighbours::why_no_slot() const {
  const RunNeeds* first = goes_first(mine_, others_);
  return first == nullptr ? std::string()
                          : fmt::format("a run of sweep {} goes first", first->sweep);
}

// The others, as if they had taken already what was yielded to them, so that nothing is yielded
// twice for one need.
std::vector<RunNeeds> Neighbours::others_after_yields(EventLoop::Time now) {
  std::erase_if(yielded_, [&](const Yielded& yielded) {
    return state_.slots.find(yielded.slot) == nullptr && now - yielded.at > kTaken;
  });
  std::vector<RunNeeds> others = others_;
  for (const Yielded& yielded : yielded_) {
    const auto at = std::find(files_.begin(), files_.end(), yielded.to) - files_.begin();
    if (at == std::ssize(files_)) continue;
    others[static_cast<std::size_t>(at)].holds += yielded.gpus;
    others[static_cast<std::size_t>(at)].wants -= yielded.gpus;
  }
  return others;
}

void Neighbours::yield_slots() {
  if (!file_) return;
  read_others();
  const EventLoop::Time now = context_.loop.now();
  if (others_.empty()) return;
  for (auto& [name, slot] : state_.slots.all()) {
    if (!slot.takes_claims(state_.trials.schedule(), now) ||
        slot.line() >= state_.slots.line_length(slot, state_.trials.schedule())) {
      continue;
    }
    const std::vector<RunNeeds> others = others_after_yields(now);
    const RunNeeds* const other =
        should_get(places_of(slot), mine_, others, now - slot.acquired >= kTurn);
    if (other == nullptr) continue;
    slot.health.retired = true;
    yielded_.push_back(
        {name, files_[static_cast<std::size_t>(other - others.data())], now, slot.gpus});
    announce(mine_.wants);
  }
}

}  // namespace petlab::orchestrator
