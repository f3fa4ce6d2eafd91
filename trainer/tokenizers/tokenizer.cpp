#include "trainer/tokenizers/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/utf8.h"

namespace petlab::trainer {
namespace {

/// The numbers of tokens to keep of two texts, by the fast tokenizers' longest-first rule: the odd
/// token goes to the longer text, on a tie to the second.
std::pair<std::size_t, std::size_t> kept(std::size_t first, std::size_t second,
                                         std::size_t budget) {
  if (first + second <= budget) return {first, second};
  const bool swapped = first > second;
  std::size_t shorter = std::min(first, second);
  std::size_t longer = std::max(first, second);
  longer = shorter > budget ? shorter : std::max(shorter, budget - shorter);
  if (shorter + longer > budget) {
    shorter = budget / 2;
    longer = shorter + budget % 2;
  }
  return swapped ? std::pair(longer, shorter) : std::pair(shorter, longer);
}

}  // namespace

const AddedToken* Tokenizer::added_token(std::int32_t id) const {
  for (const AddedTokens* tokens : {&added_, &normalized_}) {
    const auto& all = tokens->all();
    const auto found = std::find_if(all.begin(), all.end(),
                                    [id](const AddedToken& token) { return token.id == id; });
    if (found != all.end()) return &*found;
  }
  return nullptr;
}

void Tokenizer::set_added(const std::vector<AddedToken>& tokens) {
  std::vector<AddedToken> as_written;
  std::vector<AddedToken> normalized;
  for (const AddedToken& token : tokens) {
    vocab_size_ = std::max<std::int64_t>(vocab_size_, token.id + 1);
    (token.normalized ? normalized : as_written).push_back(token);
  }
  added_ = AddedTokens(std::move(as_written));
  normalized_ = AddedTokens(std::move(normalized));
}

std::string_view Tokenizer::token(std::int32_t id) const {
  if (const AddedToken* const added = added_token(id)) return added->content;
  return vocabulary_entry(id).value_or("");
}

std::optional<std::int32_t> Tokenizer::token_beyond(std::int64_t rows) const {
  for (const auto* tokens : {&special_.before, &special_.between, &special_.after}) {
    for (const std::int32_t id : *tokens) {
      if (id >= rows) return id;
    }
  }
  for (std::int64_t next = rows; next < vocab_size_; ++next) {
    const auto id = static_cast<std::int32_t>(next);
    if (vocabulary_entry(id) && added_token(id) == nullptr) return id;
  }
  return std::nullopt;
}

std::vector<std::int32_t> Tokenizer::tokenize(std::string_view text) const {
  if (const auto invalid = base::first_invalid_utf8(text)) {
    throw std::invalid_argument(fmt::format("byte {} of the text is not UTF-8 (0x{:02X})",
                                            *invalid + 1,
                                            static_cast<unsigned char>(text[*invalid])));
  }
  std::vector<std::int32_t> ids;
  const auto add = [&](const AddedToken& token) { ids.push_back(token.id); };
  added_.split(
      text,
      [&](std::string_view plain) {
        if (normalized_.all().empty()) return append(plain, ids);
        normalized_.split(
            normalize(plain), [&](std::string_view rest) { append(rest, ids); }, add);
      },
      add);
  return ids;
}

Encoding Tokenizer::encode(std::string_view text, std::optional<std::string_view> pair,
                           std::int64_t max_tokens) const {
  std::vector<std::int32_t> first = tokenize(text);
  std::vector<std::int32_t> second;
  if (pair) second = tokenize(*pair);
  if (max_tokens != 0) {
    const std::size_t around =
        special_.before.size() + special_.after.size() + (pair ? special_.between.size() : 0);
    if (max_tokens < static_cast<std::int64_t>(around)) {
      throw std::invalid_argument(fmt::format(
          "max_tokens is {}, must be at least {}, the special tokens", max_tokens, around));
    }
    const auto shorten = [this](std::vector<std::int32_t>& ids, std::size_t size) {
      const auto surplus = static_cast<std::ptrdiff_t>(ids.size() - size);
      if (keeps_last_) ids.erase(ids.begin(), ids.begin() + surplus);
      ids.resize(size);
    };
    const auto [first_size, second_size] =
        kept(first.size(), second.size(), static_cast<std::size_t>(max_tokens) - around);
    shorten(first, first_size);
    shorten(second, second_size);
  }
  Encoding result;
  const auto add = [&](const std::vector<std::int32_t>& ids, std::int32_t type) {
    result.ids.insert(result.ids.end(), ids.begin(), ids.end());
    result.type_ids.insert(result.type_ids.end(), ids.size(), type);
  };
  add(special_.before, 0);
  add(first, 0);
  if (pair) {
    add(special_.between, 0);
    add(second, special_.second_type);
  }
  add(special_.after, pair ? special_.second_type : 0);
  return result;
}

}  // namespace petlab::trainer
