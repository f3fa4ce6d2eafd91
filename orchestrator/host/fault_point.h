#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace petlab::orchestrator {

/// The environment variable that arms a fault point: `NAME:COUNT` or `NAME:COUNT:stop`. When the
/// process passes the point NAME (or any point, if NAME is `any`) for the COUNT-th time, it kills
/// itself with SIGKILL, as a power cut or the out-of-memory killer would. With `:stop` it sends
/// itself SIGSTOP instead and waits for SIGCONT, as on an overloaded machine where other processes
/// run in between. An unarmed fault point costs one comparison.
inline constexpr const char* kFaultPointVariable = "PETLAB_FAULT_POINT";

/// Arms one fault point; an empty text disarms. Throws std::invalid_argument unless `text` is
/// NAME:COUNT or NAME:COUNT:stop with a known NAME and COUNT >= 1.
void arm_fault_point(std::string_view text);

/// All fault points of a local run. docs/internals/fault-points.md lists the writes before and
/// after each. The kill campaign must hit all of them.
inline constexpr std::array<std::string_view, 18> kFaultPoints = {
    "before_commit",  "committed",        "claimed",       "directory_written", "directory_made",
    "given",          "events_read",      "ending_logged", "recover_forget",    "recover_ingested",
    "recover_logged", "recover_recorded", "recover_done",  "recover_swept",     "facts_read",
    "planned",        "stops_logged",     "launch_logged"};

/// Fault points of Slurm runs, which the kill campaign does not cover.
inline constexpr std::array<std::string_view, 3> kSlurmFaultPoints = {"submission_written",
                                                                      "submitted", "adopted"};

constexpr bool is_fault_point(std::string_view name) {
  const auto is_in = [name](const auto& table) {
    return std::find(table.begin(), table.end(), name) != table.end();
  };
  return is_in(kFaultPoints) || is_in(kSlurmFaultPoints);
}

/// The name of a fault point in these tables. Any other name is a compile error.
class FaultPointName {
 public:
  consteval FaultPointName(const char* name) : name_(name) {
    if (!is_fault_point(name_)) throw "not a fault point of the tables";
  }
  std::string_view text() const { return name_; }

 private:
  std::string_view name_;
};

/// Marks a place between two writes. An armed fault point kills or stops the process here.
void fault_point(FaultPointName name);

}  // namespace petlab::orchestrator
