// Texts that a T5 writes, against Hugging Face's generate.
#include "trainer/backbones/generation.h"

#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "tests/trainer/core/golden_tensors.h"

using namespace petlab;
using namespace petlab::trainer;
using petlab::testing::read_json;

namespace {

PackedSequences packed_inputs(const std::vector<std::vector<std::int64_t>>& inputs) {
  PackedSequences packed;
  for (const std::vector<std::int64_t>& ids : inputs) {
    packed.ids.insert(packed.ids.end(), ids.begin(), ids.end());
    packed.offsets.push_back(static_cast<std::int64_t>(packed.ids.size()));
    packed.examples.push_back(static_cast<std::int64_t>(packed.examples.size()));
  }
  packed.trial_sequences = {0, packed.sequences()};
  return packed;
}

/// Hugging Face counts the start token in its lengths.
GenerationOptions options_of(const nlohmann::json& told, std::int64_t max_length) {
  GenerationOptions options;
  options.max_tokens = max_length - 1;
  options.beams = told.value("num_beams", 1);
  options.early_stopping = told.value("early_stopping", false);
  options.length_penalty = told.value("length_penalty", 1.0);
  options.min_tokens = told.value("min_length", 1) - 1;
  options.no_repeat_ngrams = told.value("no_repeat_ngram_size", 0);
  return options;
}

void check_text(const GeneratedText& found, const nlohmann::json& wanted, const char* score,
                double tolerance) {
  std::vector<std::int64_t> ids = found.ids;
  ids.insert(ids.begin(), 0);
  CHECK((ids == wanted.at("ids").get<std::vector<std::int64_t>>()));
  testing::check_close("score", at::scalar_tensor(found.score, at::kDouble),
                       at::scalar_tensor(wanted.at(score).get<double>(), at::kDouble), tolerance,
                       0);
}

/// Returns how many outputs were compared.
int check_generation(const std::filesystem::path& folder) {
  const T5 model = T5::load(folder);
  const nlohmann::json golden = read_json(folder / "generation.json");
  const auto inputs = golden.at("input_ids").get<std::vector<std::vector<std::int64_t>>>();
  const double tolerance = golden.at("score_tolerance");
  int compared = 0;
  for (const auto& [name, wanted] : golden.at("cases").items()) {
    const GenerationOptions options = options_of(wanted.at("options"), golden.at("max_length"));
    const auto check = [&](const std::vector<GeneratedText>& found, std::size_t input) {
      INFO(name << ", input " << input);
      const auto& told = wanted.at("outputs").at(input);
      if (options.beams == 1) {
        REQUIRE(found.size() == 1);
        check_text(found.front(), told, "sum_logprob", tolerance);
      } else {
        REQUIRE(found.size() == told.at("nbest").size());
        for (std::size_t b = 0; b < found.size(); ++b) {
          check_text(found[b], told.at("nbest").at(b), "score", tolerance);
        }
      }
      ++compared;
    };
    const auto together = generate(model, packed_inputs(inputs), Hooks(), options);
    REQUIRE(together.size() == inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) check(together[i], i);
    // Whatever stands beside an input, its texts are the same.
    check(generate(model, packed_inputs({inputs[2]}), Hooks(), options).front(), 2);
  }
  return compared;
}

}  // namespace

TEST_CASE("every generation of the golden models is Hugging Face's", "[trainer][golden][wide]") {
  const auto models = testing::golden("models");
  if (!models) return;
  testing::worst_difference() = {};
  int ran = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*models)) {
    if (!std::filesystem::exists(entry.path() / "generation.json")) continue;
    INFO(entry.path().filename().string());
    ran += check_generation(entry.path());
  }
  testing::golden_ran("models/generation", ran);
  testing::print_worst_difference("models/generation");
}
