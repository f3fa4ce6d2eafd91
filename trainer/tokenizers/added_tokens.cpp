#include "trainer/tokenizers/added_tokens.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <cassert>

#include "trainer/files/utf8.h"

namespace petlab::trainer {
namespace {

bool is_word_character(char32_t code_point) {
  // The regular expression \w, as in Unicode Technical Standard 18.
  constexpr std::uint32_t kCategories = U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK;
  const auto c = static_cast<UChar32>(code_point);
  return (U_MASK(u_charType(c)) & kCategories) != 0 ||
         u_hasBinaryProperty(c, UCHAR_ALPHABETIC) != 0 ||
         u_hasBinaryProperty(c, UCHAR_JOIN_CONTROL) != 0;
}

/// The start of the character that ends before `position`; position > 0.
std::size_t character_before(std::string_view text, std::size_t position) {
  --position;
  while (position > 0 && (static_cast<unsigned char>(text[position]) & 0xc0u) == 0x80u) --position;
  return position;
}

bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) {
  if (begin > 0) {
    std::size_t before = character_before(text, begin);
    if (is_word_character(next_code_point(text, before))) return false;
  }
  return end == text.size() || !is_word_character(next_code_point(text, end));
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::stable_sort(tokens_.begin(), tokens_.end(), [](const AddedToken& a, const AddedToken& b) {
    return a.wanted().size() > b.wanted().size();
  });
  for (const AddedToken& token : tokens_) {
    assert(!token.content.empty());
    starts_[static_cast<unsigned char>(token.wanted().front())] = true;
  }
}

const AddedToken* AddedTokens::match(std::string_view text, std::size_t position) const {
  const std::string_view rest = text.substr(position);
  for (const AddedToken& token : tokens_) {
    if (rest.starts_with(token.wanted())) return &token;
  }
  return nullptr;
}

void AddedTokens::split(std::string_view text, const std::function<void(std::string_view)>& plain,
                        const std::function<void(const AddedToken&)>& token) const {
  std::size_t begin = 0;  // of the ordinary text that has not been passed on yet
  for (std::size_t position = 0; position < text.size();) {
    const AddedToken* found =
        starts_[static_cast<unsigned char>(text[position])] ? match(text, position) : nullptr;
    if (found == nullptr) {
      ++position;
      continue;
    }
    if (found->single_word && !stands_alone(text, position, position + found->wanted().size())) {
      // Treat it as ordinary text, without looking for a shorter token inside.
      position += found->wanted().size();
      continue;
    }
    std::size_t end = position;
    if (found->lstrip) {
      while (end > begin) {
        const std::size_t before = character_before(text, end);
        std::size_t after = before;
        if (!is_white_space(next_code_point(text, after))) break;
        end = before;
      }
    }
    if (end > begin) plain(text.substr(begin, end - begin));
    token(*found);
    position += found->wanted().size();
    if (found->rstrip) {
      for (std::size_t next = position; next < text.size(); position = next) {
        if (!is_white_space(next_code_point(text, next))) break;
      }
    }
    begin = position;
  }
  if (begin < text.size()) plain(text.substr(begin));
}

}  // namespace petlab::trainer
