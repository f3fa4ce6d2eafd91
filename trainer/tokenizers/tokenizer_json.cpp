#include "trainer/tokenizers/tokenizer_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "trainer/files/error.h"

namespace petlab::trainer {
namespace {

using Json = nlohmann::json;

/// An object in the file. Messages name the file and the path to a field.
class Part {
 public:
  Part(const Json& json, const std::string& file, std::string path)
      : json_(json), file_(file), path_(std::move(path)) {
    if (!json_.is_object()) refuse_whole("an object");
  }

  Part part(const char* field) const { return {at(field), file_, path_of(field)}; }
  const Json& at(const char* field) const {
    static const Json nothing;
    const auto found = json_.find(field);
    return found == json_.end() ? nothing : *found;
  }
  /// Calls visit(part) for each object of a list.
  template <typename Visit>
  void each(const char* field, const Visit& visit) const {
    if (!at(field).is_array()) refuse(field, "a list");
    int number = 0;
    for (const Json& one : at(field)) {
      visit(Part(one, file_, path_of(field) + "." + std::to_string(number++)));
    }
  }
  std::string name(const char* field) const { return file_ + ": " + path_of(field); }
  std::string text(const char* field) const {
    if (!at(field).is_string()) refuse(field, "a string");
    return at(field).get<std::string>();
  }
  bool flag(const char* field) const {
    if (!at(field).is_boolean()) refuse(field, "true or false");
    return at(field).get<bool>();
  }
  /// Accepts a missing field or null, too.
  void require(const char* field, const Json& only) const {
    if (!at(field).is_null() && at(field) != only) refuse(field, only.dump());
  }
  [[noreturn]] void refuse(const char* field, const std::string& wanted) const {
    throw Error(
        fmt::format("{}: {} is {}, expected {}", file_, path_of(field), shown(at(field)), wanted));
  }
  [[noreturn]] void refuse_whole(const std::string& wanted) const {
    throw Error(fmt::format("{}: {} is {}, expected {}", file_, path_.empty() ? "it" : path_,
                            shown(json_), wanted));
  }

 private:
  static std::string shown(const Json& json) {
    return json.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 80);
  }
  std::string path_of(const char* field) const {
    return path_.empty() ? std::string(field) : path_ + "." + field;
  }

  const Json& json_;
  const std::string& file_;
  std::string path_;
};

void read_vocabulary(const Part& model, TokenizerJson& result) {
  const Part vocabulary = model.part("vocab");
  for (const auto& [token, id] : model.at("vocab").items()) {
    if (!id.is_number_integer()) vocabulary.refuse(token.c_str(), "a whole number");
    result.vocabulary.emplace_back(token, id.get<std::int64_t>());
  }
  if (result.vocabulary.empty()) model.refuse("vocab", "tokens and their ids");
}

/// Adds the added tokens, special ones among them, that the model's own vocabulary lacks.
void add_missing_tokens(const Part& all, TokenizerJson& result) {
  if (all.at("added_tokens").is_null()) return;
  std::set<std::string> known;
  for (const auto& [token, id] : result.vocabulary) known.insert(token);
  all.each("added_tokens", [&](const Part& token) {
    if (!token.at("id").is_number_unsigned()) token.refuse("id", "a whole number");
    const std::string content = token.text("content");
    if (!known.insert(content).second) return;
    result.vocabulary.emplace_back(content, token.at("id").get<std::int64_t>());
  });
}

/// Each merge is "a b", or ["a", "b"] in newer files.
void read_merges(const Part& model, TokenizerJson& result) {
  constexpr const char* kWanted = "a list of pairs of tokens";
  if (!model.at("merges").is_array()) model.refuse("merges", kWanted);
  for (const Json& merge : model.at("merges")) {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      result.merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
      continue;
    }
    const std::string text = merge.is_string() ? merge.get<std::string>() : std::string();
    const std::size_t space = text.find(' ');
    if (space == std::string::npos || space == 0 || space + 1 == text.size() ||
        text.find(' ', space + 1) != std::string::npos) {
      model.refuse("merges",
                   fmt::format("{}, found {} as number {}", kWanted,
                               merge.dump(-1, ' ', true).substr(0, 60), result.merges.size() + 1));
    }
    result.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
  }
}

void read_wordpiece(const Part& all, const Part& model, TokenizerJson& result) {
  constexpr int kLongestWord = 100;
  model.require("continuing_subword_prefix", "##");
  model.require("max_input_chars_per_word", kLongestWord);
  result.unk_token = model.text("unk_token");
  const Part normalizer = all.part("normalizer");
  if (normalizer.at("type") != "BertNormalizer") normalizer.refuse("type", "BertNormalizer");
  normalizer.require("clean_text", true);
  result.lower_case = normalizer.flag("lowercase");
  result.split_chinese = normalizer.flag("handle_chinese_chars");
  if (!normalizer.at("strip_accents").is_null()) {
    result.strip_accents = normalizer.flag("strip_accents") ? 1 : 0;
  }
  const Part cutter = all.part("pre_tokenizer");
  if (cutter.at("type") != "BertPreTokenizer") cutter.refuse("type", "BertPreTokenizer");
}

void read_byte_bpe(const Part& all, const Part& model, TokenizerJson& result) {
  result.byte_bpe = true;
  model.require("dropout", 0.0);
  model.require("continuing_subword_prefix", "");
  model.require("end_of_word_suffix", "");
  model.require("byte_fallback", false);
  model.require("ignore_merges", false);
  read_merges(model, result);
  if (!all.at("normalizer").is_null()) {
    const Part normalizer = all.part("normalizer");
    if (normalizer.at("type") != "NFC") normalizer.refuse("type", "NFC, or no normalizer");
    result.compose = true;
  }
  add_missing_tokens(all, result);
  const Part cutter = all.part("pre_tokenizer");
  if (cutter.at("type") != "ByteLevel") cutter.refuse("type", "ByteLevel");
  cutter.require("use_regex", true);
  result.add_prefix_space = cutter.flag("add_prefix_space");
}

/// Reads pieces and their scores, by id.
void read_pieces(const Part& model, UnigramModel& unigram) {
  constexpr const char* kWanted = "a list of [piece, score]";
  const Json& all = model.at("vocab");
  if (!all.is_array() || all.empty()) model.refuse("vocab", kWanted);
  for (const Json& piece : all) {
    if (!piece.is_array() || piece.size() != 2 || !piece[0].is_string() || !piece[1].is_number() ||
        piece[0].get<std::string>().empty()) {
      model.refuse("vocab", kWanted);
    }
    unigram.pieces.push_back({piece[0].get<std::string>(), piece[1].get<double>()});
  }
  const Json& unknown = model.at("unk_id");
  if (!unknown.is_number_unsigned() || unknown.get<std::uint64_t>() >= unigram.pieces.size()) {
    model.refuse("unk_id", "the number of a piece");
  }
  unigram.unk_id = unknown.get<std::int32_t>();
}

void read_unigram_normalizer(const Part& part, UnigramModel& unigram) {
  if (part.at("type") == "Precompiled") {
    unigram.charsmap =
        bytes_of_base64(part.text("precompiled_charsmap"), part.name("precompiled_charsmap"));
  } else if (part.at("type") == "Strip") {
    if (part.flag("strip_left") || !part.flag("strip_right")) {
      part.refuse("strip_left", "false, and strip_right true");
    }
    unigram.strip_right = true;
  } else if (part.at("type") == "Replace") {
    const Json wanted{{"Regex", " {2,}"}};
    if (part.at("pattern") != wanted) part.refuse("pattern", wanted.dump());
    if (part.at("content") != "\u2581") part.refuse("content", "\"\u2581\"");
    unigram.join_spaces = true;
  } else {
    part.refuse("type", "Precompiled, Strip, Replace or a Sequence of these");
  }
}

/// Checks Hugging Face's Metaspace, with the fields of old and new files.
void require_metaspace(const Part& part) {
  if (part.at("type") != "Metaspace") part.refuse("type", "Metaspace");
  part.require("replacement", "\u2581");
  part.require("add_prefix_space", true);
  part.require("prepend_scheme", "always");
  part.require("split", true);
}

void read_unigram(const Part& all, const Part& model, TokenizerJson& result) {
  UnigramModel& unigram = result.unigram.emplace();
  read_pieces(model, unigram);
  model.require("byte_fallback", false);
  result.unk_token = unigram.pieces[static_cast<std::size_t>(unigram.unk_id)].text;
  if (!all.at("normalizer").is_null()) {
    const Part normalizer = all.part("normalizer");
    if (normalizer.at("type") == "Sequence") {
      normalizer.each("normalizers",
                      [&](const Part& part) { read_unigram_normalizer(part, unigram); });
    } else {
      read_unigram_normalizer(normalizer, unigram);
    }
  }
  const Part cutter = all.part("pre_tokenizer");
  unigram.split_white_space = cutter.at("type") == "Sequence";
  if (!unigram.split_white_space) {
    require_metaspace(cutter);
  } else {
    int number = 0;
    cutter.each("pretokenizers", [&](const Part& part) {
      if (number++ > 0) {
        require_metaspace(part);
      } else if (part.at("type") != "WhitespaceSplit") {
        part.refuse("type", "WhitespaceSplit");
      }
    });
    if (number != 2) cutter.refuse("pretokenizers", "WhitespaceSplit and Metaspace");
  }
  const Part processor = all.part("post_processor");
  if (processor.at("type") != "TemplateProcessing") {
    processor.refuse("type", "TemplateProcessing");
  }
  const Json& single = processor.at("single");
  const Json::json_pointer token("/1/SpecialToken/id");
  if (!single.is_array() || single.size() != 2 || !single[1].is_object() ||
      !single.contains(token) || !single[token].is_string()) {
    processor.refuse("single", "A and a special token");
  }
  result.eos_token = single[token].get<std::string>();
  const auto text = [](const char* name) {
    return Json{{"Sequence", {{"id", name}, {"type_id", 0}}}};
  };
  const Json end{{"SpecialToken", {{"id", result.eos_token}, {"type_id", 0}}}};
  if (single != Json{text("A"), end}) processor.refuse("single", Json{text("A"), end}.dump());
  const Json pair{text("A"), end, text("B"), end};
  if (processor.at("pair") != pair) processor.refuse("pair", pair.dump());
}

/// The token of a pair `[token, id]`.
std::string token_of(const Part& processor, const char* field) {
  const Json& pair = processor.at(field);
  if (!pair.is_array() || pair.empty() || !pair[0].is_string()) {
    processor.refuse(field, "a token and its id");
  }
  return pair[0].get<std::string>();
}

/// Reads the special tokens around a text. A pair must have the form usual for its kind of
/// backbone.
void read_template(const Part& processor, TokenizerJson& result) {
  constexpr const char* kWanted = "a special token, A and a special token";
  const auto special = [&](const Json& piece) {
    const Json::json_pointer id("/SpecialToken/id");
    if (!piece.is_object() || !piece.contains(id) || !piece[id].is_string()) {
      processor.refuse("single", kWanted);
    }
    return piece[id].get<std::string>();
  };
  const Json& single = processor.at("single");
  const Json::json_pointer sequence("/Sequence/id");
  if (!single.is_array() || single.size() != 3 || !single[1].is_object() ||
      !single[1].contains(sequence) || single[1][sequence] != "A") {
    processor.refuse("single", kWanted);
  }
  result.cls_token = special(single[0]);
  result.sep_token = special(single[2]);
  const auto token = [](const std::string& name, int type) {
    return Json{{"SpecialToken", {{"id", name}, {"type_id", type}}}};
  };
  const auto text = [](const char* name, int type) {
    return Json{{"Sequence", {{"id", name}, {"type_id", type}}}};
  };
  const std::string& cls = result.cls_token;
  const std::string& sep = result.sep_token;
  // [CLS] A [SEP] B [SEP]
  const auto pair = [&](int type) {
    return Json{token(cls, 0), text("A", 0), token(sep, 0), text("B", type), token(sep, type)};
  };
  const Json& found = processor.at("pair");
  if (!result.byte_bpe) {
    if (found != pair(1)) processor.refuse("pair", pair(1).dump());
    return;
  }
  result.single_separator = found == pair(0) || found == pair(1);
  result.second_type = found == pair(1) ? 1 : 0;
  // RoBERTa's <s> A </s></s> B </s> usually has its own processor.
  const Json wanted{token(cls, 0), text("A", 0), token(sep, 0),
                    token(sep, 0), text("B", 0), token(sep, 0)};
  if (!result.single_separator && found != wanted) processor.refuse("pair", wanted.dump());
}

}  // namespace

Json TokenizerJson::settings() const {
  if (unigram) return Json{{"eos_token", eos_token}, {"unk_token", unk_token}};
  Json result{{"cls_token", cls_token}, {"sep_token", sep_token}};
  if (byte_bpe) {
    result["add_prefix_space"] = add_prefix_space;
  } else {
    result["unk_token"] = unk_token;
    result["do_lower_case"] = lower_case;
    result["strip_accents"] = strip_accents < 0 ? Json() : Json(strip_accents == 1);
    result["tokenize_chinese_chars"] = split_chinese;
  }
  return result;
}

TokenizerJson read_tokenizer_json(const Json& json, const std::string& file) {
  TokenizerJson result;
  const Part all(json, file, "");
  const Part model = all.part("model");
  if (model.at("type") == "Unigram") {
    read_unigram(all, model, result);
    return result;
  }
  read_vocabulary(model, result);
  if (model.at("type") == "WordPiece") {
    read_wordpiece(all, model, result);
  } else if (model.at("type") == "BPE") {
    read_byte_bpe(all, model, result);
  } else {
    model.refuse("type", "WordPiece, BPE or Unigram");
  }
  const Part processor = all.part("post_processor");
  const Json& type = processor.at("type");
  if (type == (result.byte_bpe ? "RobertaProcessing" : "BertProcessing")) {
    result.cls_token = token_of(processor, "cls");
    result.sep_token = token_of(processor, "sep");
  } else if (type == "TemplateProcessing") {
    read_template(processor, result);
  } else {
    processor.refuse("type", result.byte_bpe ? "RobertaProcessing or TemplateProcessing"
                                             : "BertProcessing or TemplateProcessing");
  }
  return result;
}

Json added_tokens_decoder(const Json& json, const std::string& file) {
  const Part all(json, file, "");
  Json result = Json::object();
  if (all.at("added_tokens").is_null()) return result;
  if (!all.at("added_tokens").is_array()) all.refuse("added_tokens", "a list of tokens");
  for (const Json& token : all.at("added_tokens")) {
    if (!token.is_object() || !token.contains("id") || !token["id"].is_number_unsigned()) {
      all.refuse("added_tokens", "a list of tokens with their ids");
    }
    result[std::to_string(token["id"].get<std::uint64_t>())] = token;
  }
  return result;
}

}  // namespace petlab::trainer
