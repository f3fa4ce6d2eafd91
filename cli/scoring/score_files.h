#pragma once

#include <memory>
#include <string>

#include "cli/scoring/score.h"
#include "metrics/file_corpus.h"

namespace petlab::cli {

/// Opens a file of hypotheses together with the options' references; "-" is standard input. Throws
/// metrics::InputError if a file cannot be opened.
std::unique_ptr<metrics::FileCorpus> open_corpus(const ScoreOptions& options,
                                                 const std::string& hypotheses, Streams streams);

/// Opens a file, or standard input for "-". Throws metrics::InputError if it cannot be opened.
metrics::LineReader open_lines(const std::string& file, Streams streams);

/// A file's name in messages: "standard input" for "-".
std::string shown_name(const std::string& file);

}  // namespace petlab::cli
