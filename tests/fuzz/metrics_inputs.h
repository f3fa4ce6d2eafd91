#pragma once

#include <span>
#include <string_view>

namespace petlab::fuzz {

/// A fuzz target: runs a part of petlab on an input, and throws std::logic_error if a property does
/// not hold. That ends a fuzzer and fails a test.
struct Target {
  std::string_view name;
  void (*run)(std::string_view input);
};

// Tokenizers are compared with naive ones. Inputs that are not UTF-8 must be detected.
void tokenizer_13a(std::string_view input);
void tokenizer_none(std::string_view input);
void tokenizer_char(std::string_view input);
void tokenizer_intl(std::string_view input);
void tokenizer_zh(std::string_view input);
void tokenizer_spm(std::string_view input);
void tokenizer_tercom(std::string_view input);
void chrf_words(std::string_view input);
void rouge_tokenizer(std::string_view input);
void porter_stemmer(std::string_view input);
/// Two files of lines, separated by the first 0x01, which every text metric scores.
void text_scores(std::string_view input);

/// All of them; the normal tests run each on fixed inputs.
std::span<const Target> metrics_targets();

}  // namespace petlab::fuzz
