#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "metrics/file_corpus.h"

namespace petlab::testing {

/// The files of `folder` whose name begins with `prefix` and ends with `extension`, sorted.
std::vector<std::filesystem::path> golden_files(const std::filesystem::path& folder,
                                                const std::string& prefix,
                                                const std::string& extension);

/// The JSON values of a .jsonl file, one a line that ends at "\n" only.
std::vector<nlohmann::json> read_jsonl(const std::filesystem::path& file);

/// The named corpus of the folder "corpora": NAME.jsonl, else NAME.hyp with NAME.ref.
metrics::MemoryCorpus golden_corpus(const std::filesystem::path& metrics_folder,
                                    const std::string& name);

/// A corpus of rows [{"hyp", "refs"}].
metrics::MemoryCorpus corpus_of(const std::vector<std::string>& hypotheses,
                                const nlohmann::json& reference_streams);

/// The streams of references of one segment's list of them.
std::vector<metrics::MemoryCorpus::Stream> streams_of(const nlohmann::json& references);

/// Runs `check` on every value of every such file; golden_ran says how many there were.
void for_each_case(const std::string& prefix,
                   const std::function<void(const nlohmann::json&)>& check);

/// |found - wanted| <= tolerance · max(1, |wanted|).
bool near(double found, double wanted, double tolerance);

}  // namespace petlab::testing
