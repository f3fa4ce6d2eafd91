#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace petlab::testing {

/// The folder of golden values `part` (metrics, models, petl, tokenizers): in PETLAB_GOLDEN_DIR if
/// that is set (then it must exist), otherwise in ../shared/golden next to the repository. Without
/// it, skips the case (tests/support/skip.h) and returns std::nullopt.
std::optional<std::filesystem::path> golden(const std::string& part);

/// tests/golden: the golden values in this repository. CTest also runs the cases tagged [golden]
/// but not [wide] on them, by PETLAB_GOLDEN_DIR.
std::filesystem::path own_golden();

/// Prints that `cases` cases of `what` (such as metrics/rouge_pairs) ran. Fails if there were none,
/// or fewer than the count of `what` in counts.json in PETLAB_GOLDEN_DIR. Without that file, the
/// count is read from the JSON file PETLAB_GOLDEN_COUNTS, if that is set.
void golden_ran(const std::string& what, std::int64_t cases);

/// The folder of real data (glue/CoLA/train.tsv …): PETLAB_DATA, or else ../shared/data. Without
/// it, skips the case and returns std::nullopt.
std::optional<std::filesystem::path> real_data();

/// ../shared/reference/published.json next to the repository: all values printed in the paper. If
/// it is missing, skips the case and returns std::nullopt.
std::optional<std::filesystem::path> published_values();

/// The encoder that setup.sh unpacked in PETLAB_HOME or its default. If it is missing, skips the
/// case and returns std::nullopt.
std::optional<std::filesystem::path> minilm();

}  // namespace petlab::testing
