#include "tests/metrics/golden_text.h"

#include <algorithm>
#include <cmath>

#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"

namespace petlab::testing {

using nlohmann::json;

std::vector<std::filesystem::path> golden_files(const std::filesystem::path& folder,
                                                const std::string& prefix,
                                                const std::string& extension) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && entry.path().extension() == extension) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<json> read_jsonl(const std::filesystem::path& file) {
  std::vector<json> values;
  metrics::LineReader lines(file.string());
  while (const auto line = lines.next()) {
    if (!line->empty()) values.push_back(json::parse(*line));
  }
  return values;
}

metrics::MemoryCorpus golden_corpus(const std::filesystem::path& metrics_folder,
                                    const std::string& name) {
  const std::filesystem::path file = metrics_folder / "corpora" / name;
  std::vector<std::string> hypotheses;
  std::vector<metrics::MemoryCorpus::Stream> references;
  if (std::filesystem::exists(file.string() + ".jsonl")) {
    for (const json& row : read_jsonl(file.string() + ".jsonl")) {
      hypotheses.push_back(row.at("hyp"));
      const auto streams = streams_of(row.at("refs"));
      references.resize(streams.size());
      for (std::size_t r = 0; r < streams.size(); ++r) references[r].push_back(streams[r][0]);
    }
  } else {
    metrics::LineReader hyp(file.string() + ".hyp");
    while (const auto line = hyp.next()) hypotheses.emplace_back(*line);
    // NAME_b.hyp is a second system of the corpus and has the references NAME.ref.
    std::string ref = file.string() + ".ref";
    if (!std::filesystem::exists(ref))
      ref = file.string().substr(0, file.string().size() - 2) + ".ref";
    metrics::LineReader lines(ref);
    references.emplace_back();
    while (const auto line = lines.next()) references.back().emplace_back(*line);
  }
  return metrics::MemoryCorpus(std::move(hypotheses), std::move(references));
}

metrics::MemoryCorpus corpus_of(const std::vector<std::string>& hypotheses,
                                const json& reference_streams) {
  std::vector<metrics::MemoryCorpus::Stream> references;
  for (const json& stream : reference_streams) {
    references.emplace_back();
    for (const json& text : stream) {
      references.back().push_back(text.is_null() ? std::optional<std::string>()
                                                 : std::optional<std::string>(text));
    }
  }
  return metrics::MemoryCorpus(hypotheses, std::move(references));
}

std::vector<metrics::MemoryCorpus::Stream> streams_of(const json& references) {
  std::vector<metrics::MemoryCorpus::Stream> streams;
  for (const json& text : references) {
    streams.push_back(
        {text.is_null() ? std::optional<std::string>() : std::optional<std::string>(text)});
  }
  return streams;
}

void for_each_case(const std::string& prefix, const std::function<void(const json&)>& check) {
  const auto folder = golden("metrics");
  if (!folder) return;
  std::int64_t cases = 0;
  for (const std::filesystem::path& file : golden_files(*folder, prefix, ".jsonl")) {
    for (const json& value : read_jsonl(file)) {
      check(value);
      ++cases;
    }
  }
  golden_ran("metrics/" + prefix, cases);
}

bool near(double found, double wanted, double tolerance) {
  return std::abs(found - wanted) <= tolerance * std::max(1.0, std::abs(wanted));
}

}  // namespace petlab::testing
