#include "exports/tensorboard.h"

#include <fmt/format.h>

#include <string_view>

#include "base/sha256.h"
#include "exports/event_file.h"

namespace petlab::exports {
namespace {

namespace fs = std::filesystem;

// Makes a name usable as one part of a path and of TensorBoard's run name. Names too long for a
// file system are cut and get a digest to keep them distinct.
std::string folder_name(const std::string& name) {
  std::string folder;
  for (const unsigned char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || (c == '.' && !folder.empty());
    folder += plain ? std::string(1, static_cast<char>(c)) : fmt::format("%{:02X}", c);
  }
  constexpr std::size_t kLongest = 200;
  if (folder.size() > kLongest) {
    folder.resize(kLongest - 16);
    folder += "~" + base::sha256(name).substr(std::string_view("sha256:").size(), 12);
  }
  return folder;
}

std::vector<Hparam> hparams_of(const Run& run) {
  std::vector<Hparam> all;
  if (!run.variant.empty()) all.emplace_back("variant", run.variant);
  for (const auto& [name, value] : run.parameters) {
    if (value.is_boolean()) {
      all.emplace_back(name, value.get<bool>());
    } else if (value.is_number()) {
      all.emplace_back(name, value.get<double>());
    } else {
      all.emplace_back(name, text_of(value));
    }
  }
  return all;
}

}  // namespace

void TensorboardWriter::write(const Run& run) {
  if (run.points.empty()) return;
  fs::path folder = folder_ / folder_name(run.sweep);
  if (!run.variant.empty()) folder /= folder_name(run.variant);
  folder /= folder_name(run.trial);
  make_folders(folder);
  EventFile file(folder / fmt::format("events.out.tfevents.{:.0f}.petlab", run.begun), run.begun);
  file.begin_run(hparams_of(run), run.begun);
  for (const Point& point : run.points) {
    file.scalar(point.tag(), point.step, point.time, point.value);
  }
  file.end_run(run.end, run.ended.value_or(run.points.back().time));
  file.close();
  count(run);
}

}  // namespace petlab::exports
