#pragma once

#include <optional>
#include <string>

namespace petlab::base {

/// Which build this is, as it was when it was compiled.
struct BuildInfo {
  std::string commit;         ///< as `git describe` names it; "unknown" outside a checkout
  std::optional<bool> clean;  ///< no file that git knows differed from it; absent: not known
  std::string compiler;       ///< "GNU 12.2.0"
  std::string flags;          ///< the build type and its flags: "Release -O3 -DNDEBUG"
};

/// A library of its own (build_info), which only what tells it links: it is compiled anew after
/// each commit.
const BuildInfo& build_info();

/// "2d8f6bf1a2b3", "2d8f6bf1a2b3+changes" where something differed, or "unknown".
std::string commit_text(const BuildInfo& build);

}  // namespace petlab::base
