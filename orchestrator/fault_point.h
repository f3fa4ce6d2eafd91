#pragma once

#include <string_view>

namespace petlab::orchestrator {

/// The environment variable that arms a fault point: `NAME:COUNT`. The COUNT-th time that the
/// process passes the point NAME (or any point, where NAME is `any`) it ends itself with SIGKILL,
/// as a power cut or an out-of-memory killer would. Not set: a fault point costs one comparison.
inline constexpr const char* kFaultPointVariable = "PETLAB_FAULT_POINT";

/// Arms one fault point; an empty text disarms. Throws std::invalid_argument where `text` is not
/// NAME:COUNT with COUNT >= 1.
void arm_fault_point(std::string_view text);

/// A place between two writes, by name: claimed, directory_made, …. They are listed in
/// docs/orchestrator.md.
void fault_point(std::string_view name);

}  // namespace petlab::orchestrator
