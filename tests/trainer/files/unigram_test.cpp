// T5's tokenizer. The expected ids come from Hugging Face's tokenizers library with the same
// pieces.
#include "trainer/tokenizers/unigram.h"

#include <bit>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"
#include "trainer/files/error.h"

namespace petlab::trainer {
namespace {

using Ids = std::vector<std::int32_t>;
using Json = nlohmann::json;

const std::vector<std::pair<std::string, float>> kPieces{{"<pad>", 0},
                                                         {"</s>", 0},
                                                         {"<unk>", 0},
                                                         {"\u2581", -2},
                                                         {"a", -3},
                                                         {"b", -3.5},
                                                         {"ab", -6},
                                                         {"\u2581"
                                                          "ab",
                                                          -4},
                                                         {"abc", -7},
                                                         {"\u2581"
                                                          "a",
                                                          -3.25},
                                                         {"\u00e9", -5},
                                                         {"bb", -9}};

/// Encodes a protocol buffer field: a string or message.
std::string field_of(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
std::string varint_field(int number, int value) {
  std::string field;
  if (number >= 16) {
    field = {static_cast<char>((number << 3 & 0x7F) | 0x80), static_cast<char>(number >> 4)};
  } else {
    field = {static_cast<char>(number << 3)};
  }
  return field + static_cast<char>(value);
}

std::string spiece_model(const std::string& more = "") {
  std::string model;
  for (std::size_t i = 0; i < kPieces.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(kPieces[i].second);
    std::string score{static_cast<char>(2 << 3 | 5)};
    for (int byte = 0; byte < 4; ++byte) score += static_cast<char>(bits >> 8 * byte & 0xFF);
    const int type = i == 2 ? 2 : i < 2 ? 3 : 1;
    model += field_of(1, field_of(1, kPieces[i].first) + score + varint_field(3, type));
  }
  return model + more;
}

Json tokenizer_json() {
  Json vocabulary = Json::array();
  for (const auto& [piece, score] : kPieces) vocabulary.push_back({piece, score});
  const Json metaspace{{"type", "Metaspace"},
                       {"replacement", "\u2581"},
                       {"prepend_scheme", "always"},
                       {"split", true}};
  const auto text = [](const char* name) {
    return Json{{"Sequence", {{"id", name}, {"type_id", 0}}}};
  };
  const Json end{{"SpecialToken", {{"id", "</s>"}, {"type_id", 0}}}};
  Json added = Json::array();
  for (int id = 0; id < 3; ++id) {
    added.push_back({{"id", id},
                     {"content", kPieces[static_cast<std::size_t>(id)].first},
                     {"special", true},
                     {"normalized", false}});
  }
  return {{"added_tokens", added},
          {"normalizer",
           {{"type", "Sequence"},
            {"normalizers",
             {{{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}},
              {{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", "\u2581"}}}}}},
          {"pre_tokenizer", metaspace},
          {"post_processor",
           {{"type", "TemplateProcessing"},
            {"single", {text("A"), end}},
            {"pair", {text("A"), end, text("B"), end}}}},
          {"model",
           {{"type", "Unigram"}, {"unk_id", 2}, {"vocab", vocabulary}, {"byte_fallback", false}}}};
}

std::unique_ptr<Tokenizer> made_of(const std::string& model) {
  return make_tokenizer({.spiece_model = TokenizerFiles::File{"spiece.model", model}});
}
std::unique_ptr<Tokenizer> made_of(const Json& json) {
  const std::string text = json.dump();
  return make_tokenizer({.tokenizer_json = TokenizerFiles::File{"tokenizer.json", text}});
}

template <typename Source>
std::string refusal(const Source& source) {
  try {
    made_of(source);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a spiece.model splits words into the most probable pieces", "[trainer][files]") {
  const auto tokenizer = made_of(spiece_model());
  const std::vector<std::pair<std::string, Ids>> wanted{{"", {}},
                                                        {"ab", {7}},
                                                        {"abc", {3, 8}},
                                                        {"aab", {9, 6}},
                                                        {"bb", {3, 5, 5}},
                                                        {"abb", {7, 5}},
                                                        {"xyz", {3, 2}},
                                                        {"axyb", {9, 2, 5}},
                                                        {"a b", {9, 3, 5}},
                                                        {"  a   b ", {9, 3, 5}},
                                                        {"a\tb", {9, 3, 5}},
                                                        {"a\u2581"
                                                         "b",
                                                         {9, 3, 5}},
                                                        {"\u2581", {3}},
                                                        {"x \u00e9", {3, 2, 3, 10}},
                                                        {"ab ab", {7, 7}},
                                                        {"\u2581 a", {3, 9}},
                                                        {" \t", {}},
                                                        {"a\u0085"
                                                         "b ",
                                                         {9, 3, 5}},
                                                        {"cabcab", {3, 2, 8, 6}},
                                                        {"a  \u2581", {9, 3}}};
  for (const auto& [text, ids] : wanted) {
    INFO(text);
    CHECK(tokenizer->tokenize(text) == ids);
  }
  CHECK(tokenizer->vocab_size() == 112);  // 12 pieces and 100 extra ids
  CHECK(tokenizer->encode("ab", "b", 0).ids == Ids{7, 1, 3, 5, 1});
  CHECK(tokenizer->encode("<extra_id_0> a<extra_id_99>b</s>").ids == Ids{111, 9, 12, 3, 5, 1, 1});
  CHECK(tokenizer->decode(Ids{3, 7, 2, 9}, false) == " ab<unk> a");
  CHECK(tokenizer->decode(Ids{7, 4, 1, 0}, true) == "aba");
  // An id outside the vocabulary is ignored.
  CHECK(tokenizer->decode(Ids{112, 7, 112, 4, -1}, true) == tokenizer->decode(Ids{7, 4}, true));
  CHECK(tokenizer->decode(Ids{112}, true).empty());
}

TEST_CASE("a unigram tokenizer.json defines how words are split", "[trainer][files]") {
  const auto tokenizer = made_of(tokenizer_json());
  // Unlike with spiece.model, a tab is not a space, and repeated spaces are a piece of their own.
  const std::vector<std::pair<std::string, Ids>> wanted{{"  a   b ", {9, 3, 5}},
                                                        {"a\tb", {9, 2, 5}},
                                                        {"a\u0085"
                                                         "b ",
                                                         {9, 2, 5}},
                                                        {"a  \u2581", {9, 3, 3}},
                                                        {"\u2581 a", {3, 9}},
                                                        {" \t", {}},
                                                        {"cabcab", {3, 2, 8, 6}}};
  for (const auto& [text, ids] : wanted) {
    INFO(text);
    CHECK(tokenizer->tokenize(text) == ids);
  }
  CHECK(tokenizer->vocab_size() == 12);
  CHECK(tokenizer->encode("ab</s>").ids == Ids{7, 1, 1});
}

TEST_CASE("a SentencePiece model that is damaged, or of another kind, is refused",
          "[trainer][files]") {
  CHECK(refusal(spiece_model(field_of(2, varint_field(3, 2)))) ==
        "spiece.model: trainer_spec.model_type (1: unigram) is 2, expected 1");
  CHECK(refusal(spiece_model(field_of(2, varint_field(35, 1)))) ==
        "spiece.model: trainer_spec.byte_fallback is 1, expected 0");
  CHECK(refusal(spiece_model(field_of(3, varint_field(3, 0)))) ==
        "spiece.model: normalizer_spec.add_dummy_prefix is 0, expected 1");
  CHECK(refusal(spiece_model(field_of(3, field_of(2, "abc")))) ==
        "spiece.model: the character map is not a compiled normalisation: it is shorter than its "
        "length field");
  CHECK(refusal(std::string()) == "spiece.model: has no pieces, expected a SentencePiece model");
  CHECK(refusal(spiece_model().substr(0, 20)) ==
        "spiece.model: byte 19: a field ends beyond the file: not a SentencePiece model, or a "
        "damaged one");
  CHECK(refusal(spiece_model() + spiece_model().substr(0, 16)) ==
        "spiece.model: the pieces 0 and 12 are both '<pad>', expected each once");
}

TEST_CASE("a unigram tokenizer.json that is not T5's is refused with its field",
          "[trainer][files]") {
  const auto changed = [](const std::string& pointer, const Json& value) {
    Json json = tokenizer_json();
    json[Json::json_pointer(pointer)] = value;
    return refusal(json);
  };
  CHECK(changed("/model/unk_id", 12) ==
        "tokenizer.json: model.unk_id is 12, expected the number of "
        "a piece");
  CHECK(changed("/model/byte_fallback", true) ==
        "tokenizer.json: model.byte_fallback is true, expected false");
  CHECK(changed("/model/vocab", Json::object()) ==
        "tokenizer.json: model.vocab is {}, expected a list of [piece, score]");
  CHECK(changed("/pre_tokenizer/prepend_scheme", "first") ==
        "tokenizer.json: pre_tokenizer.prepend_scheme is \"first\", expected \"always\"");
  CHECK(changed("/normalizer/normalizers/0/strip_left", true) ==
        "tokenizer.json: normalizer.normalizers.0.strip_left is true, expected false, and "
        "strip_right true");
  CHECK(changed("/normalizer", Json{{"type", "Precompiled"}, {"precompiled_charsmap", "a?=="}}) ==
        "tokenizer.json: normalizer.precompiled_charsmap is not base64");
  CHECK(changed("/normalizer", Json{{"type", "NFKC"}}) ==
        "tokenizer.json: normalizer.type is \"NFKC\", expected Precompiled, Strip, Replace or a "
        "Sequence of these");
  CHECK(changed("/post_processor/type", "BertProcessing") ==
        "tokenizer.json: post_processor.type is \"BertProcessing\", expected TemplateProcessing");
}

}  // namespace
}  // namespace petlab::trainer
