#include "reports/output.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "reports/error.h"
#include "reports/vega.h"

namespace petlab::reports {
namespace {

bool is_picture(const Format& format) { return format.of_figures && format.name != "vega"; }

// Collects a format's output files and their contents; pictures are drawn in finish().
class FileWriter {
 public:
  FileWriter(const std::filesystem::path& folder, const RenderOptions& options)
      : folder_(folder), options_(options) {}

  void add(const Report& report, const std::string& name, const Format& format) {
    const std::filesystem::path target = folder_ / (name + std::string(format.extension));
    if (is_picture(format)) {
      drawings_.push_back({specification_of(report.sections.front()), std::string(format.name)});
      targets_.push_back(target);
    } else {
      write(target, format.render(report, options_));
    }
  }

  // Draws all pictures in one process, whose start takes longer than drawing.
  Written finish() && {
    try {
      const std::vector<std::string> pictures = draw(drawings_, options_.home);
      for (std::size_t i = 0; i < pictures.size(); ++i) write(targets_[i], pictures[i]);
    } catch (const NotDrawn& error) {
      written_.missing.emplace_back(error.what());
    }
    return std::move(written_);
  }

 private:
  void write(const std::filesystem::path& target, const std::string& content) {
    try {
      base::write_file_atomically(target, content);
    } catch (const base::Error& wrong) {
      throw Error(fmt::format("{}; name another folder with --out", wrong.what()));
    }
    written_.files.push_back(target);
  }

  const std::filesystem::path& folder_;
  const RenderOptions& options_;
  std::vector<Drawing> drawings_;
  std::vector<std::filesystem::path> targets_;  // files for drawings_
  Written written_;
};

}  // namespace

std::vector<Report> figures_of(const Report& report) {
  std::vector<Report> figures;
  for (const Section& section : report.sections) {
    if (!is_drawn(section)) continue;
    const std::string& key = std::visit(
        [](const auto& part) -> const auto& { return part.key; }, section);
    // Without trial records, which figure formats do not use.
    Report one;
    one.name = report.name;
    one.about = report.about;
    one.progress = report.progress;
    one.notes = report.notes;
    one.builds = report.builds;
    one.sections = {section};
    if (!key.empty()) one.name += "-" + key;
    figures.push_back(std::move(one));
  }
  return figures;
}

Written write_files(const Report& report, const std::filesystem::path& folder,
                    std::span<const Format* const> formats, const RenderOptions& options) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!std::filesystem::is_directory(folder)) {
    throw Error(fmt::format(
        "{}: cannot make the folder: {}; name another with --out", folder.string(),
        std::filesystem::exists(folder) ? "there is a file of that name" : error.message()));
  }
  FileWriter writer(folder, options);
  const std::vector<Report> figures = figures_of(report);
  for (const Format* format : formats) {
    if (!format->of_figures) {
      writer.add(report, report.name, *format);
      continue;
    }
    for (const Report& figure : figures) writer.add(figure, figure.name, *format);
  }
  return std::move(writer).finish();
}

}  // namespace petlab::reports
