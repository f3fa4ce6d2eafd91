#include "trainer/tokenizers/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "base/shown.h"
#include "trainer/files/error.h"
#include "trainer/files/utf8.h"

namespace petlab::trainer {
namespace {

/// Represents the space before a word.
constexpr std::string_view kSpace = "\u2581";
/// The score of an unknown character is this much below that of the worst piece.
constexpr double kUnknownPenalty = 10;

/// The best segmentation of a word up to a byte.
struct BestCut {
  double score = 0;
  std::size_t from = 0;
  std::int32_t id = -1;  // -1: none yet
};

std::size_t trimmed_size(std::string_view text) {
  std::size_t kept = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (!is_white_space(next_code_point(text, at))) kept = at;
  }
  return kept;
}

std::string with_joined_spaces(std::string_view text) {
  std::string joined;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && text[end] == ' ') ++end;
    if (end - at >= 2) {
      joined += kSpace;
      at = end;
    } else {
      joined += text[at++];
    }
  }
  return joined;
}

}  // namespace

Unigram::Unigram(UnigramModel model, const std::string& file, const UnigramOptions& options)
    : model_(std::move(model)), charsmap_(model_.charsmap, file + ": the character map") {
  double worst = model_.pieces.front().score;
  for (std::size_t i = 0; i < model_.pieces.size(); ++i) {
    sorted_.emplace_back(model_.pieces[i].text, static_cast<std::int32_t>(i));
    worst = std::min(worst, model_.pieces[i].score);
  }
  unknown_score_ = worst - kUnknownPenalty;
  std::sort(sorted_.begin(), sorted_.end());
  for (std::size_t i = 1; i < sorted_.size(); ++i) {
    if (sorted_[i].first != sorted_[i - 1].first) continue;
    throw Error(fmt::format("{}: the pieces {} and {} are both {}, expected each once", file,
                            sorted_[i - 1].second, sorted_[i].second,
                            base::in_quotes(sorted_[i].first)));
  }
  vocab_size_ = static_cast<std::int64_t>(model_.pieces.size());
  special_.after = {id_of(options.eos_token, file)};
  special_.between = special_.after;
  special_.pad = id_of(options.pad_token, file);
  for (const AddedToken& token : options.added) {
    if (token.id < vocab_size_ &&
        model_.pieces[static_cast<std::size_t>(token.id)].text != token.content) {
      throw Error(
          fmt::format("{}: has {} as piece {}, expected the added token {}", file,
                      base::in_quotes(model_.pieces[static_cast<std::size_t>(token.id)].text),
                      token.id, base::in_quotes(token.content)));
    }
  }
  set_added(options.added);
}

std::int32_t Unigram::id_of(const std::string& token, const std::string& file) const {
  const auto found = std::lower_bound(sorted_.begin(), sorted_.end(),
                                      std::pair(std::string_view(token), std::int32_t{0}));
  if (found == sorted_.end() || found->first != token) {
    throw Error(fmt::format("{}: has no token {}, expected all special tokens", file, token));
  }
  return found->second;
}

void Unigram::append_word(std::string_view word, std::vector<std::int32_t>& ids) const {
  std::vector<BestCut> best(word.size() + 1);
  for (std::size_t at = 0; at < word.size();) {
    const double until = best[at].score;
    const auto offer = [&](std::size_t end, double score, std::int32_t id) {
      BestCut& cut = best[end];
      if (cut.id < 0 || score > cut.score) cut = {score, at, id};
    };
    std::size_t next = at;
    next_code_point(word, next);
    bool has_character = false;
    auto from = sorted_.begin();
    auto to = sorted_.end();
    for (std::size_t end = at; end < word.size() && from != to;) {
      // Narrow the range to pieces that continue with the word's next byte. A piece that ends here
      // is the first of them.
      const std::size_t depth = end - at;
      const auto byte = static_cast<unsigned char>(word[end]);
      from = std::partition_point(from, to, [&](const auto& piece) {
        return piece.first.size() <= depth || static_cast<unsigned char>(piece.first[depth]) < byte;
      });
      to = std::partition_point(from, to, [&](const auto& piece) {
        return static_cast<unsigned char>(piece.first[depth]) <= byte;
      });
      ++end;
      if (from == to || from->first.size() != depth + 1) continue;
      offer(end, model_.pieces[static_cast<std::size_t>(from->second)].score + until, from->second);
      has_character |= end == next;
    }
    if (!has_character) offer(next, unknown_score_ + until, model_.unk_id);
    at = next;
  }
  const std::size_t first = ids.size();
  for (std::size_t end = word.size(); end > 0; end = best[end].from) {
    // Adjacent unknown characters form one token.
    const std::int32_t id = best[end].id;
    if (id == model_.unk_id && ids.size() > first && ids.back() == id) continue;
    ids.push_back(id);
  }
  std::reverse(ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end());
}

void Unigram::append(std::string_view text, std::vector<std::int32_t>& ids) const {
  std::string normalized = charsmap_.normalize(text);
  if (model_.strip_right) normalized.resize(trimmed_size(normalized));
  if (model_.join_spaces) normalized = with_joined_spaces(normalized);
  // Replace spaces by "▁", and begin the text with one.
  const auto add = [&](std::string_view part) {
    std::string word;
    if (!part.starts_with(' ') && !part.starts_with(kSpace)) word = kSpace;
    for (const char c : part) c == ' ' ? word += kSpace : word += c;
    // Each "▁" begins a word.
    std::size_t begin = 0;
    while (begin < word.size()) {
      const std::size_t end = std::min(word.find(kSpace, begin + kSpace.size()), word.size());
      append_word(std::string_view(word).substr(begin, end - begin), ids);
      begin = end;
    }
  };
  if (!model_.split_white_space) {
    if (!normalized.empty()) add(normalized);
    return;
  }
  const std::string_view all = normalized;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t here = at;
    if (!is_white_space(next_code_point(all, at))) continue;
    if (here > begin) add(all.substr(begin, here - begin));
    begin = at;
  }
  if (begin < all.size()) add(all.substr(begin));
}

std::optional<std::string_view> Unigram::vocabulary_entry(std::int32_t id) const {
  const auto index = static_cast<std::size_t>(id);
  if (id < 0 || index >= model_.pieces.size()) return std::nullopt;
  return model_.pieces[index].text;
}

std::string Unigram::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  std::string text;
  bool first = true;
  for (const std::int32_t id : ids) {
    std::string_view token;
    if (const AddedToken* const added = added_token(id)) {
      if (added->special && skip_special) continue;
      token = added->content;
    } else if (const auto piece = vocabulary_entry(id)) {
      token = *piece;
    } else {
      continue;
    }
    for (std::size_t at = 0; at < token.size();) {
      if (token.substr(at).starts_with(kSpace)) {
        if (!first) text += ' ';
        at += kSpace.size();
      } else {
        text += token[at++];
      }
    }
    first = false;
  }
  return text;
}

}  // namespace petlab::trainer
