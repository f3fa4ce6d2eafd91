// `petlab-trainer init`: creates a backbone with random weights and a vocabulary built from the
// user's texts.
#include <algorithm>
#include <array>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>

#include "base/shallow_json.h"
#include "trainer/backbones/modernbert.h"
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
  Backbone::Weights weights;
};

/// Returns the field, or `otherwise`, Hugging Face's default, if it is missing. Throws Error unless
/// it is > 0.
double positive_number(const ordered_json& config, const std::string& name, const char* field,
                       double otherwise) {
  const auto found = config.find(field);
  if (found == config.end()) return otherwise;
  if (!found->is_number() || !(found->get<double>() > 0)) {
    throw Error(name + ": " + field + ": is " + found->dump() + ", must be a number > 0");
  }
  return found->get<double>();
}

TokenizerFiles::File file_of(const NewBackbone& backbone, std::string_view name) {
  const auto found = std::find_if(backbone.files.begin(), backbone.files.end(),
                                  [&](const auto& file) { return file.first == name; });
  return {found->first, found->second};
}

// One function for each kind of backbone. It fills the configuration, the tokenizer's files and the
// weights. It calls `prepare` once the configuration is valid, before it builds the vocabulary,
// which takes a while.

using Prepare = std::function<void()>;

void make_t5(NewBackbone& backbone, const InitOptions& options, const std::string& name,
             const Prepare& prepare) {
  const double factor = positive_number(backbone.config, name, "initializer_factor", 1.0);
  parse_t5_config(backbone.config.dump(), name);
  prepare();
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
  const auto tokenizer = make_tokenizer({.config = file_of(backbone, "tokenizer_config.json"),
                                         .spiece_model = file_of(backbone, "spiece.model")});
  backbone.config["vocab_size"] = tokenizer->vocab_size();
  backbone.weights =
      random_t5_weights(parse_t5_config(backbone.config.dump(), name), factor, options.seed);
}

void fill_encoder_weights(NewBackbone& backbone, const InitOptions& options,
                          const std::string& name, double deviation, const Tokenizer& tokenizer) {
  backbone.config["vocab_size"] = tokenizer.vocab_size();
  backbone.weights = random_encoder_weights(parse_encoder_config(backbone.config.dump(), name),
                                            deviation, options.seed);
}

void make_bert(NewBackbone& backbone, const InitOptions& options, const std::string& name,
               const Prepare& prepare) {
  const double deviation = positive_number(backbone.config, name, "initializer_range", 0.02);
  backbone.config["pad_token_id"] = 0;
  parse_encoder_config(backbone.config.dump(), name);
  prepare();
  WordPieceOptions words;
  words.lower_case = words.strip_accents = !options.cased;
  backbone.files = {
      {"vocab.txt", train_wordpiece(options.texts, options.vocabulary, words)},
      {"tokenizer_config.json",
       ordered_json{{"tokenizer_class", "BertTokenizer"}, {"do_lower_case", !options.cased}}.dump(
           2) +
           "\n"}};
  fill_encoder_weights(backbone, options, name, deviation,
                       *make_tokenizer({.vocab_txt = file_of(backbone, "vocab.txt"),
                                        .config = file_of(backbone, "tokenizer_config.json")}));
}

/// Fills in RoBERTa's tokenizer's files.
std::unique_ptr<Tokenizer> train_byte_bpe_files(NewBackbone& backbone, const InitOptions& options) {
  const ByteBpeVocabulary vocabulary = train_byte_bpe(options.texts, options.vocabulary);
  backbone.files = {{"vocab.json", vocabulary.vocab_json},
                    {"merges.txt", vocabulary.merges_txt},
                    {"tokenizer_config.json",
                     ordered_json{{"tokenizer_class", "RobertaTokenizer"}}.dump(2) + "\n"}};
  return make_tokenizer({.vocab_json = file_of(backbone, "vocab.json"),
                         .merges = file_of(backbone, "merges.txt"),
                         .config = file_of(backbone, "tokenizer_config.json")});
}

void make_roberta(NewBackbone& backbone, const InitOptions& options, const std::string& name,
                  const Prepare& prepare) {
  const double deviation = positive_number(backbone.config, name, "initializer_range", 0.02);
  backbone.config["bos_token_id"] = 0;
  backbone.config["pad_token_id"] = 1;
  backbone.config["eos_token_id"] = 2;
  parse_encoder_config(backbone.config.dump(), name);
  prepare();
  fill_encoder_weights(backbone, options, name, deviation,
                       *train_byte_bpe_files(backbone, options));
}

void make_modernbert(NewBackbone& backbone, const InitOptions& options, const std::string& name,
                     const Prepare& prepare) {
  const double deviation = positive_number(backbone.config, name, "initializer_range", 0.02);
  for (const char* begin : {"bos_token_id", "cls_token_id"}) backbone.config[begin] = 0;
  for (const char* end : {"eos_token_id", "sep_token_id"}) backbone.config[end] = 2;
  backbone.config["pad_token_id"] = 1;
  parse_modernbert_config(backbone.config.dump(), name);
  prepare();
  backbone.config["vocab_size"] = train_byte_bpe_files(backbone, options)->vocab_size();
  backbone.weights = ModernBert::random_weights(
      parse_modernbert_config(backbone.config.dump(), name), deviation, options.seed);
}

struct KindOfBackbone {
  std::string_view model_type;
  void (*make)(NewBackbone&, const InitOptions&, const std::string&, const Prepare&);
};
constexpr std::array kBackboneKinds{
    KindOfBackbone{"t5", make_t5}, KindOfBackbone{"bert", make_bert},
    KindOfBackbone{"roberta", make_roberta}, KindOfBackbone{"modernbert", make_modernbert}};

const KindOfBackbone& kind_of(const ordered_json& config, const std::string& name) {
  const auto type = config.find("model_type");
  for (const KindOfBackbone& kind : kBackboneKinds) {
    if (type != config.end() && *type == kind.model_type) return kind;
  }
  throw Error(name + ": model_type: is " + (type == config.end() ? "missing" : type->dump()) +
              ", must be t5, bert, roberta or modernbert");
}

}  // namespace

int run_init(const InitOptions& options) {
  const std::string name = options.config.string();
  NewBackbone backbone;
  backbone.config = base::parse_shallow_ordered_json(text_of(options.config), name);
  if (!backbone.config.is_object())
    throw Error(name + ": is a JSON " + backbone.config.type_name() + ", expected an object");
  const KindOfBackbone& kind = kind_of(backbone.config, name);
  if (options.cased && kind.model_type != "bert") {
    throw std::invalid_argument("--cased is for BERT's vocabularies, and " + name + " is a " +
                                std::string(kind.model_type) + "'s, which are always cased");
  }
  backbone.config["vocab_size"] = options.vocabulary;
  kind.make(backbone, options, name, [&] { require_new_folder(options.out); });
  std::vector<std::pair<std::string, TensorView>> tensors;
  std::int64_t count = 0;
  for (const auto& [weight, tensor] : backbone.weights) {
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
