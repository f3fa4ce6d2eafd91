#include "orchestrator/recovery/checkpoints.h"

#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>

#include "base/files.h"
#include "protocol/events.h"

namespace petlab::orchestrator {
namespace {

constexpr std::uintmax_t kMostBytesOfEvents = std::uintmax_t{4} << 30;

}  // namespace

std::optional<results::CheckpointAt> checkpoint_before(const results::CheckpointAt& last,
                                                       const std::filesystem::path& events) {
  const std::optional<std::string> content = base::read_file_if_any(events, kMostBytesOfEvents);
  if (!content) return std::nullopt;
  std::optional<results::CheckpointAt> before;
  std::string_view rest = *content;
  for (std::size_t end = 0; (end = rest.find('\n')) != std::string_view::npos;
       rest.remove_prefix(end + 1)) {
    const std::string_view line = rest.substr(0, end);
    // Most lines are of other types and need no parsing.
    if (line.find("checkpoint") == std::string_view::npos) continue;
    try {
      const protocol::Event event = protocol::parse_event(line);
      if (event.seq >= last.seq) break;
      const auto* found = std::get_if<protocol::Checkpoint>(&event.body);
      if (found != nullptr && found->path != last.path)
        before = {found->step, event.seq, found->path};
    } catch (const std::runtime_error&) {
      break;  // everything from a broken line on is ignored
    }
  }
  return before;
}

}  // namespace petlab::orchestrator
