// petlab-trainer-check: reads backbones and data as petlab-trainer does, without training anything
// (docs/reference/worker-protocol.md). It needs no LibTorch.
#include <fmt/format.h>

#include <exception>
#include <functional>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/shallow_json.h"
#include "base/shown.h"
#include "base/standard_output.h"
#include "protocol/events.h"
#include "sweeps/backbone.h"
#include "sweeps/task.h"
#include "trainer/backbones/encoder_config.h"
#include "trainer/backbones/t5_config.h"
#include "trainer/data/load_data.h"
#include "trainer/tokenizers/tokenizer.h"

namespace {

using namespace petlab;

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
      if (sweeps::read_backbone_shape(path).decoder_layers > 0) {
        trainer::read_t5_checkpoint(path);
      } else {
        trainer::load_encoder_weights(path, trainer::read_encoder_config(path));
      }
      trainer::load_tokenizer(path);
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
