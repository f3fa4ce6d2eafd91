// The parts of text metrics, each compared with a simple implementation.
#include <algorithm>
#include <limits>
#include <map>
#include <random>

#include "metrics/bleu.h"
#include "metrics/chrf.h"
#include "metrics/error.h"
#include "metrics/exact_sum.h"
#include "metrics/lcs.h"
#include "metrics/ngram_matcher.h"
#include "metrics/porter_stemmer.h"
#include "metrics/rouge.h"
#include "metrics/significance.h"
#include "metrics/ter.h"
#include "metrics/ter_edits.h"
#include "metrics/token_index.h"
#include "metrics/unicode.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace petlab::metrics;

namespace {

using Items = std::vector<std::uint32_t>;

Items random_items(std::mt19937& random, std::size_t size, std::uint32_t kinds) {
  Items items(size);
  for (std::uint32_t& item : items) item = random() % kinds;
  return items;
}

std::map<Items, std::int64_t> ngrams(const Items& items, std::size_t n) {
  std::map<Items, std::int64_t> counts;
  for (std::size_t i = 0; i + n <= items.size(); ++i) {
    ++counts[Items(items.begin() + static_cast<std::ptrdiff_t>(i),
                   items.begin() + static_cast<std::ptrdiff_t>(i + n))];
  }
  return counts;
}

std::vector<std::int64_t> naive_matches(const std::vector<Items>& references,
                                        const Items& hypothesis, std::size_t orders) {
  std::vector<std::int64_t> matches(orders);
  for (std::size_t n = 1; n <= orders; ++n) {
    std::map<Items, std::int64_t> largest;
    for (const Items& reference : references) {
      for (const auto& [ngram, count] : ngrams(reference, n)) {
        largest[ngram] = std::max(largest[ngram], count);
      }
    }
    for (const auto& [ngram, count] : ngrams(hypothesis, n)) {
      const auto found = largest.find(ngram);
      if (found != largest.end()) matches[n - 1] += std::min(count, found->second);
    }
  }
  return matches;
}

std::int64_t ter_edits(const std::string& hypothesis, const std::string& reference) {
  const Ter ter;
  const std::string_view references[] = {reference};
  return ter.result(evaluate_segment(ter, hypothesis, references)).num_edits;
}

}  // namespace

TEST_CASE("clipped n-gram matches equal counts in maps", "[metrics]") {
  std::mt19937 random(1);
  NgramMatcher matcher;
  for (int round = 0; round < 400; ++round) {
    // Sizes below and above 64, and below and above the largest for which masks are used.
    const std::size_t longest = round % 10 == 0 ? 1000 : round % 3 == 0 ? 200 : 70;
    const std::uint32_t kinds = 1 + random() % 20;
    const std::size_t orders = std::vector<std::size_t>{1, 2, 3, 4, 6, 9}[random() % 6];
    std::vector<Items> references;
    for (std::size_t r = 0; r < 1 + random() % 3; ++r) {
      references.push_back(random_items(random, random() % (longest + 1), kinds));
    }
    Items hypothesis = random_items(random, random() % (longest + 1), kinds);
    for (std::uint32_t& item : hypothesis) {
      if (random() % 11 == 0) item = NgramMatcher::kNone;
    }
    INFO("round " << round << ", orders " << orders);
    std::vector<std::int64_t> found(orders);
    std::vector<std::span<const std::uint32_t>> views(references.begin(), references.end());
    matcher.match(views, hypothesis, kinds, found);
    CHECK(found == naive_matches(references, hypothesis, orders));
    std::fill(found.begin(), found.end(), 0);
    matcher.match(views[0], hypothesis, kinds, found);
    CHECK(found == naive_matches({references[0]}, hypothesis, orders));
  }
}

TEST_CASE("the common subsequence is the one from the table of lengths", "[metrics]") {
  std::mt19937 random(2);
  LongestCommonSubsequence lcs;
  for (int round = 0; round < 303; ++round) {
    std::uint32_t kinds = 1 + random() % 12;
    Items reference = random_items(random, random() % 150, kinds);
    Items candidate = random_items(random, random() % 150, kinds + 2);
    // The last three rounds exceed the sizes up to which masks and rows are stored as a whole.
    if (round >= 300) {
      kinds = 40;
      reference = random_items(random, 2100, kinds);
      candidate = random_items(random, 8100 + random() % 90, kinds + 1);
      for (Items* items : {&reference, &candidate}) {
        for (std::uint32_t& item : *items) item *= 250;
      }
      kinds *= 250;
    }
    std::vector<std::vector<int>> table(reference.size() + 1,
                                        std::vector<int>(candidate.size() + 1));
    for (std::size_t i = 1; i <= reference.size(); ++i) {
      for (std::size_t j = 1; j <= candidate.size(); ++j) {
        table[i][j] = reference[i - 1] == candidate[j - 1]
                          ? table[i - 1][j - 1] + 1
                          : std::max(table[i - 1][j], table[i][j - 1]);
      }
    }
    std::vector<char> wanted(reference.size());
    std::size_t i = reference.size();
    std::size_t j = candidate.size();
    while (i > 0 && j > 0) {
      if (reference[i - 1] == candidate[j - 1]) {
        wanted[--i] = 1;
        --j;
      } else if (table[i][j - 1] > table[i - 1][j]) {
        --j;
      } else {
        --i;
      }
    }
    lcs.set_reference(reference, kinds);
    CHECK(lcs.length(candidate) ==
          static_cast<std::size_t>(table[reference.size()][candidate.size()]));
    std::vector<char> found(reference.size());
    lcs.mark(candidate, found);
    CHECK(found == wanted);
  }
}

TEST_CASE("tokens are distinguished by all their bytes", "[metrics]") {
  std::vector<std::string> tokens;
  std::mt19937 random(3);
  for (std::size_t size = 1; size <= 40; ++size) {
    for (int i = 0; i < 20; ++i) {
      std::string token;
      while (token.size() < size) token += static_cast<char>(random() % 3);
      tokens.push_back(token);
      token[random() % size] = 'x';
      tokens.push_back(token);
    }
  }
  TokenIndex index;
  index.clear(1);
  CHECK(index.find("a") == TokenIndex::kNone);
  for (int round = 0; round < 3; ++round) {
    std::map<std::string, std::uint32_t> wanted;
    index.clear(tokens.size());
    for (const std::string& token : tokens) {
      CHECK(index.find(token) == (wanted.contains(token) ? wanted[token] : TokenIndex::kNone));
      wanted.emplace(token, static_cast<std::uint32_t>(wanted.size()));
      CHECK(index.add(token) == wanted[token]);
    }
    CHECK(index.size() == wanted.size());
  }
}

TEST_CASE("a sum is exact in any order of its terms", "[metrics]") {
  const auto sum = [](const std::vector<double>& terms) {
    ExactSum exact;
    for (const double term : terms) exact.add(term);
    return exact.round();
  };
  CHECK(sum({}) == 0.0);
  CHECK(sum({1e16, 1.0, -1e16}) == 1.0);
  CHECK(sum({1e300, 1.0, 1e-300, -1e300, -1.0}) == 1e-300);
  CHECK(sum({0.1, 0.2, 0.3, -0.6}) == Approx(2.7755575615628914e-17).epsilon(1e-15));
  CHECK(sum({5e-324, 5e-324, -5e-324}) == 5e-324);
  CHECK(sum({std::numeric_limits<double>::max(), -1.0}) == std::numeric_limits<double>::max());
  CHECK(sum({-0.5, -3.0, 7e9, -7e9}) == -3.5);
  // Halfway between two doubles is rounded to the even one, above halfway up.
  CHECK(sum({9007199254740992.0, 1.0}) == 9007199254740992.0);
  CHECK(sum({9007199254740992.0, 1.0, 1e-30}) == 9007199254740994.0);
  CHECK(sum({9007199254740994.0, 1.0}) == 9007199254740996.0);
  std::mt19937_64 random(4);
  std::vector<double> terms;
  for (int i = 0; i < 3000; ++i) {
    terms.push_back(std::ldexp(static_cast<double>(static_cast<std::int64_t>(random())),
                               static_cast<int>(random() % 300) - 150));
  }
  const double wanted = sum(terms);
  for (int round = 0; round < 5; ++round) {
    std::shuffle(terms.begin(), terms.end(), random);
    CHECK(sum(terms) == wanted);
    ExactSum halves[2];
    for (std::size_t i = 0; i < terms.size(); ++i) halves[i % 2].add(terms[i]);
    halves[0].merge(halves[1]);
    CHECK(halves[0].round() == wanted);
  }
}

TEST_CASE("edits of TER match a hand count", "[metrics]") {
  CHECK(ter_edits("a b c", "a b c") == 0);
  CHECK(ter_edits("a b c", "a x c") == 1);
  CHECK(ter_edits("a c", "a b c") == 1);
  CHECK(ter_edits("a b b c", "a b c") == 1);
  CHECK(ter_edits("c a b", "a b c") == 1);          // one shift of one word
  CHECK(ter_edits("d e a b c", "a b c d e") == 1);  // one shift of a block
  CHECK(ter_edits("", "a b") == 2);
  CHECK(ter_edits("a b", "") == 2);
  CHECK(ter_edits("A B", "a b") == 0);
}

TEST_CASE("normalizing TER splits references twice, as sacrebleu does", "[metrics]") {
  TercomOptions options;
  options.normalized = true;
  const Ter ter(options);
  const std::string_view references[] = {"a..5 b"};
  const TerScore score = ter.result(evaluate_segment(ter, "a..5 b", references));
  CHECK(score.ref_length == 5.0);  // tokens: a . . 5 b
  CHECK(score.num_edits == 2);     // tokens of the hypothesis: a . .5 b
}

TEST_CASE("TER is fast and finite on long repetitive lines", "[metrics]") {
  std::string hypothesis;
  std::string reference;
  for (int i = 0; i < 400; ++i) {
    hypothesis += i % 3 == 0 ? "a " : "b ";
    reference += i % 2 == 0 ? "b " : "a ";
  }
  CHECK(ter_edits(hypothesis, reference) > 0);
  CHECK(ter_edits("a", reference) == 399);
  CHECK(ter_edits(reference, "a") == 399);
}

TEST_CASE("stems follow Porter's rules and NLTK's extensions", "[metrics]") {
  const std::pair<const char*, const char*> cases[] = {{"", ""},
                                                       {"a", "a"},
                                                       {"us", "us"},
                                                       {"caresses", "caress"},
                                                       {"dies", "die"},
                                                       {"flies", "fli"},
                                                       {"skies", "sky"},
                                                       {"dying", "die"},
                                                       {"spied", "spi"},
                                                       {"died", "die"},
                                                       {"agreed", "agre"},
                                                       {"feed", "feed"},
                                                       {"hoping", "hope"},
                                                       {"hopping", "hop"},
                                                       {"falling", "fall"},
                                                       {"sized", "size"},
                                                       {"happy", "happi"},
                                                       {"enjoy", "enjoy"},
                                                       {"rational", "ration"},
                                                       {"geology", "geolog"},
                                                       {"radically", "radic"},
                                                       {"adoption", "adopt"},
                                                       {"controll", "control"},
                                                       {"yyyy", "yyyi"},
                                                       {"2000s", "2000"},
                                                       {"news", "news"}};
  for (const auto& [word, stem] : cases) {
    INFO(word);
    CHECK(porter_stem(word) == stem);
  }
  CHECK(porter_stem(std::string(100000, 'y') + "ing").size() > 99000);
}

TEST_CASE("lower-casing depends on context and may change the length", "[metrics]") {
  std::string lower;
  lower_case("ABC xyz 1", lower);
  CHECK(lower == "abc xyz 1");
  lower_case("\xCE\x9F\xCE\x94\xCE\x9F\xCE\xA3 \xCE\xA3\xCE\x91", lower);  // final and other sigma
  CHECK(lower == "\xCE\xBF\xCE\xB4\xCE\xBF\xCF\x82 \xCF\x83\xCE\xB1");
  lower_case("\xC4\xB0\xC4\xB0", lower);  // dotted capital I becomes i and a combining dot
  CHECK(lower == "i\xCC\x87i\xCC\x87");
}

TEST_CASE("invalid options are refused by name", "[metrics]") {
  const auto refuse = [](const BleuOptions& options, const std::string& wanted) {
    CHECK_THROWS_WITH(Bleu(options), petlab::testing::has_text(wanted));
  };
  BleuOptions options;
  options.tokenize = "14a";
  refuse(options, "unknown tokenizer \"14a\"; did you mean \"13a\"?");
  options = {};
  options.smooth_method = "flor";
  refuse(options, "unknown smoothing method \"flor\"; did you mean \"floor\"?");
  options = {};
  options.smooth_value = 0.5;
  refuse(options, "smooth-value is 0.5, but smooth-method exp takes none (floor and add-k do)");
  options.smooth_method = "add-k";
  options.smooth_value = std::numeric_limits<double>::quiet_NaN();
  refuse(options, "smooth-value is nan, must be a number of at least 0");
  options = {};
  options.max_ngram_order = 0;
  refuse(options, "max-ngram-order is 0, must be 1 to 64");
  options = {};
  options.tokenize = "spm";
  refuse(options, "tokenizer spm needs a SentencePiece model file (--spm-model FILE)");
  options.tokenize = "flores200";
  refuse(options,
         "tokenizer flores200 needs its SentencePiece model (--spm-model FILE); sacrebleu keeps it "
         "in ~/.sacrebleu/models/flores200sacrebleuspm");
  options.spm_model = "/nowhere/to/be/found.model";
  refuse(options, "/nowhere/to/be/found.model: does not exist, expected a SentencePiece model");
  options.tokenize = "spm";
  refuse(options, "/nowhere/to/be/found.model: does not exist, expected a SentencePiece model");
  const petlab::testing::TempDir folder;
  options.spm_model = folder.write("text.model", "no model at all").string();
  refuse(options, "text.model: is not a SentencePiece model (15 bytes)");
  options.tokenize = "13a";
  refuse(options, "tokenizer 13a takes no SentencePiece model");
  ChrfOptions chrf;
  chrf.char_order = 0;
  CHECK_THROWS_WITH(Chrf(chrf), "char-order is 0, must be 1 to 64");
  MemoryCorpus corpus({"a"}, {{"a"}});
  CHECK_THROWS_WITH(evaluate(corpus, Bleu(), 0), "threads is 0, must be at least 1");
}

TEST_CASE("systems are compared pairwise, and equal ones do not differ", "[metrics]") {
  std::vector<std::string> good;
  std::vector<std::string> bad;
  MemoryCorpus::Stream references;
  for (int i = 0; i < 60; ++i) {
    const std::string number = std::to_string(i * i);
    references.emplace_back("the cat number " + number + " sat on the mat");
    good.push_back("the cat number " + number + " sat on a mat");
    bad.push_back(i % 3 == 0 ? "no cat at all" : "a cat number " + number + " was on a mat");
  }
  const Chrf metric;
  MemoryCorpus good_corpus(good, {references});
  MemoryCorpus bad_corpus(bad, {references});
  const SystemStatistics better = collect_statistics(good_corpus, metric);
  const SystemStatistics worse = collect_statistics(bad_corpus, metric, 2);
  ResamplingOptions options;
  options.samples = 200;
  for (const auto test : {paired_bootstrap, paired_randomisation}) {
    const PairedResult result = test(metric, worse, better, options);
    CHECK_FALSE(result.identical);
    CHECK(result.score > result.baseline_score);
    CHECK(result.p_value == 1.0 / 201.0);
    ResamplingOptions many = options;
    many.threads = 3;
    CHECK(test(metric, worse, better, many).p_value == result.p_value);
    const PairedResult same = test(metric, better, better, options);
    CHECK(same.identical);
    CHECK_FALSE(same.p_value);
    SystemStatistics fewer = better;
    fewer.values.resize(fewer.values.size() - fewer.columns);
    CHECK_THROWS_WITH(test(metric, better, fewer, options),
                      "the baseline has 60 segments, the system has 59");
  }
  good_corpus.rewind();
  const BootstrapInterval interval = bootstrap_interval(metric, better, options);
  CHECK(interval.mean == Approx(metric.score(evaluate(good_corpus, metric).sums)).epsilon(0.02));
  CHECK(interval.half_width > 0.0);
}

TEST_CASE("ROUGE matches a hand calculation", "[metrics]") {
  const auto score = [](RougeType type, std::string_view prediction, std::string_view target) {
    const Rouge rouge({type, false});
    return rouge.result(evaluate_segment(rouge, prediction, std::span(&target, 1)));
  };
  const RougeScore one = score(RougeType::rouge1, "the the dog", "the dog ran off");
  CHECK(one.precision == Approx(2.0 / 3));
  CHECK(one.recall == Approx(2.0 / 4));
  CHECK(one.f == Approx(4.0 / 7));
  CHECK(score(RougeType::rouge2, "the dog", "a dog").f == 0.0);
  CHECK(score(RougeType::rougeL, "police kill the gunman", "police killed the gunman").f == 0.75);
  // Swapping sentences does not change rougeLsum but halves rougeL, which takes the text as a
  // whole.
  CHECK(score(RougeType::rougeLsum, "c d\na b", "a b\nc d").f == 1.0);
  CHECK(score(RougeType::rougeL, "c d\na b", "a b\nc d").f == 0.5);
  CHECK_THROWS_WITH(bootstrap_rouge({}),
                    "found no scores for the bootstrap, expected at least one");
}
