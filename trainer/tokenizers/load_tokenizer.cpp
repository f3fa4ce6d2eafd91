#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "trainer/files/error.h"
#include "trainer/files/file_bytes.h"
#include "trainer/files/shallow_json.h"
#include "trainer/tokenizers/byte_bpe.h"
#include "trainer/tokenizers/tokenizer.h"
#include "trainer/tokenizers/tokenizer_json.h"
#include "trainer/tokenizers/unigram.h"
#include "trainer/tokenizers/unigram_model.h"
#include "trainer/tokenizers/wordpiece.h"

namespace petlab::trainer {
namespace {

using Json = nlohmann::json;

std::string_view text_of(const FileBytes& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

Json parse_object(const TokenizerFiles::File& file) {
  Json json = parse_shallow_json(file.text, file.name);
  if (!json.is_object()) {
    throw Error(fmt::format("{}: is a JSON {}, expected an object", file.name, json.type_name()));
  }
  return json;
}

/// The settings in tokenizer_config.json, completed from other files.
class Settings {
 public:
  /// Without added_tokens_decoder in tokenizer_config.json (before 2023), reads tokens from
  /// special_tokens_map.json, added_tokens.json and tokenizer.json, as Hugging Face's library does.
  explicit Settings(const TokenizerFiles& files) {
    config_ = files.config ? Source{parse_object(*files.config), files.config->name}
                           : Source{Json::object(), "tokenizer_config.json"};
    const auto decoder = config_.json.find("added_tokens_decoder");
    if (decoder != config_.json.end() && !decoder->is_null()) {
      read_decoder(*decoder, config_.name);
      return;
    }
    if (files.special_tokens_map) {
      map_ = {parse_object(*files.special_tokens_map), files.special_tokens_map->name};
    }
    if (files.tokenizer_json) {
      const Json whole = parse_shallow_json(files.tokenizer_json->text, files.tokenizer_json->name);
      read_decoder(added_tokens_decoder(whole, files.tokenizer_json->name),
                   files.tokenizer_json->name);
    }
    if (files.added_tokens) read_added_tokens(*files.added_tokens);
  }

  /// Adds `settings`, from `file`, that tokenizer_config.json does not set. Throws if the two
  /// contradict each other.
  void complete(const Json& settings, const std::string& file) {
    for (const auto& [name, value] : settings.items()) {
      const auto found = config_.json.find(name);
      if (found == config_.json.end() || found->is_null()) {
        config_.json[name] = value;
        continue;
      }
      const Json current =
          found->is_object() && found->contains("content") ? (*found)["content"] : *found;
      if (!value.is_null() && current != value) {
        refuse(config_.name, name, *found, value.dump() + ", as in " + file);
      }
    }
  }

  bool flag(const char* name, bool fallback) const {
    const auto found = config_.json.find(name);
    if (found == config_.json.end() || found->is_null()) return fallback;
    if (!found->is_boolean()) refuse(config_.name, name, *found, "true or false");
    return found->get<bool>();
  }

  std::int64_t count(const char* name, std::int64_t fallback, std::int64_t most) const {
    const auto found = config_.json.find(name);
    if (found == config_.json.end() || found->is_null()) return fallback;
    if (!found->is_number_unsigned() ||
        found->get<std::uint64_t>() > static_cast<std::uint64_t>(most)) {
      refuse(config_.name, name, *found, fmt::format("a whole number in 0..{}", most));
    }
    return found->get<std::int64_t>();
  }

  std::string text(const char* name, const std::string& fallback) const {
    const auto found = config_.json.find(name);
    if (found == config_.json.end() || found->is_null()) return fallback;
    if (!found->is_string()) refuse(config_.name, name, *found, "a string");
    return found->get<std::string>();
  }

  /// Reads a token given as a string or as an object with its content; `fallback` if it is missing.
  AddedToken token(const char* name, AddedToken fallback) const {
    for (const Source* source : {&map_, &config_}) {
      const auto found = source->json.find(name);
      if (found == source->json.end() || found->is_null()) continue;
      if (found->is_string()) {
        fallback.content = found->get<std::string>();
      } else {
        fallback = parse_token(source->name, name, *found);
        fallback.special = true;
      }
      if (fallback.content.empty()) {
        refuse(source->name, name, *found, "a non-empty token");
      }
      return fallback;
    }
    return fallback;
  }

  /// Whether texts are truncated at their beginning. Without `truncation_side`, the truncation in
  /// tokenizer.json decides, as in Hugging Face's library.
  bool truncates_left(const std::optional<TokenizerFiles::File>& tokenizer_json) const {
    constexpr const char* kSide = "truncation_side";
    if (config_.json.contains(kSide)) {
      const Json& side = config_.json[kSide];
      if (side != "left" && side != "right") refuse(config_.name, kSide, side, "left or right");
      return side == "left";
    }
    if (!tokenizer_json) return false;
    const Json whole = parse_shallow_json(tokenizer_json->text, tokenizer_json->name);
    const Json::json_pointer direction("/truncation/direction");
    return whole.is_object() && whole.contains(direction) && whole[direction] == "Left";
  }

  const std::vector<AddedToken>& added_tokens() const { return added_; }

  /// The special tokens with no fixed place around a text.
  std::vector<AddedToken> other_special_tokens() const {
    std::vector<AddedToken> result;
    for (const char* name : {"bos_token", "eos_token"}) {
      const AddedToken found = token(name, {});
      if (!found.content.empty()) result.push_back(found);
    }
    constexpr const char* kMore = "additional_special_tokens";
    for (const Source* source : {&map_, &config_}) {
      const auto found = source->json.find(kMore);
      if (found == source->json.end() || found->is_null()) continue;
      if (!found->is_array()) refuse(source->name, kMore, *found, "a list of tokens");
      for (const Json& one : *found) {
        AddedToken more;
        if (one.is_string()) {
          more.content = one.get<std::string>();
        } else {
          more = parse_token(source->name, kMore, one);
        }
        if (more.content.empty()) refuse(source->name, kMore, one, "a non-empty token");
        more.special = true;
        result.push_back(std::move(more));
      }
    }
    return result;
  }

 private:
  struct Source {
    Json json = Json::object();
    std::string name;
  };

  [[noreturn]] static void refuse(const std::string& file, const std::string& name,
                                  const Json& found, const std::string& wanted) {
    throw Error(fmt::format("{}: {} is {}, expected {}", file, name,
                            found.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 80),
                            wanted));
  }

  static AddedToken parse_token(const std::string& file, const std::string& name,
                                const Json& value) {
    if (!value.is_object() || !value.contains("content") || !value["content"].is_string()) {
      refuse(file, name, value, "a token or an object with its content");
    }
    AddedToken token;
    token.content = value["content"].get<std::string>();
    const auto read = [&](const char* field, bool fallback) {
      const auto found = value.find(field);
      if (found == value.end() || found->is_null()) return fallback;
      if (!found->is_boolean()) refuse(file, name + "." + field, *found, "true or false");
      return found->get<bool>();
    };
    token.lstrip = read("lstrip", false);
    token.rstrip = read("rstrip", false);
    token.single_word = read("single_word", false);
    token.special = read("special", true);
    token.normalized = read("normalized", !token.special);
    return token;
  }

  /// Reads {"id": {content, …}}.
  void read_decoder(const Json& decoder, const std::string& file) {
    constexpr const char* kName = "added_tokens_decoder";
    if (!decoder.is_object()) refuse(file, kName, decoder, "an object of id: token");
    for (const auto& [key, value] : decoder.items()) {
      const std::string name = std::string(kName) + "." + key;
      const bool digits = !key.empty() && key.size() <= 8 &&
                          key.find_first_not_of("0123456789") == std::string::npos;
      if (!digits) refuse(file, name, value, "a token under its id, of at most 8 digits");
      AddedToken token = parse_token(file, name, value);
      token.id = static_cast<std::int32_t>(std::stol(key));
      if (token.content.empty()) refuse(file, name, value, "a non-empty token");
      added_.push_back(std::move(token));
    }
  }

  /// Reads {token: id}. Tokens that no file declares special are found in the normalised text.
  void read_added_tokens(const TokenizerFiles::File& file) {
    constexpr std::int64_t kMostIds = 100'000'000;
    std::vector<AddedToken> special = other_special_tokens();
    for (const char* name : {"unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
      special.push_back(token(name, {}));
    }
    const auto is_there = [](const std::vector<AddedToken>& tokens, const std::string& content) {
      return std::any_of(tokens.begin(), tokens.end(),
                         [&](const AddedToken& other) { return other.content == content; });
    };
    const Json ids = parse_object(file);
    for (const auto& [content, id] : ids.items()) {
      if (content.empty()) refuse(file.name, "the empty token", id, "a non-empty token");
      if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= kMostIds) {
        refuse(file.name, content, id, fmt::format("an id in 0..{}", kMostIds - 1));
      }
      if (is_there(added_, content)) continue;
      AddedToken token{.content = content, .id = id.get<std::int32_t>()};
      token.special = is_there(special, content);
      token.normalized = !token.special;
      added_.push_back(std::move(token));
    }
  }

  Source config_;
  Source map_;
  std::vector<AddedToken> added_;
};

/// Collects the added tokens of a tokenizer: those with an id in a file, then those of `named` and
/// the other special tokens, with their ids in the vocabulary.
std::vector<AddedToken> all_added(const Settings& settings, const Vocabulary& vocabulary,
                                  const std::vector<AddedToken>& named) {
  std::vector<AddedToken> added = settings.added_tokens();
  const auto add = [&](AddedToken token, bool must_be_there) {
    if (std::any_of(added.begin(), added.end(),
                    [&](const AddedToken& other) { return other.content == token.content; })) {
      return;
    }
    if (const auto id = vocabulary.find(token.content)) {
      token.id = *id;
      added.push_back(std::move(token));
    } else if (must_be_there) {
      throw Error(fmt::format("{}: has no token {}, expected all special tokens", vocabulary.file(),
                              token.content));
    }
  };
  for (const AddedToken& token : named) add(token, false);
  for (const AddedToken& token : settings.other_special_tokens()) add(token, true);
  return added;
}

std::unique_ptr<Tokenizer> make_wordpiece(Vocabulary vocabulary, const Settings& settings) {
  WordPieceOptions options;
  options.lower_case = settings.flag("do_lower_case", true);
  options.strip_accents = settings.flag("strip_accents", options.lower_case);
  options.split_chinese = settings.flag("tokenize_chinese_chars", true);
  // Each special token comes from the settings, including its stripping, if set there.
  std::vector<AddedToken> named;
  const auto special = [&](const char* name, std::string& content) {
    named.push_back(settings.token(name, {.content = content}));
    content = named.back().content;
  };
  special("unk_token", options.unk_token);
  special("cls_token", options.cls_token);
  special("sep_token", options.sep_token);
  special("pad_token", options.pad_token);
  special("mask_token", options.mask_token);
  options.added = all_added(settings, vocabulary, named);
  return std::make_unique<WordPiece>(std::move(vocabulary), options);
}

using Merges = std::vector<std::pair<std::string, std::string>>;

std::unique_ptr<Tokenizer> make_byte_bpe(Vocabulary vocabulary, const Merges& merges,
                                         const std::string& merges_file, const Settings& settings,
                                         ByteBpeOptions options = {}) {
  options.add_prefix_space = settings.flag("add_prefix_space", false);
  // GPT-2's own vocabulary has no RoBERTa tokens, so texts get no special tokens.
  const std::string kind = settings.text("tokenizer_class", "");
  const bool plain = kind.starts_with("GPT2") || (kind.empty() && !vocabulary.find("<s>"));
  if (plain) {
    options.added = settings.added_tokens();
  } else {
    std::vector<AddedToken> named;
    const auto special = [&](const char* name, const AddedToken& fallback) {
      named.push_back(settings.token(name, fallback));
      return named.back().content;
    };
    options.cls_token = special("cls_token", {.content = "<s>"});
    options.sep_token = special("sep_token", {.content = "</s>"});
    options.pad_token = special("pad_token", {.content = "<pad>"});
    special("unk_token", {.content = "<unk>"});
    // RoBERTa's own files say that the mask includes the space before it.
    special("mask_token", {.content = "<mask>", .lstrip = true});
    options.added = all_added(settings, vocabulary, named);
  }
  return std::make_unique<ByteBpe>(std::move(vocabulary), merges, merges_file, options);
}

/// Adds T5's extra ids; <extra_id_0> is the last id.
void add_extra_ids(UnigramModel& model, std::int64_t count) {
  for (std::int64_t i = count; i > 0; --i) {
    model.pieces.push_back({fmt::format("<extra_id_{}>", i - 1), 0.0});
  }
}

std::unique_ptr<Tokenizer> make_unigram(UnigramModel model, const std::string& file,
                                        const Settings& settings) {
  UnigramOptions options;
  std::vector<AddedToken> named;
  const auto special = [&](const char* name, const std::string& fallback) {
    named.push_back(settings.token(name, {.content = fallback}));
    return named.back().content;
  };
  options.eos_token = special("eos_token", "</s>");
  options.pad_token = special("pad_token", "<pad>");
  special("unk_token", model.pieces[static_cast<std::size_t>(model.unk_id)].text);
  std::vector<std::pair<std::string, std::int64_t>> ids;
  for (std::size_t i = 0; i < model.pieces.size(); ++i) {
    const std::string& piece = model.pieces[i].text;
    ids.emplace_back(piece, static_cast<std::int64_t>(i));
    if (piece.starts_with("<extra_id_")) named.push_back({.content = piece});
  }
  options.added = all_added(settings, Vocabulary(std::move(ids), file), named);
  return std::make_unique<Unigram>(std::move(model), file, options);
}

std::unique_ptr<Tokenizer> make_from_tokenizer_json(const TokenizerFiles::File& file,
                                                    Settings settings) {
  TokenizerJson json = read_tokenizer_json(parse_shallow_json(file.text, file.name), file.name);
  settings.complete(json.settings(), file.name);
  if (json.unigram) return make_unigram(std::move(*json.unigram), file.name, settings);
  Vocabulary vocabulary(std::move(json.vocabulary), file.name);
  if (!json.byte_bpe) return make_wordpiece(std::move(vocabulary), settings);
  ByteBpeOptions options;
  options.single_separator = json.single_separator;
  options.second_type = json.second_type;
  options.compose = json.compose;
  return make_byte_bpe(std::move(vocabulary), json.merges, file.name, settings, std::move(options));
}

std::unique_ptr<Tokenizer> make_with(const Settings& settings, const TokenizerFiles& files) {
  if (files.vocab_txt) {
    return make_wordpiece(parse_vocab_txt(files.vocab_txt->text, files.vocab_txt->name), settings);
  }
  if (files.vocab_json && files.merges) {
    Vocabulary vocabulary = parse_vocab_json(files.vocab_json->text, files.vocab_json->name);
    return make_byte_bpe(std::move(vocabulary),
                         parse_merges(files.merges->text, files.merges->name), files.merges->name,
                         settings);
  }
  if (files.spiece_model) {
    UnigramModel model = parse_sentencepiece(files.spiece_model->text, files.spiece_model->name);
    add_extra_ids(model, settings.count("extra_ids", 100, 10'000));
    return make_unigram(std::move(model), files.spiece_model->name, settings);
  }
  if (!files.tokenizer_json) {
    throw Error(
        "expected vocab.txt (WordPiece), vocab.json with merges.txt (BPE), spiece.model (unigram) "
        "or "
        "tokenizer.json");
  }
  return make_from_tokenizer_json(*files.tokenizer_json, settings);
}

/// A file of a folder, which may be missing.
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

}  // namespace

std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerFiles& files) {
  const Settings settings(files);
  std::unique_ptr<Tokenizer> tokenizer = make_with(settings, files);
  if (settings.truncates_left(files.tokenizer_json)) tokenizer->keep_last_tokens();
  return tokenizer;
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& folder) {
  const OptionalFile vocab_txt(folder / "vocab.txt");
  const OptionalFile vocab_json(folder / "vocab.json");
  const OptionalFile config(folder / "tokenizer_config.json");
  const OptionalFile special_tokens_map(folder / "special_tokens_map.json");
  const OptionalFile added_tokens(folder / "added_tokens.json");
  const OptionalFile tokenizer_json(folder / "tokenizer.json");
  const OptionalFile spiece_model(folder / "spiece.model");
  TokenizerFiles files{.vocab_txt = vocab_txt.get(),
                       .vocab_json = vocab_json.get(),
                       .merges = std::nullopt,
                       .config = config.get(),
                       .special_tokens_map = special_tokens_map.get(),
                       .added_tokens = added_tokens.get(),
                       .tokenizer_json = tokenizer_json.get(),
                       .spiece_model = spiece_model.get()};
  if (!files.vocab_txt && !files.vocab_json && !files.spiece_model && !files.tokenizer_json) {
    throw Error(
        fmt::format("{}: found no tokenizer, expected vocab.txt (WordPiece), vocab.json with "
                    "merges.txt (BPE), spiece.model (unigram) or tokenizer.json",
                    folder.string()));
  }
  std::shared_ptr<const FileBytes> merges;
  if (!files.vocab_txt && files.vocab_json) {
    merges =
        FileBytes::map(folder / Settings({.config = files.config}).text("merges", "merges.txt"));
    files.merges = {merges->name(), text_of(*merges)};
  }
  return make_tokenizer(files);
}

}  // namespace petlab::trainer
