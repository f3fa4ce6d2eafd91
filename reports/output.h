#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "reports/render.h"
#include "reports/report.h"

namespace petlab::reports {

/// What write_files() did.
struct Written {
  std::vector<std::filesystem::path> files;
  std::vector<std::string> missing;  // why a picture was not drawn, each reason once
};

/// Writes the report in each of `formats` (with an extension) to `folder`/NAME.EXTENSION, and in
/// those of figures each of them to NAME.EXTENSION, or NAME-KEY.EXTENSION where it has a key; makes
/// the folder. A file is replaced as a whole or not at all. Pictures that cannot be drawn are left
/// out and told of. Throws reports::Error naming the file and why.
Written write_files(const Report& report, const std::filesystem::path& folder,
                    std::span<const Format* const> formats, const RenderOptions& options);

/// The figures of a report, each as a report of its own.
std::vector<Report> figures_of(const Report& report);

}  // namespace petlab::reports
