#include "protocol/decisions.h"

#include <stdexcept>
#include <utility>

#include "protocol/record_lines.h"
#include "protocol/trial_directory.h"

namespace petlab::protocol {
namespace {

constexpr std::pair<Decision::What, const char*> kDecisions[] = {
    {Decision::What::cancel, "cancel"},   {Decision::What::uncancel, "uncancel"},
    {Decision::What::retry, "retry"},     {Decision::What::rerun, "rerun"},
    {Decision::What::discard, "discard"}, {Decision::What::hide, "hide"},
    {Decision::What::unhide, "unhide"},   {Decision::What::stop_early, "stop_early"},
};

bool has_attempt(Decision::What what) {
  return what == Decision::What::retry || what == Decision::What::rerun ||
         what == Decision::What::discard || what == Decision::What::stop_early;
}

}  // namespace

void append_decision(const std::filesystem::path& runs, const std::string& trial_id,
                     const Decision& decision, bool synced) {
  RecordLine line = {{"v", 1}, {"time", decision.time}};
  for (const auto& [what, word] : kDecisions) {
    if (what == decision.what) line["decision"] = word;
  }
  if (has_attempt(decision.what)) line["after_attempt"] = decision.after_attempt;
  if (decision.what == Decision::What::stop_early) line["after_step"] = decision.after_step;
  put(line, "why", decision.why);
  append_record(decisions_file(runs, trial_id), line, synced);
}

std::vector<Decision> read_decisions(const std::filesystem::path& runs, const std::string& trial_id,
                                     std::vector<std::string>* left_out) {
  std::vector<Decision> decisions;
  std::vector<std::string> unread =
      each_record(decisions_file(runs, trial_id), [&](const RecordLine& line) {
        for (const auto& [what, word] : kDecisions) {
          if (line.value("decision", "") == word) {
            decisions.push_back({what, line.value("after_attempt", std::int64_t{0}),
                                 line.value("time", 0.0), line.value("why", ""),
                                 line.value("after_step", std::int64_t{0})});
            return;
          }
        }
        throw std::invalid_argument("this petlab does not know the decision");
      });
  if (left_out != nullptr) left_out->insert(left_out->end(), unread.begin(), unread.end());
  return decisions;
}

}  // namespace petlab::protocol
