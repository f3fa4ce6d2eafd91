// `petlab-trainer init`: creates a backbone with random weights and a vocabulary built from the
// user's texts.
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>

#include "base/shallow_json.h"
#include "sweeps/backbone.h"
#include "trainer/backbones/backbone_kinds.h"
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
    throw Error(folder.string() + ": contains files, must be a new or empty folder");
  }
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw Error(folder.string() + ": cannot be created: " + failed.message());
}

/// The contents of the new folder.
struct NewBackbone {
  ordered_json config;
  std::vector<std::pair<std::string, std::string>> files;  // the tokenizer's files, by name
};

TokenizerFiles::File file_of(const NewBackbone& backbone, std::string_view name) {
  const auto found = std::find_if(backbone.files.begin(), backbone.files.end(),
                                  [&](const auto& file) { return file.first == name; });
  return {found->first, found->second};
}

// One function for each kind of vocabulary. It builds the vocabulary and fills the tokenizer's
// files.

std::unique_ptr<Tokenizer> fill_sentencepiece(NewBackbone& backbone, const InitOptions& options) {
  backbone.files = {
      {"spiece.model", train_sentencepiece(options.texts, options.vocabulary)},
      {"tokenizer_config.json", ordered_json{{"tokenizer_class", "T5Tokenizer"},
                                             {"extra_ids", 0},
                                             {"additional_special_tokens", ordered_json::array()},
                                             {"pad_token", "<pad>"},
                                             {"eos_token", "</s>"},
                                             {"unk_token", "<unk>"}}
                                        .dump(2) +
                                    "\n"}};
  return make_tokenizer({.config = file_of(backbone, "tokenizer_config.json"),
                         .spiece_model = file_of(backbone, "spiece.model")});
}

std::unique_ptr<Tokenizer> fill_wordpiece(NewBackbone& backbone, const InitOptions& options) {
  WordPieceOptions words;
  words.lower_case = words.strip_accents = !options.cased;
  backbone.files = {
      {"vocab.txt", train_wordpiece(options.texts, options.vocabulary, words)},
      {"tokenizer_config.json",
       ordered_json{{"tokenizer_class", "BertTokenizer"}, {"do_lower_case", !options.cased}}.dump(
           2) +
           "\n"}};
  return make_tokenizer({.vocab_txt = file_of(backbone, "vocab.txt"),
                         .config = file_of(backbone, "tokenizer_config.json")});
}

std::unique_ptr<Tokenizer> fill_byte_bpe(NewBackbone& backbone, const InitOptions& options) {
  const ByteBpeVocabulary vocabulary = train_byte_bpe(options.texts, options.vocabulary);
  backbone.files = {{"vocab.json", vocabulary.vocab_json},
                    {"merges.txt", vocabulary.merges_txt},
                    {"tokenizer_config.json",
                     ordered_json{{"tokenizer_class", "RobertaTokenizer"}}.dump(2) + "\n"}};
  return make_tokenizer({.vocab_json = file_of(backbone, "vocab.json"),
                         .merges = file_of(backbone, "merges.txt"),
                         .config = file_of(backbone, "tokenizer_config.json")});
}

std::unique_ptr<Tokenizer> fill_tokenizer(VocabularyKind kind, NewBackbone& backbone,
                                          const InitOptions& options) {
  switch (kind) {
    case VocabularyKind::sentencepiece:
      return fill_sentencepiece(backbone, options);
    case VocabularyKind::wordpiece:
      return fill_wordpiece(backbone, options);
    case VocabularyKind::byte_bpe:
      return fill_byte_bpe(backbone, options);
  }
  throw std::logic_error("a kind of vocabulary without a function");
}

const BackboneKind& kind_of(const ordered_json& config, const std::string& name) {
  const auto type = config.find("model_type");
  const bool is_text = type != config.end() && type->is_string();
  const BackboneKind* const kind = is_text ? find_backbone_kind(type->get<std::string>()) : nullptr;
  if (kind != nullptr) return *kind;
  throw Error(name + ": model_type: is " + (type == config.end() ? "missing" : type->dump()) +
              ", must be " + sweeps::known_model_types());
}

}  // namespace

int run_init(const InitOptions& options) {
  const std::string name = options.config.string();
  NewBackbone backbone;
  backbone.config = base::parse_shallow_ordered_json(text_of(options.config), name);
  if (!backbone.config.is_object())
    throw Error(name + ": is a JSON " + backbone.config.type_name() + ", expected an object");
  const BackboneKind& kind = kind_of(backbone.config, name);
  if (options.cased && kind.vocabulary != VocabularyKind::wordpiece) {
    throw std::invalid_argument("--cased is for BERT's vocabularies, and " + name + " is a " +
                                std::string(kind.model_type) + "'s, which are always cased");
  }
  backbone.config["vocab_size"] = options.vocabulary;
  for (const SpecialToken& token : kind.special_tokens) backbone.config[token.field] = token.id;
  // Refuses the configuration or the folder before building the vocabulary, which takes a while.
  kind.new_weights(backbone.config, name);
  require_new_folder(options.out);
  backbone.config["vocab_size"] = fill_tokenizer(kind.vocabulary, backbone, options)->vocab_size();
  const Backbone::Weights weights = kind.new_weights(backbone.config, name)(options.seed);
  std::vector<std::pair<std::string, TensorView>> tensors;
  std::int64_t count = 0;
  for (const auto& [weight, tensor] : weights) {
    tensors.emplace_back(weight, to_view(tensor));
    count += tensor.numel();
  }
  for (const auto& [file, text] : backbone.files) write_text(options.out / file, text);
  write_safetensors(options.out / "model.safetensors", tensors, {{"format", "pt"}});
  // Written last: a folder without config.json is not taken for a backbone.
  write_text(options.out / "config.json", backbone.config.dump(2) + "\n");
  std::cout << options.out.string() << ": " << kind.model_type << ", "
            << backbone.config["vocab_size"].get<std::int64_t>() << " pieces, " << count
            << " weights" << std::endl;
  return 0;
}

}  // namespace petlab::trainer
