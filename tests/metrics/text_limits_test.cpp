// The time, memory and scores of long lines.
#include <ctime>
#include <new>
#include <string>
#include <vector>

#include "metrics/error.h"
#include "metrics/rouge.h"
#include "metrics/ter.h"
#include "metrics/ter_edits.h"
#include "metrics/text_corpus.h"
#include "metrics/text_metric.h"
#include "metrics/text_tokenizers.h"
#include "tests/support/catch.h"

using namespace petlab::metrics;

namespace {

using Words = std::vector<std::uint32_t>;

// The processor time of this process, which other load on the machine does not change.
double processor_seconds() {
  return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

Words sequence(std::uint64_t size, std::uint64_t a, std::uint64_t b, std::uint64_t kinds) {
  Words words;
  for (std::uint64_t i = 0; i < size; ++i) {
    words.push_back(static_cast<std::uint32_t>((i * i * a + i * b) % kinds));
  }
  return words;
}

}  // namespace

TEST_CASE("the time for chrF++'s words of a long line is proportional to their number",
          "[metrics]") {
  constexpr std::size_t kWords = 400000;
  std::string line;
  for (std::size_t i = 0; i < kWords; ++i) line += i % 4 == 0 ? "(b " : i % 4 == 1 ? "c " : "a, ";
  std::vector<std::string_view> words = {"before"};
  const double start = processor_seconds();
  chrf_words(line, words);
  CHECK(processor_seconds() - start < 2);
  REQUIRE(words.size() == 1 + kWords + kWords * 3 / 4);
  CHECK(std::vector<std::string_view>(words.begin(), words.begin() + 9) ==
        std::vector<std::string_view>{"before", "(", "b", "c", "a", ",", "a", ",", "("});
  CHECK(words.back() == ",");
}

TEST_CASE("edits of TER match sacrebleu where the beam omits cells", "[metrics]") {
  struct Case {
    std::uint64_t hypothesis;
    std::uint64_t reference;
    std::uint64_t kinds;
    std::int64_t edits;  // from sacrebleu 2.6.0
  };
  const Case cases[] = {{3, 400, 11, 399},    {3, 400, 997, 399},   {400, 3, 11, 398},
                        {400, 3, 997, 399},   {7, 360, 11, 357},    {7, 360, 997, 358},
                        {120, 180, 11, 139},  {120, 180, 997, 177}, {180, 120, 11, 137},
                        {180, 120, 997, 177}, {200, 200, 11, 163},  {200, 200, 997, 198},
                        {40, 2100, 11, 2082}, {40, 2100, 997, 2097}};
  TerEdits edits;
  for (const Case& one : cases) {
    INFO(one.hypothesis << " words beside " << one.reference << " of " << one.kinds << " kinds");
    CHECK(edits.count(sequence(one.hypothesis, 3, 7, one.kinds),
                      sequence(one.reference, 5, 2, one.kinds)) == one.edits);
  }
}

TEST_CASE("TER of a line of 100,000 words needs memory only for its beam", "[metrics]") {
  Words reference;
  for (std::uint32_t i = 0; i < 100000; ++i) reference.push_back(i);
  Words hypothesis = reference;
  hypothesis[70000] = 200000;               // substituted
  std::swap(hypothesis[8], hypothesis[9]);  // shifted
  TerEdits edits;
  CHECK(edits.count(hypothesis, reference) == 2);
  CHECK(edits.count(Words(50000, 200000), reference) == 100000);
}

TEST_CASE("running out of memory is reported with the segment that was scored", "[metrics]") {
  class Hungry : public TextMetric {
   public:
    std::string name() const override { return "hungry"; }
    std::size_t statistics_size() const override { return 1; }
    std::unique_ptr<SegmentScorer> scorer() const override {
      class Scorer : public SegmentScorer {
        void score(const Segment& segment, std::span<double> statistics) override {
          if (segment.hypothesis == "large") throw std::bad_alloc();
          statistics[0] = 1;
        }
      };
      return std::make_unique<Scorer>();
    }
    double score(std::span<const double> statistics) const override { return statistics[0]; }
    Signature signature(const SignatureContext&) const override { return {}; }
  };
  MemoryCorpus corpus({"small", "large"}, {{"a", "b"}});
  CHECK_THROWS_WITH(evaluate(corpus, Hungry()),
                    "segment 2: not enough memory to compute hungry of its 5 bytes with 1 of "
                    "references; split it, or allow the process more memory");
  CHECK_THROWS_AS(evaluate(corpus, Hungry(), 2), InputError);
}
