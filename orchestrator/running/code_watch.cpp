#include "orchestrator/running/code_watch.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/error.h"
#include "orchestrator/launching/code_capture.h"

namespace petlab::orchestrator {

std::string CodeWatch::capture() {
  const RunOptions& options = context_.input.options;
  if (options.code == nullptr) return {};
  const protocol::CodeRecord& record = options.code->now();
  if (digest_.empty() || known_.record != record) {
    try {
      digest_ = protocol::write_code_record(options.runs, record);
    } catch (const base::Error& error) {
      context_.observer.note(fmt::format("what the worker runs is not recorded: {}", error.what()));
      return {};
    }
    KnownCode now = code_now(record, {});
    changed(code_changes(known_, now));
    for (const char* name : {"script", "tree"}) known_.parts.erase(name);
    known_.parts.merge(now.parts);
    known_.record = std::move(now.record);
  }
  return launch_code(known_, digest_);
}

bool CodeWatch::reported(const std::string& worker_said) {
  if (worker_said.empty()) return true;
  const KnownCode now{results::code_of(results::Provenance{"", worker_said}).parts, std::nullopt};
  const bool continues = changed(code_changes(known_, now));
  for (const auto& [name, value] : now.parts) known_.parts[name] = value;
  return continues;
}

bool CodeWatch::changed(const std::vector<std::string>& changes) {
  if (changes.empty()) return true;
  const std::string text = listed_changes(changes);
  if (!context_.input.options.strict_code) {
    context_.observer.note(fmt::format(
        "the code changed: {}; results from here on are marked (petlab plan, petlab report)",
        text));
    return true;
  }
  if (course_.problem.empty()) {
    course_.problem = fmt::format(
        "--strict-code: the code changed: {}; restore it and run the same command, or run without "
        "--strict-code",
        text);
  }
  return false;
}

}  // namespace petlab::orchestrator
