#include "metrics/metric_table.h"

#include <stdexcept>
#include <vector>

#include "metrics/bleu.h"
#include "metrics/error.h"
#include "metrics/rouge.h"
#include "metrics/token_match.h"
#include "tests/support/catch.h"

namespace petlab::metrics {
namespace {

using Texts = std::vector<std::string>;

double score_of(std::string_view metric, const Texts& references, const Texts& generated) {
  return metric_named(metric).of_texts(references, generated).value();
}

double of_pair(const TextMetric& metric, std::string_view hypothesis,
               const std::vector<std::string_view>& references) {
  return metric.score(evaluate_segment(metric, hypothesis, references));
}

TEST_CASE("Every metric has exactly the function for its kind of input", "[metrics]") {
  for (const MetricRow& row : metric_table()) {
    INFO(row.name);
    CHECK((row.of_labels != nullptr) == (row.input == MetricInput::labels));
    CHECK((row.of_scores != nullptr) == (row.input == MetricInput::scores));
    CHECK((row.text_metric != nullptr) == (row.input == MetricInput::text));
    if (row.text_metric == nullptr) continue;
    CHECK_FALSE(row.of_texts({}, {}));
    CHECK_THROWS_WITH(row.of_texts(Texts{"a"}, {}),
                      "1 references and 0 texts: the numbers must be equal");
    CHECK_THROWS_AS(row.of_texts(Texts{"a"}, Texts{"\xff"}), InputError);
    const Texts texts{"The cat sat on the mat.", "A second one, longer than four words"};
    const double best = row.name == "bleu" || row.name == "chrf" ? 100 : row.higher_is_better;
    CHECK(row.of_texts(texts, texts).value() == Approx(best));
  }
}

TEST_CASE("Texts are scored as in files, with stemming for ROUGE", "[metrics]") {
  const Texts references{"the cat sat on the mat", "dogs were running home"};
  const Texts generated{"the cat sat on a mat", "a dog runs home"};
  MemoryCorpus corpus(generated, {{references[0], references[1]}});
  const Bleu bleu;
  CHECK(score_of("bleu", references, generated) == bleu.score(evaluate(corpus, bleu).sums));
  corpus.rewind();
  const Rouge rouge({.type = RougeType::rouge1, .stem = true});
  const double stemmed = rouge.score(evaluate(corpus, rouge).sums);
  CHECK(score_of("rouge1", references, generated) == stemmed);
  corpus.rewind();
  const Rouge plain({.type = RougeType::rouge1, .stem = false});
  CHECK(stemmed > plain.score(evaluate(corpus, plain).sums));
}

TEST_CASE("Exact match ignores white space around tokens", "[metrics]") {
  CHECK(score_of("exact-match", {"K AE T", "a b", "x", ""}, {" K  AE\tT", "a B", "x y", " "}) ==
        0.5);
  CHECK(of_pair(ExactMatch(), "a b", {"a", "a b"}) == 1);
  CHECK(of_pair(ExactMatch(), "a b", {"a", "ab"}) == 0);
}

TEST_CASE("A token error rate is the edits of all texts divided by their tokens", "[metrics]") {
  // One substitution, then a deletion and an insertion, then three insertions.
  CHECK(score_of("token-error-rate", {"a b c d", "a b c", "x"}, {"a b x d", "b c d", "x y y z"}) ==
        Approx((1.0 + 2.0 + 3.0) / 8));
  CHECK(score_of("token-error-rate", {"a b"}, {""}) == 1);
  CHECK(score_of("token-error-rate", {"a"}, {"b c d"}) == 3);
  CHECK(score_of("token-error-rate", {"kitten"}, {"kitten"}) == 0);
  CHECK(score_of("token-error-rate", {"k i t t e n"}, {"s i t t i n g"}) == 0.5);
  CHECK(score_of("token-error-rate", {""}, {""}) == 0);
  CHECK(score_of("token-error-rate", {" "}, {"a b"}) == 1);
  // The nearest reference counts, or the first of equally near ones.
  CHECK(of_pair(TokenErrorRate(), "a b c", {"x y z", "a b c d"}) == 0.25);
  CHECK(of_pair(TokenErrorRate(), "a b", {"a", "a b c"}) == 1);
  CHECK(of_pair(TokenErrorRate(), "a b", {"a b c", "a"}) == Approx(1.0 / 3));
  CHECK(of_pair(TokenErrorRate(), "a b", {"x y z", "a b c", "a", "c b"}) == Approx(1.0 / 3));
  CHECK(of_pair(TokenErrorRate(), "a b", {"x y z w", "a"}) == 1);
  CHECK_FALSE(metric_named("token-error-rate").higher_is_better);
}

}  // namespace
}  // namespace petlab::metrics
