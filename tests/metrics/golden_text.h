#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "metrics/file_corpus.h"

namespace petlab::testing {

/// Returns the files of `folder` with this prefix and extension, sorted.
std::vector<std::filesystem::path> golden_files(const std::filesystem::path& folder,
                                                const std::string& prefix,
                                                const std::string& extension);

/// Reads a .jsonl file with one JSON value on each line. Only "\n" ends a line.
std::vector<nlohmann::json> read_jsonl(const std::filesystem::path& file);

/// Reads a corpus of the folder "corpora": NAME.jsonl, or else NAME.hyp with NAME.ref.
metrics::MemoryCorpus golden_corpus(const std::filesystem::path& metrics_folder,
                                    const std::string& name);

/// Makes a corpus of hypotheses and a JSON list of reference streams.
metrics::MemoryCorpus corpus_of(const std::vector<std::string>& hypotheses,
                                const nlohmann::json& reference_streams);

/// Makes one stream for each reference of a single segment.
std::vector<metrics::MemoryCorpus::Stream> streams_of(const nlohmann::json& references);

/// Runs `check` on every value of the files with this prefix and reports their number by
/// golden_ran.
void for_each_case(const std::string& prefix,
                   const std::function<void(const nlohmann::json&)>& check);

/// True if |found - wanted| <= tolerance · max(1, |wanted|).
bool near(double found, double wanted, double tolerance);

}  // namespace petlab::testing
