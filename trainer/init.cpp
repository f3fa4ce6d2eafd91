// `petlab-trainer init`: a backbone of the user's own, with a vocabulary of the user's texts and
// random weights.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>

#include "base/shallow_json.h"
#include "trainer/backbones/random_weights.h"
#include "trainer/commands.h"
#include "trainer/compute/tensors.h"
#include "trainer/files/error.h"
#include "trainer/files/file_bytes.h"
#include "trainer/files/safetensors.h"
#include "trainer/tokenizers/tokenizer.h"
#include "trainer/tokenizers/train_vocabulary.h"

namespace petlab::trainer {
namespace {

using nlohmann::ordered_json;

std::string text_of(const std::filesystem::path& file) {
  const auto mapped = FileBytes::map(file);
  const auto bytes = mapped->bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void write_text(const std::filesystem::path& file, const std::string& text) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text));
  write_file_atomically(file, {&part, 1});
}

void require_new_folder(const std::filesystem::path& folder) {
  std::error_code unknown;
  if (std::filesystem::exists(folder, unknown) && !std::filesystem::is_empty(folder, unknown)) {
    throw Error(folder.string() + ": holds files, must be a new folder or an empty one");
  }
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw Error(folder.string() + ": cannot be made: " + failed.message());
}

}  // namespace

int run_init(const InitOptions& options) {
  const std::string name = options.config.string();
  ordered_json config = base::parse_shallow_ordered_json(text_of(options.config), name);
  if (!config.is_object())
    throw Error(name + ": is a JSON " + config.type_name() + ", wanted an object");
  const auto factor = config.find("initializer_factor");
  if (factor != config.end() && !(factor->is_number() && factor->get<double>() > 0)) {
    throw Error(name + ": initializer_factor: is " + factor->dump() + ", must be a number > 0");
  }
  // What else may be wrong with it is found before a vocabulary is made, which takes a while.
  config["vocab_size"] = options.vocabulary;
  parse_t5_config(config.dump(), name);
  require_new_folder(options.out);
  const std::string model = train_sentencepiece(options.texts, options.vocabulary);
  const std::string about = ordered_json{
      {"tokenizer_class", "T5Tokenizer"},
      {"extra_ids", 0},
      {"additional_special_tokens", ordered_json::array()},
      {"pad_token", "<pad>"},
      {"eos_token", "</s>"},
      {"unk_token", "<unk>"}}.dump(2);
  const auto tokenizer =
      make_tokenizer({.config = TokenizerFiles::File{"tokenizer_config.json", about},
                      .spiece_model = TokenizerFiles::File{"spiece.model", model}});
  config["vocab_size"] = tokenizer->vocab_size();
  const std::string written = config.dump(2);
  const T5Config shape = parse_t5_config(written, name);
  const Backbone::Weights weights =
      random_t5_weights(shape, factor == config.end() ? 1.0 : factor->get<double>(), options.seed);
  std::vector<std::pair<std::string, TensorView>> tensors;
  std::int64_t count = 0;
  for (const auto& [weight, tensor] : weights) {
    tensors.emplace_back(weight, to_view(tensor));
    count += tensor.numel();
  }
  write_text(options.out / "spiece.model", model);
  write_text(options.out / "tokenizer_config.json", about + "\n");
  write_safetensors(options.out / "model.safetensors", tensors, {{"format", "pt"}});
  // Last: what has no config.json is no backbone.
  write_text(options.out / "config.json", written + "\n");
  std::cout << options.out.string() << ": t5, " << tokenizer->vocab_size() << " pieces, " << count
            << " weights" << std::endl;
  return 0;
}

}  // namespace petlab::trainer
