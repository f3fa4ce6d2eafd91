#include "base/build_info.h"

#include "base/build_info_values.h"

namespace petlab::base {

const BuildInfo& build_info() {
  static const BuildInfo info{kBuildCommit, kBuildClean, kBuildCompiler, kBuildFlags};
  return info;
}

std::string commit_text(const BuildInfo& build) {
  return build.commit + (build.clean == false ? "+changes" : "");
}

}  // namespace petlab::base
