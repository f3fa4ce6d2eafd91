#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace petlab::testing {

/// The folder of golden values named `part` (metrics, models, petl, tokenizers): below
/// PETLAB_GOLDEN_DIR where that is set (then it must exist), else ../shared/golden beside the
/// repository. Without either, prints that the golden cases are skipped and returns std::nullopt.
std::optional<std::filesystem::path> golden(const std::string& part);

/// The folder of real data (holds glue/CoLA/train.tsv …): PETLAB_DATA, else ../shared/data.
/// Without either, prints that the case is skipped and returns std::nullopt.
std::optional<std::filesystem::path> real_data();

/// ../shared/reference/published.json beside the repository: every value that the paper prints.
/// Where it is not there, prints that the case is skipped and returns std::nullopt.
std::optional<std::filesystem::path> published_values();

/// PETLAB_HOME or its default; the encoder that setup.sh unpacked, where it is there.
std::optional<std::filesystem::path> minilm();

}  // namespace petlab::testing
