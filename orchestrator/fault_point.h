#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace petlab::orchestrator {

/// The environment variable that arms a fault point: `NAME:COUNT`. The COUNT-th time that the
/// process passes the point NAME (or any point, where NAME is `any`) it ends itself with SIGKILL,
/// as a power cut or an out-of-memory killer would. Not set: a fault point costs one comparison.
inline constexpr const char* kFaultPointVariable = "PETLAB_FAULT_POINT";

/// Arms one fault point; an empty text disarms. Throws std::invalid_argument where `text` is not
/// NAME:COUNT with COUNT >= 1.
void arm_fault_point(std::string_view text);

/// Every fault point; docs/orchestrator.md says between which writes each is. The kill campaign
/// wants all of them hit.
inline constexpr std::array<std::string_view, 13> kFaultPoints = {
    "before_commit",    "committed",     "claimed",        "directory_made",   "given",
    "events_read",      "ending_logged", "recover_forget", "recover_ingested", "recover_logged",
    "recover_recorded", "recover_done",  "recover_swept"};

/// A name of that table; any other does not compile.
class FaultPointName {
 public:
  consteval FaultPointName(const char* name) : name_(name) {
    if (std::find(kFaultPoints.begin(), kFaultPoints.end(), name_) == kFaultPoints.end()) {
      throw "not in kFaultPoints";
    }
  }
  std::string_view text() const { return name_; }

 private:
  std::string_view name_;
};

/// A place between two writes.
void fault_point(FaultPointName name);

}  // namespace petlab::orchestrator
