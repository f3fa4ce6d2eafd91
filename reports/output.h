#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "reports/render.h"
#include "reports/report.h"

namespace petlab::reports {

/// The result of write_files().
struct Written {
  std::vector<std::filesystem::path> files;
  std::vector<std::string> missing;  // reasons why pictures were not drawn, without repeats
};

/// Writes the report in each of `formats` (which need an extension) to `folder`/NAME.EXTENSION; for
/// figure formats, each figure to NAME.EXTENSION, or NAME-KEY.EXTENSION if it has a key. Creates
/// the folder. Each file is replaced completely or not at all. Pictures that cannot be drawn are
/// skipped and listed. Throws reports::Error naming the file and the reason.
Written write_files(const Report& report, const std::filesystem::path& folder,
                    std::span<const Format* const> formats, const RenderOptions& options);

/// The figures of a report, each as a separate report.
std::vector<Report> figures_of(const Report& report);

}  // namespace petlab::reports
