#include "tests/fuzz/metrics_inputs.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "metrics/bleu.h"
#include "metrics/chrf.h"
#include "metrics/error.h"
#include "metrics/file_corpus.h"
#include "metrics/porter_stemmer.h"
#include "metrics/rouge.h"
#include "metrics/ter.h"
#include "metrics/text_tokenizers.h"
#include "metrics/unicode.h"
#include "tests/metrics/naive_tokenizers.h"
#include "tests/support/programs.h"

namespace petlab::fuzz {
namespace {

using namespace petlab::metrics;

void require(bool holds, const char* property) {
  if (!holds) throw std::logic_error(std::string("a property does not hold: ") + property);
}

// A copy whose bounds AddressSanitizer checks, independent of the fuzzer's buffer.
struct Exact {
  explicit Exact(std::string_view text) : bytes(text.begin(), text.end()) {}
  std::string_view view() const { return {bytes.data(), bytes.size()}; }
  std::vector<char> bytes;
};

std::string without_white_space(std::string_view text) {
  std::vector<std::string_view> parts;
  split_white_space(text, parts);
  std::string joined;
  for (const std::string_view part : parts) joined.append(part);
  return joined;
}

std::vector<std::string> tokenize(const TextTokenizer& tokenizer, std::string_view text) {
  Tokens found;
  tokenizer.tokenize(text, found);
  std::vector<std::string> tokens;
  for (const std::string_view token : found.tokens) {
    require(!token.empty(), "no token is empty");
    require(!base::first_invalid_utf8(token), "every token is UTF-8");
    require(without_white_space(token) == token, "no token contains white space");
    tokens.emplace_back(token);
  }
  return tokens;
}

bool is_text(std::string_view input) { return !base::first_invalid_utf8(input); }

std::string joined(const std::vector<std::string>& tokens) {
  std::string all;
  for (const std::string& token : tokens) all += token;
  return all;
}

void compare(std::string_view name, std::string_view input,
             std::vector<std::string> (*naive)(std::string_view)) {
  if (!is_text(input)) return;
  const Exact text(input);
  require(tokenize(*make_text_tokenizer(name, false), text.view()) == naive(text.view()),
          "the tokenizer agrees with the naive one");
  std::string lower;
  lower_case(text.view(), lower);
  require(tokenize(*make_text_tokenizer(name, true), text.view()) == naive(lower),
          "the lower-casing tokenizer agrees with the naive one");
}

void keeps_characters(std::string_view name, std::string_view input) {
  if (!is_text(input)) return;
  const Exact text(input);
  require(joined(tokenize(*make_text_tokenizer(name, false), text.view())) ==
              without_white_space(text.view()),
          "the tokens hold all characters but white space");
}

}  // namespace

void tokenizer_13a(std::string_view input) { compare("13a", input, testing::naive_13a); }
void tokenizer_intl(std::string_view input) { compare("intl", input, testing::naive_intl); }
void tokenizer_zh(std::string_view input) { compare("zh", input, testing::naive_zh); }
void tokenizer_none(std::string_view input) { keeps_characters("none", input); }
void tokenizer_char(std::string_view input) { keeps_characters("char", input); }

void tokenizer_spm(std::string_view input) {
  static const auto tokenizer = make_text_tokenizer(
      "spm", false, (testing::source_dir() / "tests/metrics/data/tiny_spm.model").string());
  if (!is_text(input)) return;
  const Exact text(input);
  tokenize(*tokenizer, text.view());
}

void tokenizer_tercom(std::string_view input) {
  if (input.empty() || !is_text(input.substr(1))) return;
  TercomOptions options;
  options.case_sensitive = (input[0] & 1) != 0;
  options.normalized = (input[0] & 2) != 0;
  options.asian_support = (input[0] & 4) != 0;
  options.no_punct = (input[0] & 8) != 0;
  const Exact text(input.substr(1));
  const auto tokens = tokenize(*make_tercom_tokenizer(options), text.view());
  if (options.normalized && !options.no_punct) {
    require(tokens ==
                testing::naive_tercom(text.view(), !options.case_sensitive, options.asian_support),
            "the tokenizer agrees with the naive one");
  }
}

void chrf_words(std::string_view input) {
  if (!is_text(input)) return;
  const Exact text(input);
  std::vector<std::string_view> words;
  metrics::chrf_words(text.view(), words);
  std::string all;
  for (const std::string_view word : words) {
    require(!word.empty(), "no word is empty");
    all.append(word);
  }
  require(all == without_white_space(text.view()), "the words hold all characters");
}

void rouge_tokenizer(std::string_view input) {
  if (!is_text(input)) return;
  const Exact text(input);
  const auto plain = rouge_tokens(text.view(), false);
  const auto stemmed = rouge_tokens(text.view(), true);
  require(plain.size() == stemmed.size(), "stemming drops no token");
  for (std::size_t i = 0; i < plain.size(); ++i) {
    for (const char c : plain[i]) {
      require((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'), "tokens are of a-z and 0-9");
    }
    require(stemmed[i] == (plain[i].size() > 3 ? porter_stem(plain[i]) : plain[i]),
            "remembered stems are those of the stemmer");
  }
}

void porter_stemmer(std::string_view input) {
  const Exact word(input);
  std::vector<char> place = word.bytes;
  const std::size_t size = porter_stem(place.data(), place.size());
  require(size <= word.bytes.size(), "a stem is no longer than its word");
  require(porter_stem(word.view()) == std::string_view(place.data(), size),
          "both forms of the stemmer agree");
}

void text_scores(std::string_view input) {
  const std::size_t part = std::min(input.find('\x01'), input.size());
  const std::string hypotheses(input.substr(0, part));
  const std::string references(input.substr(std::min(part + 1, input.size())));
  BleuOptions plain;
  plain.tokenize = "none";
  plain.max_ngram_order = 3;
  ChrfOptions words;
  words.word_order = 2;
  const Bleu bleu;
  const Bleu bleu_plain(plain);
  const Chrf chrf(words);
  const Ter ter;
  const Rouge rouge({RougeType::rougeLsum, true});
  for (const TextMetric* metric :
       std::initializer_list<const TextMetric*>{&bleu, &bleu_plain, &chrf, &ter, &rouge}) {
    std::istringstream hypothesis(hypotheses);
    std::istringstream reference(references);
    std::vector<LineReader> files;
    files.emplace_back(reference, "ref");
    try {
      FileCorpus corpus(LineReader(hypothesis, "hyp"), std::move(files));
      const double score = metric->score(evaluate(corpus, *metric).sums);
      require(std::isfinite(score) && score >= 0.0, "a score is a number of at least 0");
    } catch (const InputError&) {
      // Line counts that differ, no lines, invalid UTF-8.
    }
  }
}

std::span<const Target> metrics_targets() {
  static constexpr Target kTargets[] = {
      {"tokenizer_13a", tokenizer_13a},       {"tokenizer_none", tokenizer_none},
      {"tokenizer_char", tokenizer_char},     {"tokenizer_intl", tokenizer_intl},
      {"tokenizer_zh", tokenizer_zh},         {"tokenizer_spm", tokenizer_spm},
      {"tokenizer_tercom", tokenizer_tercom}, {"chrf_words", chrf_words},
      {"rouge_tokenizer", rouge_tokenizer},   {"porter_stemmer", porter_stemmer},
      {"text_scores", text_scores},
  };
  return kTargets;
}

}  // namespace petlab::fuzz
