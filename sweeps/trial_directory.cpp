#include "sweeps/trial_directory.h"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>

namespace petlab::sweeps {

TrialDirectory::TrialDirectory(const std::filesystem::path& runs, const std::string& trial_id,
                               std::int64_t attempt)
    : folder_(runs / trial_id / std::to_string(attempt)), trial_id_(trial_id), attempt_(attempt) {}

TrialDirectory::TrialDirectory(const std::filesystem::path& attempt_folder)
    : folder_(attempt_folder.has_filename() ? attempt_folder : attempt_folder.parent_path()) {
  const std::string number = folder_.filename().string();
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), attempt_);
  if (error != std::errc() || end != number.data() + number.size() || attempt_ < 1) {
    throw std::invalid_argument(
        fmt::format("{}: the last part is '{}', must be the number of an attempt (runs/TRIAL/1)",
                    attempt_folder.string(), number));
  }
  trial_id_ = folder_.parent_path().filename().string();
}

}  // namespace petlab::sweeps
