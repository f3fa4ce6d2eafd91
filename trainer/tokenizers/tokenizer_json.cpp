#include "trainer/tokenizers/tokenizer_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "trainer/files/error.h"

namespace petlab::trainer {
namespace {

using Json = nlohmann::json;

/// An object of the file; messages name the file and the way to a field.
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
  std::string text(const char* field) const {
    if (!at(field).is_string()) refuse(field, "a string");
    return at(field).get<std::string>();
  }
  bool flag(const char* field) const {
    if (!at(field).is_boolean()) refuse(field, "true or false");
    return at(field).get<bool>();
  }
  /// One that is not there, or null, is all right, too.
  void require(const char* field, const Json& only) const {
    if (!at(field).is_null() && at(field) != only) refuse(field, only.dump());
  }
  [[noreturn]] void refuse(const char* field, const std::string& wanted) const {
    throw Error(
        fmt::format("{}: {} is {}, wanted {}", file_, path_of(field), shown(at(field)), wanted));
  }
  [[noreturn]] void refuse_whole(const std::string& wanted) const {
    throw Error(fmt::format("{}: {} is {}, wanted {}", file_, path_.empty() ? "it" : path_,
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

/// Each is "a b", or ["a", "b"] in newer files.
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
  all.require("normalizer", nullptr);
  const Part cutter = all.part("pre_tokenizer");
  if (cutter.at("type") != "ByteLevel") cutter.refuse("type", "ByteLevel");
  cutter.require("use_regex", true);
  result.add_prefix_space = cutter.flag("add_prefix_space");
}

/// The token of `[token, id]`.
std::string token_of(const Part& processor, const char* field) {
  const Json& pair = processor.at(field);
  if (!pair.is_array() || pair.empty() || !pair[0].is_string()) {
    processor.refuse(field, "a token and its id");
  }
  return pair[0].get<std::string>();
}

/// What stands around a text; a pair is then as the backbone's kind has it.
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
  // [CLS] A [SEP] B [SEP]; RoBERTa's <s> A </s></s> B </s> has its own processor as a rule.
  const auto token = [](const std::string& name, int type) {
    return Json{{"SpecialToken", {{"id", name}, {"type_id", type}}}};
  };
  const auto text = [](const char* name, int type) {
    return Json{{"Sequence", {{"id", name}, {"type_id", type}}}};
  };
  const std::string& cls = result.cls_token;
  const std::string& sep = result.sep_token;
  const Json wanted = result.byte_bpe ? Json{token(cls, 0), text("A", 0), token(sep, 0),
                                             token(sep, 0), text("B", 0), token(sep, 0)}
                                      : Json{token(cls, 0), text("A", 0), token(sep, 0),
                                             text("B", 1), token(sep, 1)};
  if (processor.at("pair") != wanted) processor.refuse("pair", wanted.dump());
}

}  // namespace

Json TokenizerJson::settings() const {
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
  read_vocabulary(model, result);
  if (model.at("type") == "WordPiece") {
    read_wordpiece(all, model, result);
  } else if (model.at("type") == "BPE") {
    read_byte_bpe(all, model, result);
  } else {
    model.refuse("type", "WordPiece or BPE");
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
