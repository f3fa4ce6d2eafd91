#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "trainer/backbones/file_bytes.h"
#include "trainer/backbones/shallow_json.h"
#include "trainer/error.h"
#include "trainer/tokenizers/byte_bpe.h"
#include "trainer/tokenizers/tokenizer.h"
#include "trainer/tokenizers/wordpiece.h"

namespace petlab::trainer {
namespace {

using Json = nlohmann::json;

std::string_view text_of(const FileBytes& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

/// tokenizer_config.json, or what holds where there is none.
class Settings {
 public:
  Settings(Json json, std::string file) : json_(std::move(json)), file_(std::move(file)) {}

  static Settings parse(std::string_view text, const std::string& file) {
    Json json = parse_shallow_json(text, file);
    if (!json.is_object()) {
      throw Error(fmt::format("{}: is a JSON {}, wanted an object", file, json.type_name()));
    }
    return {std::move(json), file};
  }

  bool flag(const char* name, bool fallback) const {
    const auto found = json_.find(name);
    if (found == json_.end() || found->is_null()) return fallback;
    if (!found->is_boolean()) refuse(name, *found, "true or false");
    return found->get<bool>();
  }

  std::string text(const char* name, const std::string& fallback) const {
    const auto found = json_.find(name);
    if (found == json_.end() || found->is_null()) return fallback;
    if (!found->is_string()) refuse(name, *found, "a string");
    return found->get<std::string>();
  }

  /// A token given as a string or as an object with its content; `fallback` where it is not there.
  AddedToken token(const char* name, AddedToken fallback) const {
    const auto found = json_.find(name);
    if (found == json_.end() || found->is_null()) return fallback;
    if (found->is_string()) {
      fallback.content = found->get<std::string>();
    } else {
      fallback = parse_token(name, *found);
    }
    if (fallback.content.empty()) refuse(name, *found, "a token that is not empty");
    return fallback;
  }

  /// `added_tokens_decoder`: {"id": {content, …}}.
  std::vector<AddedToken> added_tokens() const {
    std::vector<AddedToken> result;
    const auto found = json_.find("added_tokens_decoder");
    if (found == json_.end() || found->is_null()) return result;
    if (!found->is_object()) refuse("added_tokens_decoder", *found, "an object of id: token");
    for (const auto& [key, value] : found->items()) {
      const std::string name = "added_tokens_decoder." + key;
      const bool digits = !key.empty() && key.size() <= 8 &&
                          key.find_first_not_of("0123456789") == std::string::npos;
      if (!digits) refuse(name, value, "a token under its id, of at most 8 digits");
      AddedToken token = parse_token(name, value);
      token.id = static_cast<std::int32_t>(std::stol(key));
      if (token.content.empty()) refuse(name, value, "a token that is not empty");
      if (!token.special && value.value("normalized", true)) {
        refuse(name, value, "a special token, or one that is not normalized");
      }
      result.push_back(std::move(token));
    }
    return result;
  }

 private:
  [[noreturn]] void refuse(const std::string& name, const Json& found,
                           const std::string& wanted) const {
    throw Error(fmt::format("{}: {} is {}, wanted {}", file_, name,
                            found.dump(-1, ' ', true).substr(0, 80), wanted));
  }

  AddedToken parse_token(const std::string& name, const Json& value) const {
    if (!value.is_object() || !value.contains("content") || !value["content"].is_string()) {
      refuse(name, value, "a token or an object with its content");
    }
    AddedToken token;
    token.content = value["content"].get<std::string>();
    const auto read = [&](const char* field, bool fallback) {
      const auto found = value.find(field);
      if (found == value.end() || found->is_null()) return fallback;
      if (!found->is_boolean()) refuse(name + "." + field, *found, "true or false");
      return found->get<bool>();
    };
    token.lstrip = read("lstrip", false);
    token.rstrip = read("rstrip", false);
    token.single_word = read("single_word", false);
    token.special = read("special", true);
    read("normalized", true);
    return token;
  }

  Json json_;
  std::string file_;
};

std::unique_ptr<Tokenizer> make_wordpiece(Vocabulary vocabulary, const Settings& settings) {
  WordPieceOptions options;
  options.lower_case = settings.flag("do_lower_case", true);
  options.strip_accents = settings.flag("strip_accents", options.lower_case);
  options.split_chinese = settings.flag("tokenize_chinese_chars", true);
  options.added = settings.added_tokens();
  // Each special token: taken from the settings, with how it is stripped where that is said.
  const auto special = [&](const char* name, std::string& content) {
    const AddedToken token = settings.token(name, {.content = content});
    content = token.content;
    const auto id = vocabulary.find(content);
    const bool there = std::any_of(options.added.begin(), options.added.end(),
                                   [&](const auto& other) { return other.content == content; });
    if (id && !there) {
      options.added.push_back(token);
      options.added.back().id = *id;
    }
  };
  special("unk_token", options.unk_token);
  special("cls_token", options.cls_token);
  special("sep_token", options.sep_token);
  special("pad_token", options.pad_token);
  special("mask_token", options.mask_token);
  return std::make_unique<WordPiece>(std::move(vocabulary), options);
}

std::unique_ptr<Tokenizer> make_byte_bpe(Vocabulary vocabulary, std::string_view merges,
                                         const std::string& merges_file, const Settings& settings) {
  ByteBpeOptions options;
  options.add_prefix_space = settings.flag("add_prefix_space", false);
  options.added = settings.added_tokens();
  // GPT-2's own vocabulary has no RoBERTa tokens: then nothing stands around a text.
  const std::string kind = settings.text("tokenizer_class", "");
  const bool plain = kind.starts_with("GPT2") || (kind.empty() && !vocabulary.find("<s>"));
  if (!plain) {
    const auto special = [&](const char* name, const AddedToken& fallback) {
      AddedToken token = settings.token(name, fallback);
      const bool there =
          std::any_of(options.added.begin(), options.added.end(),
                      [&](const auto& other) { return other.content == token.content; });
      const auto id = vocabulary.find(token.content);
      if (id && !there) {
        token.id = *id;
        options.added.push_back(token);
      }
      return token.content;
    };
    options.cls_token = special("cls_token", {.content = "<s>"});
    options.sep_token = special("sep_token", {.content = "</s>"});
    options.pad_token = special("pad_token", {.content = "<pad>"});
    special("unk_token", {.content = "<unk>"});
    // RoBERTa's own files say that the mask takes the space before it.
    special("mask_token", {.content = "<mask>", .lstrip = true});
  }
  return std::make_unique<ByteBpe>(std::move(vocabulary), parse_merges(merges, merges_file),
                                   merges_file, options);
}

/// A file of a folder, where it is there.
class OptionalFile {
 public:
  explicit OptionalFile(const std::filesystem::path& file) {
    if (std::filesystem::exists(file)) bytes_ = FileBytes::map(file);
  }
  std::optional<TokenizerFiles::File> get() const {
    if (!bytes_) return std::nullopt;
    return TokenizerFiles::File{bytes_->name(), text_of(*bytes_)};
  }

 private:
  std::shared_ptr<const FileBytes> bytes_;
};

Settings settings_of(const TokenizerFiles& files) {
  if (files.config) return Settings::parse(files.config->text, files.config->name);
  return {Json::object(), "tokenizer_config.json"};
}

}  // namespace

std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerFiles& files) {
  const Settings settings = settings_of(files);
  if (files.vocab_txt) {
    return make_wordpiece(parse_vocab_txt(files.vocab_txt->text, files.vocab_txt->name), settings);
  }
  if (!files.vocab_json || !files.merges) {
    throw Error("wanted vocab.txt (WordPiece) or vocab.json with merges.txt (BPE)");
  }
  return make_byte_bpe(parse_vocab_json(files.vocab_json->text, files.vocab_json->name),
                       files.merges->text, files.merges->name, settings);
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& folder) {
  const OptionalFile vocab_txt(folder / "vocab.txt");
  const OptionalFile vocab_json(folder / "vocab.json");
  const OptionalFile config(folder / "tokenizer_config.json");
  TokenizerFiles files{vocab_txt.get(), vocab_json.get(), std::nullopt, config.get()};
  if (!files.vocab_txt && !files.vocab_json) {
    throw Error(fmt::format(
        "{}: holds no tokenizer, wanted vocab.txt (WordPiece) or vocab.json with merges.txt (BPE)",
        folder.string()));
  }
  std::shared_ptr<const FileBytes> merges;
  if (!files.vocab_txt) {
    merges = FileBytes::map(folder / settings_of(files).text("merges", "merges.txt"));
    files.merges = {merges->name(), text_of(*merges)};
  }
  return make_tokenizer(files);
}

}  // namespace petlab::trainer
