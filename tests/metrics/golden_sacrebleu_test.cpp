#include "metrics/bleu.h"
#include "metrics/chrf.h"
#include "metrics/ter.h"
#include "metrics/text_tokenizers.h"
#include "tests/metrics/golden_text.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

using namespace petlab::metrics;
using namespace petlab::testing;
using nlohmann::json;

namespace {

constexpr double kSacrebleuTolerance = 1e-9;

BleuOptions bleu_options(const json& given) {
  BleuOptions options;
  options.tokenize = given.at("tokenize");
  options.lowercase = given.at("lowercase");
  options.smooth_method = given.at("smooth_method");
  if (!given.at("smooth_value").is_null()) options.smooth_value = given.at("smooth_value");
  options.max_ngram_order = given.at("max_ngram_order");
  options.effective_order = given.at("effective_order");
  return options;
}

void check_bleu(const BleuScore& found, const json& wanted) {
  CHECK(found.counts == wanted.at("counts").get<std::vector<double>>());
  CHECK(found.totals == wanted.at("totals").get<std::vector<double>>());
  CHECK(found.sys_len == wanted.at("sys_len"));
  CHECK(found.ref_len == wanted.at("ref_len"));
  CHECK(near(found.bp, wanted.at("bp"), kSacrebleuTolerance));
  CHECK(near(found.score, wanted.at("score"), kSacrebleuTolerance));
  const auto precisions = wanted.at("precisions").get<std::vector<double>>();
  REQUIRE(found.precisions.size() == precisions.size());
  for (std::size_t n = 0; n < precisions.size(); ++n) {
    CHECK(near(found.precisions[n], precisions[n], kSacrebleuTolerance));
  }
}

void check_signature(const TextMetric& metric, const CorpusStatistics& corpus, const json& wanted) {
  SignatureContext context;
  context.references = corpus.references;
  CHECK(metric.signature(context).format() == wanted.at("signature").get<std::string>());
  CHECK(metric.signature(context).format_short() ==
        wanted.at("signature_short").get<std::string>());
}

void check_corpus(SegmentSource& corpus, const json& wanted) {
  const std::string kind = wanted.at("metric");
  if (kind == "bleu") {
    const Bleu metric(bleu_options(wanted));
    const CorpusStatistics found = evaluate(corpus, metric);
    check_bleu(metric.result(found.sums), wanted);
    check_signature(metric, found, wanted);
  } else if (kind == "chrf") {
    ChrfOptions options;
    options.char_order = wanted.at("char_order");
    options.word_order = wanted.at("word_order");
    options.beta = wanted.at("beta");
    options.lowercase = wanted.at("lowercase");
    options.whitespace = wanted.at("whitespace");
    options.eps_smoothing = wanted.at("eps_smoothing");
    const Chrf metric(options);
    const CorpusStatistics found = evaluate(corpus, metric);
    CHECK(metric.name() == wanted.at("name").get<std::string>());
    CHECK(found.sums == wanted.at("hyp_ref_match_per_order").get<std::vector<double>>());
    CHECK(near(metric.score(found.sums), wanted.at("score"), kSacrebleuTolerance));
    check_signature(metric, found, wanted);
  } else {
    REQUIRE(kind == "ter");
    TercomOptions options;
    options.normalized = wanted.at("normalized");
    options.no_punct = wanted.at("no_punct");
    options.asian_support = wanted.at("asian_support");
    options.case_sensitive = wanted.at("case_sensitive");
    const Ter metric(options);
    const CorpusStatistics found = evaluate(corpus, metric);
    const TerScore score = metric.result(found.sums);
    CHECK(score.num_edits == wanted.at("num_edits"));
    CHECK(near(score.ref_length, wanted.at("ref_length"), kSacrebleuTolerance));
    CHECK(near(score.score, wanted.at("score"), kSacrebleuTolerance));
    check_signature(metric, found, wanted);
  }
}

std::vector<std::string> strings(const std::vector<std::string_view>& views) {
  return {views.begin(), views.end()};
}

}  // namespace

TEST_CASE("corpus scores match sacrebleu", "[metrics][golden]") {
  const auto folder = golden("metrics");
  for_each_case("bleu_corpus", [&](const json& wanted) {
    INFO(wanted.dump());
    MemoryCorpus corpus = golden_corpus(*folder, wanted.at("corpus"));
    check_corpus(corpus, wanted);
  });
}

TEST_CASE("tiny corpora that test one rule each match sacrebleu", "[metrics][golden]") {
  for_each_case("bleu_tiny", [](const json& row) {
    MemoryCorpus corpus = corpus_of(row.at("hyps"), row.at("refs"));
    for (const json& wanted : row.at("cases")) {
      INFO(row.at("name") << " " << wanted.dump());
      corpus.rewind();
      check_corpus(corpus, wanted);
    }
  });
}

TEST_CASE("sentence scores match sacrebleu", "[metrics][golden]") {
  const Chrf chrf;
  ChrfOptions with_words;
  with_words.word_order = 2;
  const Chrf chrf_words(with_words);
  const Ter ter;
  for_each_case("bleu_sentences", [&](const json& row) {
    MemoryCorpus corpus({row.at("hyp").get<std::string>()}, streams_of(row.at("refs")));
    const auto sums = [&corpus](const TextMetric& metric) {
      corpus.rewind();
      return evaluate(corpus, metric).sums;
    };
    for (const auto& [key, wanted] : row.at("bleu").items()) {
      // The key is like "13a|exp|eff=yes", with an optional "lc" or "order2".
      INFO(row.at("id") << " " << key);
      std::vector<std::string> parts;
      std::istringstream in(key);
      for (std::string part; std::getline(in, part, '|');) parts.push_back(part);
      BleuOptions options;
      options.tokenize = parts.at(0);
      options.smooth_method = parts.at(1);
      options.effective_order = parts.at(2) == "eff=yes";
      for (std::size_t i = 3; i < parts.size(); ++i) {
        if (parts[i] == "lc") {
          options.lowercase = true;
        } else {
          REQUIRE(parts[i].starts_with("order"));
          options.max_ngram_order = std::stoi(parts[i].substr(5));
        }
      }
      const Bleu metric(options);
      check_bleu(metric.result(sums(metric)), wanted);
    }
    INFO(row.at("id"));
    CHECK(near(chrf.score(sums(chrf)), row.at("chrf"), kSacrebleuTolerance));
    CHECK(near(chrf_words.score(sums(chrf_words)), row.at("chrf++"), kSacrebleuTolerance));
    const TerScore score = ter.result(sums(ter));
    CHECK(near(score.score, row.at("ter").at("score"), kSacrebleuTolerance));
    CHECK(score.num_edits == row.at("ter").at("num_edits"));
    CHECK(near(score.ref_length, row.at("ter").at("ref_length"), kSacrebleuTolerance));
  });
}

TEST_CASE("tokenizers match sacrebleu's", "[metrics][golden]") {
  std::map<std::string, std::shared_ptr<const TextTokenizer>> tokenizers;
  for (const std::string name : {"13a", "none", "char", "intl", "zh"}) {
    tokenizers[name] = make_text_tokenizer(name, false);
    tokenizers[name + "_lc"] = make_text_tokenizer(name, true);
  }
  tokenizers["ter"] = make_tercom_tokenizer({});
  TercomOptions normalized;
  normalized.normalized = true;
  tokenizers["ter_normalized"] = make_tercom_tokenizer(normalized);
  for_each_case("tokenize", [&](const json& row) {
    const std::string text = row.at("text");
    for (const auto& [key, wanted] : row.items()) {
      if (key == "text") continue;
      INFO(key << " of " << json(text));
      const auto tokens = wanted.get<std::vector<std::string>>();
      if (key == "chrf++_words") {
        std::vector<std::string_view> words;
        chrf_words(text, words);
        CHECK(strings(words) == tokens);
        continue;
      }
      REQUIRE(tokenizers.contains(key));
      Tokens found;
      tokenizers.at(key)->tokenize(text, found);
      CHECK(strings(found.tokens) == tokens);
    }
  });
}

TEST_CASE("SentencePiece pieces match SentencePiece's encoder", "[metrics][golden][wide]") {
  const auto folder = golden("metrics");
  if (!folder) return;
  std::size_t cases = 0;
  for (const auto& model : golden_files(*folder / "corpora", "spm", ".model")) {
    const auto tokenizer = make_text_tokenizer("spm", false, model.string());
    for (const std::string extension : {".hyp", ".ref"}) {
      for (const auto& encoded : golden_files(*folder / "corpora", "spm_", extension)) {
        const std::string plain = "noisy_" + encoded.filename().string().substr(4);
        LineReader texts((*folder / "corpora" / plain).string());
        LineReader pieces(encoded.string());
        Tokens found;
        while (const auto text = texts.next()) {
          const auto wanted = pieces.next();
          REQUIRE(wanted);
          tokenizer->tokenize(*text, found);
          std::string joined;
          for (const auto token : found.tokens) {
            joined.append(joined.empty() ? "" : " ").append(token);
          }
          REQUIRE(joined == *wanted);
          ++cases;
        }
        CHECK_FALSE(pieces.next());
      }
    }
  }
  golden_ran("metrics/corpora spm", static_cast<std::int64_t>(cases));
}
