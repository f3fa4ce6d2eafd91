#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace petlab::testing {

/// The folder of golden values named `part` (metrics, models, petl, tokenizers): below
/// PETLAB_GOLDEN_DIR where that is set (then it must exist), else ../shared/golden beside the
/// repository. Without either, skips the case (tests/support/skip.h) and returns std::nullopt.
std::optional<std::filesystem::path> golden(const std::string& part);

/// tests/golden: the values of our own making, which are always there. CTest runs the cases tagged
/// [golden] but not [wide] on them too, with PETLAB_GOLDEN_DIR.
std::filesystem::path own_golden();

/// Prints that `cases` cases of `what` (metrics/rouge_pairs) ran. Fails where that is none, or
/// fewer than a JSON object has for `what`: that of counts.json in PETLAB_GOLDEN_DIR, else of the
/// file that PETLAB_GOLDEN_COUNTS names, where there is one.
void golden_ran(const std::string& what, std::int64_t cases);

/// The folder of real data (holds glue/CoLA/train.tsv …): PETLAB_DATA, else ../shared/data.
/// Without either, skips the case and returns std::nullopt.
std::optional<std::filesystem::path> real_data();

/// ../shared/reference/published.json beside the repository: every value that the paper prints.
/// Where it is not there, skips the case and returns std::nullopt.
std::optional<std::filesystem::path> published_values();

/// PETLAB_HOME or its default; the encoder that setup.sh unpacked. Where it is not there, skips the
/// case and returns std::nullopt.
std::optional<std::filesystem::path> minilm();

}  // namespace petlab::testing
