#include "trainer/tokenizers/tokenizer.h"

#include <stdexcept>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"
#include "trainer/files/error.h"
#include "trainer/files/utf8.h"
#include "trainer/tokenizers/byte_bpe.h"

namespace petlab::trainer {
namespace {

using Ids = std::vector<std::int32_t>;

constexpr const char* kVocab =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\nwant\n!\ncafe\n";

/// A vocab.json with the 256 bytes in GPT-2's alphabet, numbered by byte, followed by `more`.
std::string byte_vocab(const std::vector<std::string>& more) {
  std::string json = "{";
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool prints = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
    std::string token;
    append_utf8(prints ? static_cast<char32_t>(byte) : next++, token);
    if (token == "\"" || token == "\\") token.insert(0, 1, '\\');
    json += "\"" + token + "\": " + std::to_string(byte) + ", ";
  }
  for (std::size_t i = 0; i < more.size(); ++i) {
    json += "\"" + more[i] + "\": " + std::to_string(256 + i) + (i + 1 < more.size() ? ", " : "");
  }
  return json + "}";
}

std::string message(const std::filesystem::path& folder) {
  try {
    load_tokenizer(folder);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("WordPiece uses the longest pieces and one unknown token for an uncovered word",
          "[trainer][files]") {
  const testing::TempDir dir;
  dir.write("vocab.txt", kVocab);
  const auto tokenizer = load_tokenizer(dir.path());
  CHECK(tokenizer->encode("Unaffable!").ids == Ids{2, 5, 6, 7, 9, 3});
  CHECK(tokenizer->encode("unaffablex want").ids == Ids{2, 1, 8, 3});
  CHECK(tokenizer->encode("caf\u00c9 [MASK]").ids == Ids{2, 10, 4, 3});
  CHECK(tokenizer->decode(Ids{2, 5, 6, 7, 9, 3}, true) == "unaffable!");
  const Encoding pair = tokenizer->encode("want", "want want");
  CHECK(pair.ids == Ids{2, 8, 3, 8, 8, 3});
  CHECK(pair.type_ids == Ids{0, 0, 0, 1, 1, 1});
}

TEST_CASE("truncation of a pair shortens the longer text first, or the first of equal ones",
          "[trainer][files]") {
  const testing::TempDir dir;
  dir.write("vocab.txt", kVocab);
  const auto tokenizer = load_tokenizer(dir.path());
  const std::string seven = "! ! ! ! ! ! !";
  CHECK(tokenizer->encode(seven, seven, 16).type_ids ==
        Ids{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1});
  CHECK(tokenizer->encode("! !", seven, 9).type_ids == Ids{0, 0, 0, 0, 1, 1, 1, 1, 1});
  CHECK(tokenizer->encode(seven, std::nullopt, 4).ids == Ids{2, 9, 9, 3});
  CHECK_THROWS_WITH(tokenizer->encode(seven, seven, 2),
                    "max_tokens is 2, must be at least 3, the special tokens");
  CHECK_THROWS_WITH(tokenizer->encode("ab\xff"), "byte 3 of the text is not UTF-8 (0xFF)");
}

TEST_CASE("truncation_side decides which tokens are kept, or tokenizer.json if it is absent",
          "[trainer][files]") {
  const testing::TempDir dir;
  dir.write("vocab.txt", kVocab);
  const auto ids = [&] {
    return load_tokenizer(dir.path())->encode("want ! unaffable", {}, 4).ids;
  };
  CHECK(ids() == Ids{2, 8, 9, 3});
  dir.write("tokenizer_config.json", R"({"truncation_side": "left"})");
  CHECK(ids() == Ids{2, 6, 7, 3});
  CHECK(load_tokenizer(dir.path())->encode("! want", "want !", 6).ids == Ids{2, 8, 3, 8, 9, 3});
  dir.write("tokenizer.json", R"({"truncation": {"direction": "Left", "max_length": 3}})");
  dir.write("tokenizer_config.json", R"({"truncation_side": "right"})");
  CHECK(ids() == Ids{2, 8, 9, 3});
  dir.write("tokenizer_config.json", "{}");
  CHECK(ids() == Ids{2, 6, 7, 3});
  dir.write("tokenizer.json", R"({"truncation": null})");
  CHECK(ids() == Ids{2, 8, 9, 3});
  dir.write("tokenizer_config.json", R"({"truncation_side": "middle"})");
  CHECK(message(dir.path()) ==
        dir.path().string() +
            "/tokenizer_config.json: truncation_side is \"middle\", expected left or right");
}

TEST_CASE("a cased WordPiece folder keeps case and accents", "[trainer][files]") {
  const testing::TempDir dir;
  dir.write("vocab.txt", std::string(kVocab) + "Want\ncaf\u00e9\n");
  dir.write("tokenizer_config.json", R"({"do_lower_case": false})");
  const auto tokenizer = load_tokenizer(dir.path());
  CHECK(tokenizer->encode("Want want caf\u00e9 cafe").ids == Ids{2, 11, 8, 12, 10, 3});
}

TEST_CASE("a single-word token is not found inside a word of any script", "[trainer][files]") {
  const testing::TempDir dir;
  dir.write("vocab.txt", kVocab);
  dir.write("tokenizer_config.json",
            R"({"added_tokens_decoder": {
                "11": {"content": "tok", "single_word": true, "normalized": false},
                "12": {"content": "ok", "normalized": false}}})");
  const auto tokenizer = load_tokenizer(dir.path());
  CHECK(tokenizer->tokenize("tok!tok ok") == Ids{11, 9, 11, 12});
  // A letter, a digit, spacing and non-spacing marks, a Roman numeral and a joiner. The shorter
  // token is not found inside the rejected one either.
  for (const std::string beside : {"x", "7", "\u0903", "\u0301", "\u2167", "\u200d"}) {
    CHECK(tokenizer->tokenize("tok" + beside) == Ids{1});
    CHECK(tokenizer->tokenize(beside + "tok") == Ids{1});
  }
}

TEST_CASE("byte-level BPE applies merges in their order", "[trainer][files]") {
  const testing::TempDir dir;
  dir.write("vocab.json", byte_vocab({"ab", "abc", "bc", "\u0120ab"}));
  dir.write("merges.txt", "#version: 0.2\na b\nb c\nab c\n\u0120 ab\n");
  const auto tokenizer = load_tokenizer(dir.path());
  CHECK(tokenizer->encode("abc").ids == Ids{257});
  CHECK(tokenizer->encode("bc ab ab").ids == Ids{258, 259, 259});
  CHECK(tokenizer->encode("\u00e9").ids == Ids{0xc3, 0xa9});
  CHECK(tokenizer->decode(Ids{257, 259, 0xc3, 0xa9}, true) == "abc ab\u00e9");
  // Long words are merged with a queue, which must follow the same rule.
  std::string text;
  Ids wanted;
  for (int i = 0; i < 40; ++i) {
    text += i % 3 == 0 ? "bc" : "abc";
    wanted.push_back(i % 3 == 0 ? 258 : 257);
  }
  CHECK(tokenizer->encode(text).ids == wanted);
}

TEST_CASE("a prefix space is added before anything but a plain space", "[trainer][files]") {
  const testing::TempDir dir;
  dir.write("vocab.json", byte_vocab({"\u0120a", "<m>"}));
  dir.write("merges.txt", "\u0120 a\n");
  dir.write("tokenizer_config.json",
            R"({"add_prefix_space": true, "added_tokens_decoder": {"257": {"content": "<m>",
                "special": true, "normalized": false}}})");
  const auto tokenizer = load_tokenizer(dir.path());
  CHECK(tokenizer->encode("a a").ids == Ids{256, 256});
  CHECK(tokenizer->encode(" a").ids == Ids{256});
  CHECK(tokenizer->encode("\ta").ids == Ids{' ', '\t', 'a'});
  CHECK(tokenizer->encode("\u00a0<m>a<m> <m>\r").ids ==
        Ids{' ', 0xc2, 0xa0, 257, 256, 257, ' ', 257, ' ', '\r'});
}

TEST_CASE("words are split as by GPT-2's regular expression", "[trainer][files]") {
  const auto words = [](std::string_view text) {
    std::vector<std::string> result;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = gpt2_word_end(text, begin);
      result.emplace_back(text.substr(begin, end - begin));
      begin = end;
    }
    return result;
  };
  using Words = std::vector<std::string>;
  CHECK(words("I'll go, won't I?") == Words{"I", "'ll", " go", ",", " won", "'t", " I", "?"});
  CHECK(words("a   b") == Words{"a", "  ", " b"});
  CHECK(words("a\t\tb  ") == Words{"a", "\t", "\t", "b", "  "});
  CHECK(words("x12 y\u00e9\u3000z") == Words{"x", "12", " y\u00e9", "\u3000", "z"});
  CHECK(words("DON'T ''s") == Words{"DON", "'", "T", " ''", "s"});
}

TEST_CASE("a normalized token is found in the text that WordPiece normalised", "[trainer][files]") {
  const testing::TempDir dir;
  dir.write("vocab.txt", kVocab);
  dir.write("tokenizer_config.json",
            R"({"added_tokens_decoder": {
                "4": {"content": "[MASK]", "normalized": true, "special": true, "lstrip": true},
                "11": {"content": "Caf\u00e9 au lait", "special": false},
                "12": {"content": "Want", "normalized": false}}})");
  const auto tokenizer = load_tokenizer(dir.path());
  CHECK(tokenizer->tokenize("cafe \t[mask]want") == Ids{10, 4, 8});
  // Tokens that are not normalized are found first, in the original text.
  CHECK(tokenizer->tokenize("WantCAFE AU\tLAITwant") == Ids{12, 11, 8});
  CHECK(tokenizer->decode(Ids{11}, true) == "Caf\u00e9 au lait");
}

TEST_CASE("added tokens are read from the older files if added_tokens_decoder is missing",
          "[trainer][files]") {
  const testing::TempDir dir;
  dir.write("vocab.txt", std::string(kVocab) + "<cls>\n<x>\n");
  dir.write("tokenizer_config.json", R"({"cls_token": "[CLS]"})");
  dir.write("special_tokens_map.json",
            R"({"cls_token": "<cls>", "additional_special_tokens": ["[E1]", "<x>"]})");
  dir.write("added_tokens.json", R"({"[E1]": 13, "[E2]": 14})");
  const auto old = load_tokenizer(dir.path());
  // [E1] is special and found only as written; [E2] is normalised.
  CHECK(old->encode("want[E1] [e2]<x>").ids == Ids{11, 8, 13, 14, 12, 3});
  CHECK(old->tokenize("[e1]") == Ids{1, 1, 1});
  CHECK(old->vocab_size() == 15);
  dir.write("tokenizer.json",
            R"({"added_tokens": [{"id": 14, "content": "[E2]", "normalized": false,
                                  "rstrip": true}]})");
  CHECK(load_tokenizer(dir.path())->tokenize("[E2] want [e2]") == Ids{14, 8, 1, 1, 1});
  dir.write("tokenizer_config.json", R"({"cls_token": "[CLS]", "added_tokens_decoder": {}})");
  const auto newer = load_tokenizer(dir.path());
  CHECK(newer->encode("[E1]").ids == Ids{2, 1, 1, 1, 3});
  const std::string at = dir.path().string();
  dir.write("tokenizer_config.json", "{}");
  dir.write("special_tokens_map.json", R"({"additional_special_tokens": ["<y>"]})");
  CHECK(message(dir.path()) == at + "/vocab.txt: has no token <y>, expected all special tokens");
  dir.write("added_tokens.json", R"({"[E1]": "13"})");
  CHECK(message(dir.path()) ==
        at + "/added_tokens.json: [E1] is \"13\", expected an id in 0..99999999");
}

TEST_CASE("a folder with only tokenizer.json has a tokenizer", "[trainer][files]") {
  const testing::TempDir dir;
  const std::string at = dir.path().string() + "/tokenizer.json";
  const std::string wordpiece =
      R"({"added_tokens": [{"id": 4, "content": "[MASK]", "special": true, "normalized": false}],
          "normalizer": {"type": "BertNormalizer", "clean_text": true, "lowercase": false,
                         "handle_chinese_chars": true, "strip_accents": null},
          "pre_tokenizer": {"type": "BertPreTokenizer"},
          "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
          "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                    "max_input_chars_per_word": 100,
                    "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4,
                              "Un": 5, "##able": 6}}})";
  const auto changed = [&](std::string text, const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
    dir.write("tokenizer.json", text);
    return message(dir.path());
  };
  dir.write("tokenizer.json", wordpiece);
  CHECK(load_tokenizer(dir.path())->encode("Unable [MASK] unable").ids == Ids{2, 5, 6, 4, 1, 3});
  dir.write("tokenizer_config.json", R"({"do_lower_case": true})");
  CHECK(message(dir.path()) == dir.path().string() +
                                   "/tokenizer_config.json: do_lower_case is true, expected false, "
                                   "as in " +
                                   at);
  dir.write("tokenizer_config.json", "{}");
  CHECK(changed(wordpiece, "BertNormalizer", "Lowercase") ==
        at + ": normalizer.type is \"Lowercase\", expected BertNormalizer");
  CHECK(changed(wordpiece, "BertProcessing", "ByteLevel") ==
        at + ": post_processor.type is \"ByteLevel\", expected BertProcessing or "
             "TemplateProcessing");
  CHECK(changed(wordpiece, "WordPiece", "WordLevel") ==
        at + ": model.type is \"WordLevel\", expected WordPiece, BPE or Unigram");
  CHECK(changed(wordpiece, "100", "50") ==
        at + ": model.max_input_chars_per_word is 50, expected 100");
  CHECK(changed(wordpiece, R"("Un": 5)", R"("Un": "5")") ==
        at + ": model.vocab.Un is \"5\", expected a whole number");
  CHECK(changed(wordpiece, "{\"type\": \"BertPreTokenizer\"}", "[]") ==
        at + ": pre_tokenizer is [], expected an object");

  // [CLS] A [SEP], written as a template.
  const std::string pieces =
      R"({"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
         {"SpecialToken": {"id": "[SEP]", "type_id": 0}})";
  const std::string second =
      R"(, {"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}})";
  const std::string processor =
      R"({"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]})";
  const auto of_template = [&](const std::string& single, const std::string& pair) {
    return changed(
        wordpiece, processor,
        R"({"type": "TemplateProcessing", "single": [)" + single + R"(], "pair": [)" + pair + "]}");
  };
  CHECK(of_template(pieces, pieces + second) == "no error");
  CHECK(load_tokenizer(dir.path())->encode("Un", "Un").ids == Ids{2, 5, 3, 5, 3});
  CHECK_THAT(of_template(pieces, pieces),
             Catch::Matchers::StartsWith(at + ": post_processor.pair is "));
  CHECK_THAT(of_template(pieces + second, pieces + second),
             Catch::Matchers::EndsWith("expected a special token, A and a special token"));

  std::string bpe =
      R"({"normalizer": null, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
          "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 258], "cls": ["<s>", 256]},
          "model": {"type": "BPE", "dropout": null, "merges": ["a b", ["ab", "c"]], "vocab": )" +
      byte_vocab({"<s>", "<pad>", "</s>", "<unk>", "ab", "abc"}) + "}}";
  dir.write("tokenizer.json", bpe);
  CHECK(load_tokenizer(dir.path())->encode("abc ab").ids == Ids{256, 261, ' ', 260, 258});
  CHECK(changed(bpe, R"(["ab", "c"])", R"("ab")") ==
        at + ": model.merges is [\"a b\",\"ab\"], expected a list of pairs of tokens, found "
             "\"ab\" as number 2");
  CHECK(changed(bpe, "\"dropout\": null", "\"dropout\": 0.1") ==
        at + ": model.dropout is 0.1, expected 0.0");
  CHECK(changed(bpe, "\"normalizer\": null", "\"normalizer\": {\"type\": \"NFKC\"}") ==
        at + ": normalizer.type is \"NFKC\", expected NFC, or no normalizer");
}

TEST_CASE("ModernBERT's tokenizer.json composes characters and has one separator",
          "[trainer][files]") {
  const testing::TempDir dir;
  const auto piece = [](const char* kind, const char* id, int type) {
    return std::string("{\"") + kind + "\": {\"id\": \"" + id +
           "\", \"type_id\": " + std::to_string(type) + "}}";
  };
  const int type = GENERATE(0, 1);
  const std::string single = piece("SpecialToken", "[CLS]", 0) + ", " + piece("Sequence", "A", 0) +
                             ", " + piece("SpecialToken", "[SEP]", 0);
  const std::string pair =
      single + ", " + piece("Sequence", "B", type) + ", " + piece("SpecialToken", "[SEP]", type);
  // The special tokens are not in the model's own vocabulary.
  dir.write("tokenizer.json",
            R"({"normalizer": {"type": "NFC"},
                "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
                "added_tokens": [
                  {"id": 257, "content": "[CLS]", "special": true, "normalized": false},
                  {"id": 258, "content": "[SEP]", "special": true, "normalized": false},
                  {"id": 259, "content": "   ", "special": false, "normalized": true},
                  {"id": 260, "content": "[MASK]", "special": true, "normalized": false,
                   "lstrip": true},
                  {"id": 261, "content": "[PAD]", "special": true, "normalized": false}],
                "post_processor": {"type": "TemplateProcessing", "single": [)" +
                single + "], \"pair\": [" + pair +
                R"(]}, "model": {"type": "BPE", "merges": ["a b"], "vocab": )" +
                byte_vocab({"ab"}) + "}}");
  dir.write("tokenizer_config.json", R"({"tokenizer_class": "PreTrainedTokenizerFast",
            "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]",
            "pad_token": "[PAD]"})");
  const auto tokenizer = load_tokenizer(dir.path());
  CHECK(tokenizer->vocab_size() == 262);
  CHECK(tokenizer->special().pad == 261);
  CHECK(tokenizer->encode("ab   a").ids == Ids{257, 256, 259, 'a', 258});
  CHECK(tokenizer->encode("b [MASK][CLS]").ids == Ids{257, 'b', 260, 257, 258});
  CHECK(tokenizer->tokenize("e\u0301") == Ids{0xc3, 0xa9});
  const Encoding both = tokenizer->encode("a", "b");
  CHECK(both.ids == Ids{257, 'a', 258, 'b', 258});
  CHECK(both.type_ids == Ids{0, 0, 0, type, type});
}

TEST_CASE("bad tokenizer files are refused with their name", "[trainer][files]") {
  const testing::TempDir dir;
  const std::string at = dir.path().string();
  CHECK(message(dir.path()) ==
        at + ": found no tokenizer, expected vocab.txt (WordPiece), vocab.json with merges.txt "
             "(BPE), spiece.model (unigram) or tokenizer.json");
  dir.write("vocab.json", byte_vocab({"ab"}));
  dir.write("merges.txt", "a b\nb c\n");
  CHECK(message(dir.path()) ==
        at + "/merges.txt: merge 2 ('b' 'c') is not in the vocabulary " + at + "/vocab.json");
  dir.write("merges.txt", "a b\nb\n");
  CHECK(message(dir.path()) == at + "/merges.txt:2: found 'b', expected two tokens and one space");
  dir.write("vocab.json", R"({"a": 0, "b": 0})");
  CHECK(message(dir.path()) == at + "/vocab.json: tokens 'a' and 'b' have the same id 0");
  dir.write("vocab.json", R"({"a": -1})");
  CHECK(message(dir.path()) == at + "/vocab.json: token 'a' has id -1, must be in 0..9999999");
  dir.write("vocab.json", R"({"a": 0})");
  dir.write("merges.txt", "");
  CHECK(message(dir.path()) ==
        at + "/vocab.json: has no token '\u0100' for byte 0x00, expected all 256");
  dir.write("tokenizer_config.json", R"({"add_prefix_space": 3})");
  CHECK(message(dir.path()) ==
        at + "/tokenizer_config.json: add_prefix_space is 3, expected true or false");
  dir.write("tokenizer_config.json", std::string(200'000, '['));
  CHECK(message(dir.path()) ==
        at + "/tokenizer_config.json: must have at most 64 levels of nesting");
  dir.write("tokenizer_config.json", "{}");
  dir.write("vocab.txt", "[PAD]\n\xff\n");
  CHECK(message(dir.path()) == at + "/vocab.txt:2: byte 1 is not UTF-8");
  dir.write("vocab.txt", "a\n");
  CHECK(message(dir.path()) == at + "/vocab.txt: has no token [UNK], expected all special tokens");
}

}  // namespace
}  // namespace petlab::trainer
