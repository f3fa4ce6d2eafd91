#include "trainer/tokenizers/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/line_ends.h"
#include "base/shallow_json.h"
#include "base/shown.h"
#include "base/utf8.h"
#include "trainer/files/error.h"

namespace petlab::trainer {
namespace {

constexpr std::int64_t kMostIds = 10'000'000;

/// Collects the tokens directly from the parser. Building and discarding a tree of fifty thousand
/// nodes would slow down every start.
class VocabHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  VocabHandler(std::vector<std::pair<std::string, std::int64_t>>& tokens, const std::string& file)
      : tokens_(tokens), file_(file) {}

  bool start_object(std::size_t) override {
    if (depth_++ > 0) refuse("an object");
    return true;
  }
  bool end_object() override { return true; }
  bool key(string_t& key) override {
    token_ = std::move(key);
    return true;
  }
  bool number_unsigned(number_unsigned_t id) override {
    if (depth_ == 0 || id >= static_cast<std::uint64_t>(kMostIds)) refuse(fmt::format("{}", id));
    tokens_.emplace_back(std::move(token_), static_cast<std::int64_t>(id));
    return true;
  }
  bool number_integer(number_integer_t id) override { refuse(fmt::format("{}", id)); }
  bool number_float(number_float_t, const string_t& text) override { refuse(text.substr(0, 60)); }
  bool string(string_t& text) override { refuse(base::in_quotes(text)); }
  bool boolean(bool value) override { refuse(value ? "true" : "false"); }
  bool null() override { refuse("null"); }
  bool binary(binary_t&) override { refuse("binary data"); }
  bool start_array(std::size_t) override { refuse("a list"); }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::json::exception& error) override {
    throw Error(fmt::format("{}: is not JSON: {}", file_, base::json_problem(error)));
  }

 private:
  [[noreturn]] void refuse(const std::string& found) const {
    if (depth_ == 0) throw Error(fmt::format("{}: is not an object of token: id", file_));
    throw Error(fmt::format("{}: token {} has id {}, must be in 0..{}", file_,
                            base::in_quotes(token_), found, kMostIds - 1));
  }

  std::vector<std::pair<std::string, std::int64_t>>& tokens_;
  const std::string& file_;
  std::string token_;
  int depth_ = 0;
};

}  // namespace

Vocabulary::Vocabulary(std::vector<std::pair<std::string, std::int64_t>> tokens,
                       const std::string& file)
    : file_(file) {
  std::int64_t size = 0;
  for (const auto& [token, id] : tokens) {
    if (id < 0 || id >= kMostIds) {
      throw Error(fmt::format("{}: token {} has id {}, must be in 0..{}", file,
                              base::in_quotes(token), id, kMostIds - 1));
    }
    size = std::max(size, id + 1);
  }
  tokens_.resize(static_cast<std::size_t>(size));
  ids_.reserve(tokens.size());
  for (auto& [token, id] : tokens) {
    auto& place = tokens_[static_cast<std::size_t>(id)];
    if (place) {
      throw Error(fmt::format("{}: tokens {} and {} have the same id {}", file,
                              base::in_quotes(*place), base::in_quotes(token), id));
    }
    place = std::move(token);
    ids_.insert_or_assign(*place, static_cast<std::int32_t>(id));
  }
}

std::optional<std::string_view> Vocabulary::token(std::int32_t id) const {
  if (id < 0 || id >= size()) return std::nullopt;
  return tokens_[static_cast<std::size_t>(id)];
}

Vocabulary parse_vocab_txt(std::string_view text, const std::string& file) {
  if (base::lines_end_with_cr(text))
    throw Error(fmt::format("{}: {}", file, base::kLinesEndWithCr));
  std::vector<std::pair<std::string, std::int64_t>> tokens;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const auto id = static_cast<std::int64_t>(tokens.size());
    if (const auto invalid = base::first_invalid_utf8(line)) {
      throw Error(fmt::format("{}:{}: byte {} is not UTF-8", file, id + 1, *invalid + 1));
    }
    tokens.emplace_back(line, id);
  }
  if (tokens.empty()) throw Error(fmt::format("{}: is empty, expected one token per line", file));
  return Vocabulary(std::move(tokens), file);
}

Vocabulary parse_vocab_json(std::string_view text, const std::string& file) {
  std::vector<std::pair<std::string, std::int64_t>> tokens;
  VocabHandler handler(tokens, file);
  nlohmann::json::sax_parse(text, &handler);
  if (tokens.empty()) throw Error(fmt::format("{}: is not an object of token: id", file));
  return Vocabulary(std::move(tokens), file);
}

}  // namespace petlab::trainer
