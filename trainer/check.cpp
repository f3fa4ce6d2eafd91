// petlab-trainer-check: reads backbones and data as petlab-trainer does, without training anything
// (docs/reference/worker-protocol.md). It needs no LibTorch.
#include <fmt/format.h>

#include <array>
#include <exception>
#include <functional>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/shallow_json.h"
#include "base/shown.h"
#include "base/standard_output.h"
#include "protocol/events.h"
#include "sweeps/backbone.h"
#include "sweeps/task.h"
#include "trainer/backbones/encoder_config.h"
#include "trainer/backbones/modernbert_config.h"
#include "trainer/backbones/t5_config.h"
#include "trainer/data/load_data.h"
#include "trainer/data/token_rows.h"
#include "trainer/tokenizers/tokenizer.h"

namespace {

using namespace petlab;

void check_encoder(const std::filesystem::path& folder) {
  trainer::load_encoder_weights(folder, trainer::read_encoder_config(folder));
}

void check_modernbert(const std::filesystem::path& folder) {
  trainer::load_modernbert_weights(folder, trainer::read_modernbert_config(folder));
}

struct CheckedKind {
  std::string_view model_type;
  void (*check)(const std::filesystem::path& folder);
};
constexpr std::array kCheckedKinds{
    CheckedKind{"bert", check_encoder}, CheckedKind{"roberta", check_encoder},
    CheckedKind{"t5", [](const std::filesystem::path& of) { trainer::read_t5_checkpoint(of); }},
    CheckedKind{"modernbert", check_modernbert}};

const CheckedKind& checked_kind(std::string_view model_type) {
  for (const CheckedKind& kind : kCheckedKinds) {
    if (kind.model_type == model_type) return kind;
  }
  throw std::logic_error(fmt::format("model_type {} has a shape, but no check", model_type));
}

// Runs `look` and prints the error that it throws, if any.
void report(const std::function<void()>& look) {
  try {
    look();
  } catch (const std::exception& error) {
    std::cout << nlohmann::json{{"problem", protocol::bounded_reason(error.what())}}.dump() << "\n";
  }
}

int check(const nlohmann::json& request) {
  if (request.at("v") != 1) {
    throw std::invalid_argument(
        fmt::format("the request has version {}, must be 1", request.at("v").dump()));
  }
  for (const auto& folder : request.at("backbones")) {
    report([&] {
      const std::filesystem::path path = folder.get<std::string>();
      const sweeps::BackboneShape shape = sweeps::read_backbone_shape(path);
      checked_kind(shape.model_type).check(path);
      trainer::require_rows(*trainer::load_tokenizer(path), shape, path);
    });
  }
  const auto folders = request.at("data_folders").get<std::vector<std::string>>();
  const std::vector<std::filesystem::path> data_folders(folders.begin(), folders.end());
  for (const auto& declaration : request.at("tasks")) {
    report([&] {
      const sweeps::TaskDeclaration task = sweeps::task_from_json(declaration);
      trainer::load_task_data(task, sweeps::find_task_files(task, data_folders), {});
    });
  }
  return 0;
}

}  // namespace

int main() {
  base::StandardOutput output;
  int code = 1;
  try {
    const std::string text(std::istreambuf_iterator<char>(std::cin), {});
    code = check(base::parse_shallow_json(text, "the request"));
  } catch (const std::exception& error) {
    std::cerr << "petlab-trainer-check: " << petlab::base::printable_message(error.what()) << "\n";
  }
  return output.end("petlab-trainer-check", code);
}
