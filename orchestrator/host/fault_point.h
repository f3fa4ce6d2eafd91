#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace petlab::orchestrator {

/// The environment variable that arms a fault point: `NAME:COUNT`. The COUNT-th time that the
/// process passes the point NAME (or any point, where NAME is `any`) it ends itself with SIGKILL,
/// as a power cut or an out-of-memory killer would. `NAME:COUNT:stop`: it stops itself (SIGSTOP)
/// until somebody lets it go on, as on a machine with too much to do; others come in between. Not
/// set: a fault point costs one comparison.
inline constexpr const char* kFaultPointVariable = "PETLAB_FAULT_POINT";

/// Arms one fault point; an empty text disarms. Throws std::invalid_argument where `text` is not
/// NAME:COUNT or NAME:COUNT:stop with COUNT >= 1.
void arm_fault_point(std::string_view text);

/// Every fault point of a run on this machine; docs/internals/fault-points.md says between which
/// writes each is. The kill campaign wants all of them hit.
inline constexpr std::array<std::string_view, 15> kFaultPoints = {
    "before_commit",    "committed",     "claimed",        "directory_made",   "given",
    "events_read",      "ending_logged", "recover_forget", "recover_ingested", "recover_logged",
    "recover_recorded", "recover_done",  "recover_swept",  "facts_read",       "planned"};

/// Those of runs by Slurm, which the campaign does not make.
inline constexpr std::array<std::string_view, 4> kSlurmFaultPoints = {
    "submission_written", "submitted", "launch_logged", "adopted"};

constexpr bool is_fault_point(std::string_view name) {
  const auto is_in = [name](const auto& table) {
    return std::find(table.begin(), table.end(), name) != table.end();
  };
  return is_in(kFaultPoints) || is_in(kSlurmFaultPoints);
}

/// A name of these tables; any other does not compile.
class FaultPointName {
 public:
  consteval FaultPointName(const char* name) : name_(name) {
    if (!is_fault_point(name_)) throw "not a fault point of the tables";
  }
  std::string_view text() const { return name_; }

 private:
  std::string_view name_;
};

/// A place between two writes.
void fault_point(FaultPointName name);

}  // namespace petlab::orchestrator
