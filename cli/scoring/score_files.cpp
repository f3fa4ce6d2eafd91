#include "cli/scoring/score_files.h"

#include <iostream>
#include <vector>

namespace petlab::cli {

metrics::LineReader open_lines(const std::string& file, Streams streams) {
  if (file == "-") return metrics::LineReader(streams.in, shown_name(file));
  return metrics::LineReader(file);
}

std::string shown_name(const std::string& file) { return file == "-" ? "standard input" : file; }

std::unique_ptr<metrics::FileCorpus> open_corpus(const ScoreOptions& options,
                                                 const std::string& hypotheses, Streams streams) {
  metrics::LineReader first = open_lines(hypotheses, streams);
  std::vector<metrics::LineReader> references;
  for (const std::string& file : options.references)
    references.push_back(open_lines(file, streams));
  metrics::FileCorpus::Options corpus_options;
  corpus_options.empty_is_missing = options.empty_is_missing;
  corpus_options.json_lines = options.json_lines;
  corpus_options.tabs = options.tabs;
  return std::make_unique<metrics::FileCorpus>(std::move(first), std::move(references),
                                               corpus_options);
}

}  // namespace petlab::cli
