#include "metrics/storage.h"

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "metrics/published_backbones.h"
#include "tests/metrics/golden_json.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/storage_formula.h"

using namespace petlab::metrics;
using petlab::testing::formula_of;
using petlab::testing::read_json;

namespace {

ModuleStorage shape(const std::string& kind, std::int64_t size, bool share, MaskKind mask,
                    double k = 0.5, std::int64_t tasks = 1) {
  return {formula_of(kind), 768, 12, size, share, mask, k, tasks};
}

// Reads a case of bls_cases.json.
ModuleStorage module_of(const nlohmann::json& row) {
  ModuleStorage module;
  module.formula = formula_of(row.at("module").get<std::string>());
  REQUIRE(module.formula != nullptr);
  module.size = row.at(module.formula->sizes.front().name);
  module.d_model = row.at("d");
  module.layers = row.at("L");
  const std::string variant = row.at("variant");
  module.share = variant == "propetl" || variant == "only_share";
  module.mask = variant == "propetl" || variant == "only_mask" ? MaskKind::learned : MaskKind::none;
  if (row.at("k").is_number()) module.sparsity_ratio = row.at("k");
  if (row.at("T").get<std::int64_t>() > 0) module.tasks = row.at("T");
  return module;
}

// Reads an integer or a fraction "a/b".
long double fraction(const nlohmann::json& value) {
  if (value.is_number()) return static_cast<long double>(value.get<std::int64_t>());
  const std::string text = value;
  const std::size_t bar = text.find('/');
  return static_cast<long double>(std::stoll(text.substr(0, bar))) /
         static_cast<long double>(std::stoll(text.substr(bar + 1)));
}

}  // namespace

TEST_CASE("storage bits match exact fractions", "[metrics][golden][wide]") {
  const auto folder = petlab::testing::golden("petl");
  if (!folder) return;
  const auto file = read_json(*folder / "bls_cases.json");
  for (const auto& [name, backbone] : file.at("backbones").items()) {
    const PublishedBackbone* row = find_published_backbone(name);
    REQUIRE(row != nullptr);
    CHECK(row->d_model == backbone.at("d").get<std::int64_t>());
    CHECK(row->layers() == backbone.at("L").get<std::int64_t>());
    CHECK(row->parameters == backbone.at("parameters").get<std::int64_t>());
  }
  int ran = 0;
  for (const auto& row : file.at("cases")) {
    INFO(row.at("table").get<std::string>() << " " << row.at("setting").get<std::string>());
    const ModuleStorage module = module_of(row);
    const auto exact = static_cast<double>(fraction(row.at("bits")));
    // k is a decimal fraction, which a double represents to 1e-16.
    CHECK(bls_bits(module) == Approx(exact).epsilon(row.at("bits").is_number() ? 0 : 1e-15));
    if (row.contains("bits_counted_from_masks")) {
      CHECK(stored_bits(module) == row.at("bits_counted_from_masks").get<std::int64_t>());
    } else {
      CHECK(static_cast<double>(stored_bits(module)) == exact);
    }
    const std::int64_t parameters =
        find_published_backbone(row.at("backbone").get<std::string>())->parameters;
    const std::int64_t tasks = row.at("percent_is") == "per task" ? 8 : 1;
    CHECK(bls_percent(bls_bits(module), parameters, tasks) ==
          Approx(row.at("percent").get<double>()).epsilon(1e-14));
    ran++;
  }
  petlab::testing::golden_ran("petl/bls_cases", ran);
}

TEST_CASE("the number of zeros is truncated in double precision, as in the reference",
          "[metrics]") {
  CHECK(zeros_in_mask(0.9, 10) == 0);
  CHECK(zeros_in_mask(0.5, 49152) == 24576);
  CHECK(zeros_in_mask(0.3, 11520) == 8063);
}

TEST_CASE("the number of zeros matches the reference where rounding decides", "[metrics][golden]") {
  const auto folder = petlab::testing::golden("petl");
  if (!folder) return;
  int ran = 0;
  const auto file = read_json(*folder / "mask_operator" / "delicate_counts.json");
  for (const auto& row : file.at("pairs")) {
    CHECK(zeros_in_mask(row.at(1), row.at(0)) == row.at(2).get<std::int64_t>());
    ran++;
  }
  petlab::testing::golden_ran("petl/delicate_counts", ran);
}

TEST_CASE("each formula of the paper matches a hand calculation for one layer's module",
          "[metrics]") {
  const double adapter = 2 * 64 * 768;
  const double biases = 64 + 768;
  CHECK(bls_bits(shape("adapter", 64, false, MaskKind::none)) == 32 * (adapter + biases) * 12);
  CHECK(bls_bits(shape("adapter", 64, true, MaskKind::none)) == 32 * (adapter + biases));
  CHECK(bls_bits(shape("adapter", 64, true, MaskKind::learned)) ==
        32 * (adapter + biases) + adapter * 12);
  CHECK(bls_bits(shape("adapter", 64, true, MaskKind::random)) ==
        32 * (adapter + biases) + adapter * 12);
  CHECK(bls_bits(shape("adapter", 64, true, MaskKind::learned, 0.3, 8)) ==
        32 * (adapter + biases) + adapter * (12 + 8));
  CHECK(bls_bits(shape("adapter", 64, false, MaskKind::learned, 0.25)) ==
        32 * (adapter / 4 + biases) * 12);
  // Tasks share modules without masks, so more tasks add nothing.
  CHECK(bls_bits(shape("adapter", 64, false, MaskKind::none, 1, 8)) ==
        bls_bits(shape("adapter", 64, false, MaskKind::none)));
  const double lora = 4 * 32 * 768;
  CHECK(bls_bits(shape("lora", 32, true, MaskKind::learned)) == 32 * lora + lora * 12);
  const double prefix = 2 * 64 * 768;
  CHECK(bls_bits(shape("prefix", 64, false, MaskKind::learned)) == 32 * prefix / 2 * 12);

  const StorageBits parts = bls_parts(shape("adapter", 64, true, MaskKind::learned));
  CHECK(parts.values == 32 * (adapter + biases));
  CHECK(parts.masks == adapter * 12);
}

TEST_CASE("a formula is printed as in the paper", "[metrics]") {
  const auto formula = [](const char* kind, bool share, MaskKind mask, std::int64_t tasks = 1) {
    return bls_formula(shape(kind, 4, share, mask, 0.5, tasks));
  };
  CHECK(formula("adapter", false, MaskKind::none) == "32·(2·bn·d + bn + d)·L");
  CHECK(formula("adapter", true, MaskKind::none) == "32·(2·bn·d + bn + d)");
  CHECK(formula("adapter", true, MaskKind::learned) == "32·(2·bn·d + bn + d) + 2·bn·d·L");
  CHECK(formula("lora", true, MaskKind::random, 8) == "32·4·r·d + 4·r·d·(L + T)");
  CHECK(formula("prefix", false, MaskKind::learned) == "32·2·k·l·d·L");
}

TEST_CASE("storage without a formula is refused", "[metrics]") {
  ModuleStorage module = shape("adapter", 0, false, MaskKind::none);
  CHECK_THROWS_WITH(bls_bits(module), "module.bottleneck is 0, must be > 0");
  module.size = 8;
  module.layers = -1;
  CHECK_THROWS_WITH(stored_bits(module), "layers is -1, must be > 0");
  module.layers = 12;
  module.mask = MaskKind::learned;
  module.sparsity_ratio = 1.5;
  CHECK_THROWS_WITH(bls_bits(module), "sparsity_ratio is 1.5, must be in (0, 1]");
  module.sparsity_ratio = std::nan("");
  CHECK_THROWS_WITH(bls_bits(module), "sparsity_ratio is nan, must be in (0, 1]");
  module.sparsity_ratio = 0.5;
  module.tasks = 3;
  CHECK_THROWS_WITH(bls_bits(module),
                    "there is no storage formula for masked, unshared modules with 3 tasks: share "
                    "is false, must be true with a mask and several tasks");
  CHECK_THROWS_WITH(bls_percent(1, 0), "backbone_parameters is 0, must be > 0");
}

namespace {

/// The hypernetwork of table 2, on T5-base.
ModuleStorage hyperformer() {
  ModuleStorage module{formula_of("hyperformer++"), 768, 24, 24};
  module.tasks = 8;
  module.other_sizes = {64, 128, 64};
  return module;
}

}  // namespace

TEST_CASE("Hyperformer++ has the published number of parameters", "[metrics]") {
  CHECK(trained_parameters(hyperformer()) == 5'163'440);
  CHECK(bls_bits(hyperformer()) == 32 * 5'163'440.0);
  CHECK(stored_bits(hyperformer()) == 32 * 5'163'440);
  CHECK(bls_parts(hyperformer()).masks == 0);
  const double percent = parameters_percent(trained_parameters(hyperformer()), 222'903'552, 8);
  CHECK(std::lround(percent * 100) == 29);
  CHECK(bls_percent(bls_bits(hyperformer()), 222'903'552, 8) == percent);
}

TEST_CASE("a hypernetwork's storage matches a hand calculation", "[metrics]") {
  // One layer in each stack, d 5, bn 2, T 3, E 4, H 6, P 7.
  ModuleStorage module{formula_of("hyperformer++"), 5, 2, 2};
  module.tasks = 3;
  module.other_sizes = {4, 6, 7};
  const std::int64_t embeddings = 3 * 4 + 2 * (1 * 4 + 2 * 4);
  const std::int64_t mlp = (12 * 6 + 6) + (6 * 7 + 7) + 2 * 7;
  const std::int64_t down = (7 * 10 + 10) + (7 * 2 + 2);
  const std::int64_t up = (7 * 10 + 10) + (7 * 5 + 5);
  const std::int64_t norm = 2 * (7 * 5 + 5);
  CHECK(trained_parameters(module) == embeddings + 2 * (mlp + down + up + norm));
  CHECK(bls_formula(module) ==
        "32·(T·E + L·E + 4·E + 6·E·H + 2·H + 2·H·P + 6·P + 4·P·bn·d + 2·P·bn + 6·P·d + 4·bn·d + "
        "2·bn + 6·d)");
  // Each additional layer or task has one more embedding.
  ModuleStorage more = module;
  more.layers = 3;
  CHECK(trained_parameters(more) == trained_parameters(module) + 4);
  more.tasks = 5;
  CHECK(trained_parameters(more) == trained_parameters(module) + 3 * 4);

  module.share = true;
  CHECK_THROWS_WITH(bls_bits(module),
                    "hyperformer++ is neither shared nor masked: share is true, mask is none");
  module.share = false;
  module.mask = MaskKind::random;
  CHECK_THROWS_WITH(bls_bits(module),
                    "hyperformer++ is neither shared nor masked: share is false, mask is random");
  module.mask = MaskKind::none;
  module.other_sizes[1] = -1;
  CHECK_THROWS_WITH(stored_bits(module), "module.hyper_hidden is -1, must be >= 0");
}

TEST_CASE("Hyperformer++ has its authors' number of parameters", "[metrics][golden][wide]") {
  const auto folder = petlab::testing::golden("petl");
  if (!folder) return;
  const auto file = read_json(*folder / "hyperformer_t5" / "case.json");
  CHECK(trained_parameters(hyperformer()) ==
        file.at("real_size").at("parameters").get<std::int64_t>());
  const auto& method = file.at("method");
  const auto backbone = read_json(*folder / "settings.json").at("backbone");
  ModuleStorage tiny{formula_of("hyperformer++"), backbone.at("hidden"),
                     2 * backbone.at("layers").get<std::int64_t>(), method.at("bn")};
  tiny.tasks = method.at("tasks");
  tiny.other_sizes = {method.at("task_embedding"), method.at("mlp_hidden"), method.at("projected")};
  CHECK(stored_bits(tiny) == file.at("bls").at("bits").get<std::int64_t>());
}

TEST_CASE("a T5 with wide attention has its width in the formula", "[metrics]") {
  ModuleStorage module = shape("lora", 4, true, MaskKind::learned);
  module.attention_width = 1024;
  CHECK(bls_formula(module) == "32·(2·r·d + 2·r·w) + (2·r·d + 2·r·w)·L");
  CHECK(module_size(module).weights == 2 * 4 * (768 + 1024));
  module.share = false;
  CHECK(bls_formula(module) == "32·(2·k·r·d + 2·k·r·w)·L");
}
