#pragma once

#include <span>
#include <string_view>

namespace petlab::fuzz {

/// What a fuzzer does with one input: runs a part of petlab on it and throws std::logic_error
/// where a property that always holds does not, which ends a fuzzer and fails a test.
struct Target {
  std::string_view name;
  void (*run)(std::string_view input);
};

// Tokenizers compare themselves with the naive ones; inputs that are not UTF-8 must be recognised.
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
/// Two files of lines, parted by the first 0x01, scored by every text metric.
void text_scores(std::string_view input);

/// All of them; the normal tests run each on fixed inputs.
std::span<const Target> metrics_targets();

}  // namespace petlab::fuzz
