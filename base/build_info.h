#pragma once

#include <optional>
#include <string>

namespace petlab::base {

/// Describes this build, as of its compilation.
struct BuildInfo {
  std::string commit;         ///< as named by `git describe`; "unknown" outside a checkout
  std::optional<bool> clean;  ///< no tracked file had changes; absent if unknown
  std::string compiler;       ///< "GNU 12.2.0"
  std::string flags;          ///< the build type and its flags: "Release -O3 -DNDEBUG"
};

/// In the separate library build_info, which is recompiled after each commit. Link it only where it
/// is shown.
const BuildInfo& build_info();

/// "2d8f6bf1a2b3", with "+changes" if files had changes, or "unknown".
std::string commit_text(const BuildInfo& build);

}  // namespace petlab::base
