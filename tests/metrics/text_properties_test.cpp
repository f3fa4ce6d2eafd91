#include <algorithm>
#include <numeric>
#include <random>

#include "metrics/bleu.h"
#include "metrics/chrf.h"
#include "metrics/rouge.h"
#include "metrics/ter.h"
#include "tests/fuzz/metrics_inputs.h"
#include "tests/support/catch.h"

using namespace petlab::metrics;

namespace {

// Text pieces that the tokenizers' rules treat specially.
constexpr const char* kPieces[] = {".",
                                   ",",
                                   "-",
                                   "'s",
                                   "'",
                                   "'S",
                                   " ",
                                   "  ",
                                   "\t",
                                   "\n",
                                   "-\n",
                                   "\n-",
                                   "\r",
                                   "0",
                                   "5",
                                   "42",
                                   "a",
                                   "A",
                                   "word",
                                   "The",
                                   "cat",
                                   "running",
                                   "flies",
                                   "&",
                                   "&amp;",
                                   "&quot;",
                                   "&lt;",
                                   "&gt;",
                                   "&amp;lt;",
                                   "&apos;",
                                   "<skipped>",
                                   "<skip",
                                   "ped>",
                                   "<",
                                   ">",
                                   "\"",
                                   "!",
                                   "?",
                                   ";",
                                   ":",
                                   "(",
                                   ")",
                                   "/",
                                   "$",
                                   "%",
                                   "+",
                                   "@",
                                   "_",
                                   "`",
                                   "\\",
                                   "\xE2\x80\x9C",
                                   "\xE2\x80\xA6",
                                   "\xC2\xBD",
                                   "\xE2\x82\xAC",
                                   "\xE4\xB8\xAD",
                                   "\xE6\x96\x87",
                                   "\xEF\xBC\x8C",
                                   "\xE3\x80\x82",
                                   "\xE3\x81\x8B",
                                   "\xE2\x80\xA8",
                                   "\xC2\xA0",
                                   "\xC2\x85",
                                   "\xE3\x80\x80",
                                   "\xE2\x80\x8B",
                                   "\xC4\xB0",
                                   "\xCE\xA3",
                                   "\xCE\xB1",
                                   "\xE2\x84\xAA",
                                   "\xC3\xA9",
                                   "\xC8\x98",
                                   "\xF0\x9F\x98\x80",
                                   "\xF0\xA0\x80\x80",
                                   "\xD9\xA3",
                                   "\xD9\xAB",
                                   "\xE2\x82\x82",
                                   "\xC2\xB7",
                                   "\x1C",
                                   "yyy",
                                   "s",
                                   "ies",
                                   "ational",
                                   "ing",
                                   "eed"};

class TextSource {
 public:
  explicit TextSource(std::uint32_t seed) : random_(seed) {}
  std::size_t below(std::size_t bound) { return random_() % bound; }
  std::string text(std::size_t most) {
    std::string all;
    for (std::size_t left = below(most + 1); left > 0; --left) {
      all += kPieces[below(std::size(kPieces))];
    }
    return all;
  }
  std::string line(std::size_t most) {
    std::string all = text(most);
    std::replace(all.begin(), all.end(), '\n', ' ');
    return all;
  }

 private:
  std::mt19937 random_;
};

// Two lines with common words, one a shuffled and damaged copy of the other.
std::pair<std::string, std::string> pair(TextSource& texts) {
  const std::size_t words = 1 + texts.below(40);
  std::string hypothesis;
  std::string reference;
  for (std::size_t i = 0; i < words; ++i) {
    const std::string word = texts.line(2) + "w" + std::to_string(texts.below(12)) + " ";
    reference += word;
    if (texts.below(5) > 0) hypothesis += word;
    if (texts.below(7) == 0) hypothesis = word + hypothesis;
  }
  return {hypothesis, reference};
}

std::vector<std::unique_ptr<TextMetric>> all_metrics() {
  std::vector<std::unique_ptr<TextMetric>> metrics;
  for (const char* tokenizer : {"13a", "none", "char", "intl", "zh"}) {
    BleuOptions options;
    options.tokenize = tokenizer;
    options.lowercase = metrics.size() % 2 == 0;
    metrics.push_back(std::make_unique<Bleu>(options));
  }
  ChrfOptions words;
  words.word_order = 2;
  metrics.push_back(std::make_unique<Chrf>());
  metrics.push_back(std::make_unique<Chrf>(words));
  metrics.push_back(std::make_unique<Ter>());
  for (const char* type : {"rouge1", "rouge2", "rougeL", "rougeLsum"}) {
    metrics.push_back(std::make_unique<Rouge>(RougeOptions{*rouge_type_from(type), true}));
  }
  return metrics;
}

struct Corpus {
  std::vector<std::string> hypotheses;
  std::vector<MemoryCorpus::Stream> references = {{}, {}};
};

Corpus random_corpus(std::size_t segments, std::uint32_t seed) {
  TextSource texts(seed);
  Corpus corpus;
  for (std::size_t i = 0; i < segments; ++i) {
    auto [hypothesis, reference] = pair(texts);
    corpus.hypotheses.push_back(hypothesis);
    corpus.references[0].emplace_back(reference);
    corpus.references[1].emplace_back(texts.below(3) == 0 ? std::optional<std::string>()
                                                          : pair(texts).second);
  }
  return corpus;
}

CorpusStatistics run(const Corpus& corpus, const TextMetric& metric, int threads = 1) {
  MemoryCorpus source(corpus.hypotheses, corpus.references);
  return evaluate(source, metric, threads);
}

}  // namespace

TEST_CASE("every fuzz target keeps its properties on fixed random inputs", "[metrics]") {
  for (const petlab::fuzz::Target& target : petlab::fuzz::metrics_targets()) {
    INFO(target.name);
    TextSource texts(20240501);
    const int rounds = target.name == "text_scores" ? 300 : 3000;
    for (int round = 0; round < rounds; ++round) {
      std::string input;
      if (round % 8 == 7) {  // any bytes
        for (std::size_t left = texts.below(40); left > 0; --left) {
          input += static_cast<char>(texts.below(256));
        }
      } else if (target.name == "text_scores") {
        const std::size_t lines = texts.below(4);
        for (std::size_t i = 0; i < lines; ++i) input += texts.line(12) + "\n";
        input += '\x01';
        for (std::size_t i = 0; i < lines; ++i) input += texts.line(12) + "\n";
      } else {
        input = static_cast<char>(texts.below(16)) + texts.text(24);
        if (round % 2 == 0) input.erase(0, 1);
      }
      INFO(input);
      CHECK_NOTHROW(target.run(input));
    }
  }
}

TEST_CASE("inputs that a fuzzer once found to fail do not fail", "[metrics]") {
  using namespace std::string_literals;
  // A reference of more than 64 tokens of one character each, with a short hypothesis.
  CHECK_NOTHROW(petlab::fuzz::text_scores("5.5\x01"s + std::string(26, '\0') + "&aMp;-"s +
                                          std::string(40, '\0') + "5"s));
}

TEST_CASE("scores do not depend on threads or on the order of a corpus", "[metrics]") {
  Corpus corpus = random_corpus(1500, 7);
  Corpus permuted = corpus;
  std::vector<std::size_t> order(corpus.hypotheses.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(3);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  for (std::size_t i = 0; i < order.size(); ++i) {
    permuted.hypotheses[i] = corpus.hypotheses[order[i]];
    for (std::size_t r = 0; r < 2; ++r) permuted.references[r][i] = corpus.references[r][order[i]];
  }
  for (const auto& metric : all_metrics()) {
    INFO(metric->name());
    const CorpusStatistics wanted = run(corpus, *metric);
    CHECK(wanted.segments == 1500);
    CHECK(wanted.references == -1);
    CHECK(metric->score(wanted.sums) > 0.0);
    for (const int threads : {2, 3, 8}) {
      const CorpusStatistics found = run(corpus, *metric, threads);
      CHECK(found.sums == wanted.sums);
      CHECK(found.segments == wanted.segments);
      CHECK(found.references == wanted.references);
    }
    CHECK(run(permuted, *metric, 2).sums == wanted.sums);
  }
}

TEST_CASE("a hypothesis equal to its reference has the best score", "[metrics]") {
  TextSource texts(11);
  Corpus corpus;
  corpus.references.resize(1);
  for (int i = 0; i < 200; ++i) {
    const std::string line = "a few words before " + texts.line(20);
    corpus.hypotheses.push_back(line);
    corpus.references[0].emplace_back(line);
  }
  for (const auto& metric : all_metrics()) {
    INFO(metric->name());
    const double best = metric->name() == "TER"               ? 0.0
                        : metric->name().starts_with("rouge") ? 1.0
                                                              : 100.0;
    CHECK(metric->score(run(corpus, *metric).sums) == Approx(best).epsilon(1e-12));
  }
}

TEST_CASE("a sink receives each segment once, in order, for any number of threads", "[metrics]") {
  const Corpus corpus = random_corpus(2000, 5);
  const Chrf metric;
  std::vector<double> wanted;
  for (const int threads : {1, 4}) {
    MemoryCorpus source(corpus.hypotheses, corpus.references);
    std::vector<double> scores;
    evaluate(source, metric, threads,
             [&](std::int64_t index, const Segment& segment, std::span<const double> statistics) {
               REQUIRE(index == static_cast<std::int64_t>(scores.size()));
               REQUIRE(segment.hypothesis == corpus.hypotheses[scores.size()]);
               scores.push_back(metric.score(statistics));
             });
    REQUIRE(scores.size() == 2000);
    if (threads == 1) wanted = scores;
    CHECK(scores == wanted);
  }
}
