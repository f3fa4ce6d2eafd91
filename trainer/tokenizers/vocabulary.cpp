#include "trainer/tokenizers/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "trainer/error.h"
#include "trainer/tokenizers/utf8.h"

namespace petlab::trainer {
namespace {

constexpr std::int64_t kMostIds = 10'000'000;

}  // namespace

Vocabulary::Vocabulary(std::vector<std::pair<std::string, std::int64_t>> tokens,
                       const std::string& file)
    : file_(file) {
  std::int64_t size = 0;
  for (const auto& [token, id] : tokens) {
    if (id < 0 || id >= kMostIds) {
      throw Error(
          fmt::format("{}: token '{}' has id {}, must be in 0..{}", file, token, id, kMostIds - 1));
    }
    size = std::max(size, id + 1);
  }
  tokens_.resize(static_cast<std::size_t>(size));
  ids_.reserve(tokens.size());
  for (auto& [token, id] : tokens) {
    auto& place = tokens_[static_cast<std::size_t>(id)];
    if (place) {
      throw Error(
          fmt::format("{}: tokens '{}' and '{}' have the same id {}", file, *place, token, id));
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
  std::vector<std::pair<std::string, std::int64_t>> tokens;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const auto id = static_cast<std::int64_t>(tokens.size());
    if (const auto invalid = first_invalid_utf8(line)) {
      throw Error(fmt::format("{}:{}: byte {} is not UTF-8", file, id + 1, *invalid + 1));
    }
    tokens.emplace_back(line, id);
  }
  if (tokens.empty()) throw Error(fmt::format("{}: is empty, wanted one token a line", file));
  return Vocabulary(std::move(tokens), file);
}

Vocabulary parse_vocab_json(std::string_view text, const std::string& file) {
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("{}: is no JSON: {}", file, error.what()));
  }
  if (!json.is_object() || json.empty()) {
    throw Error(fmt::format("{}: is no object of token: id", file));
  }
  std::vector<std::pair<std::string, std::int64_t>> tokens;
  tokens.reserve(json.size());
  for (const auto& [token, id] : json.items()) {
    if (!id.is_number_integer() || id.get<double>() >= static_cast<double>(kMostIds)) {
      throw Error(fmt::format("{}: token '{}' has id {}, must be in 0..{}", file, token,
                              id.dump(-1, ' ', true).substr(0, 60), kMostIds - 1));
    }
    tokens.emplace_back(token, id.get<std::int64_t>());
  }
  return Vocabulary(std::move(tokens), file);
}

}  // namespace petlab::trainer
