#include "trainer/tokenizers/tokenizer.h"

#include <stdexcept>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"
#include "trainer/error.h"
#include "trainer/tokenizers/byte_bpe.h"
#include "trainer/tokenizers/utf8.h"

namespace petlab::trainer {
namespace {

using Ids = std::vector<std::int32_t>;

constexpr const char* kVocab =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\nwant\n!\ncafe\n";

/// vocab.json of the 256 bytes in GPT-2's alphabet, numbered by byte, and `more` behind them.
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

TEST_CASE(
    "WordPiece takes the longest pieces and one unknown token for a word that it cannot cover",
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

TEST_CASE("truncation of a pair shortens the longer text first, on a tie the first",
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

TEST_CASE("a cased WordPiece folder keeps case and accents", "[trainer][files]") {
  const testing::TempDir dir;
  dir.write("vocab.txt", std::string(kVocab) + "Want\ncaf\u00e9\n");
  dir.write("tokenizer_config.json", R"({"do_lower_case": false})");
  const auto tokenizer = load_tokenizer(dir.path());
  CHECK(tokenizer->encode("Want want caf\u00e9 cafe").ids == Ids{2, 11, 8, 12, 10, 3});
}

TEST_CASE("a token that is a word of its own is none inside a word of any script",
          "[trainer][files]") {
  const testing::TempDir dir;
  dir.write("vocab.txt", kVocab);
  dir.write("tokenizer_config.json",
            R"({"added_tokens_decoder": {
                "11": {"content": "tok", "single_word": true, "normalized": false},
                "12": {"content": "ok", "normalized": false}}})");
  const auto tokenizer = load_tokenizer(dir.path());
  CHECK(tokenizer->tokenize("tok!tok ok") == Ids{11, 9, 11, 12});
  // A letter, a digit, marks that take room and that do not, a Roman numeral, a joiner. Nor is the
  // shorter token found inside what is none.
  for (const std::string beside : {"x", "7", "\u0903", "\u0301", "\u2167", "\u200d"}) {
    CHECK(tokenizer->tokenize("tok" + beside) == Ids{1});
    CHECK(tokenizer->tokenize(beside + "tok") == Ids{1});
  }
}

TEST_CASE("byte-level BPE merges in the order of the merges", "[trainer][files]") {
  const testing::TempDir dir;
  dir.write("vocab.json", byte_vocab({"ab", "abc", "bc", "\u0120ab"}));
  dir.write("merges.txt", "#version: 0.2\na b\nb c\nab c\n\u0120 ab\n");
  const auto tokenizer = load_tokenizer(dir.path());
  CHECK(tokenizer->encode("abc").ids == Ids{257});
  CHECK(tokenizer->encode("bc ab ab").ids == Ids{258, 259, 259});
  CHECK(tokenizer->encode("\u00e9").ids == Ids{0xc3, 0xa9});
  CHECK(tokenizer->decode(Ids{257, 259, 0xc3, 0xa9}, true) == "abc ab\u00e9");
  // A word long enough for the queue meets the same rule as the short way.
  std::string text;
  Ids wanted;
  for (int i = 0; i < 40; ++i) {
    text += i % 3 == 0 ? "bc" : "abc";
    wanted.push_back(i % 3 == 0 ? 258 : 257);
  }
  CHECK(tokenizer->encode(text).ids == wanted);
}

TEST_CASE("a prefix space stands before all but a plain space", "[trainer][files]") {
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

TEST_CASE("GPT-2's pattern cuts words where its expression does", "[trainer][files]") {
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

TEST_CASE("bad tokenizer files are refused by name", "[trainer][files]") {
  const testing::TempDir dir;
  const std::string at = dir.path().string();
  CHECK(message(dir.path()) ==
        at + ": holds no tokenizer, wanted vocab.txt (WordPiece) or vocab.json with merges.txt "
             "(BPE)");
  dir.write("vocab.json", byte_vocab({"ab"}));
  dir.write("merges.txt", "a b\nb c\n");
  CHECK(message(dir.path()) ==
        at + "/merges.txt: merge 2 ('b' 'c') is not in the vocabulary " + at + "/vocab.json");
  dir.write("merges.txt", "a b\nb\n");
  CHECK(message(dir.path()) == at + "/merges.txt:2: found 'b', wanted two tokens and one space");
  dir.write("vocab.json", R"({"a": 0, "b": 0})");
  CHECK(message(dir.path()) == at + "/vocab.json: tokens 'a' and 'b' have the same id 0");
  dir.write("vocab.json", R"({"a": -1})");
  CHECK(message(dir.path()) == at + "/vocab.json: token 'a' has id -1, must be in 0..9999999");
  dir.write("vocab.json", R"({"a": 0})");
  dir.write("merges.txt", "");
  CHECK(message(dir.path()) ==
        at + "/vocab.json: has no token '\u0100' for byte 0x00, wanted all 256");
  dir.write("tokenizer_config.json", R"({"add_prefix_space": 3})");
  CHECK(message(dir.path()) ==
        at + "/tokenizer_config.json: add_prefix_space is 3, wanted true or false");
  dir.write("tokenizer_config.json", std::string(200'000, '['));
  CHECK(message(dir.path()) ==
        at + "/tokenizer_config.json: must have at most 64 levels of nesting");
  dir.write("tokenizer_config.json", "{}");
  dir.write("vocab.txt", "[PAD]\n\xff\n");
  CHECK(message(dir.path()) == at + "/vocab.txt:2: byte 1 is not UTF-8");
  dir.write("vocab.txt", "a\n");
  CHECK(message(dir.path()) == at + "/vocab.txt: has no token [UNK], wanted all special tokens");
}

}  // namespace
}  // namespace petlab::trainer
