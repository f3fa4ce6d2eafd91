#include "metrics/porter_stemmer.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace petlab::metrics {
namespace {

bool is_plain_vowel(char c) { return c == 'a' || c == 'e' || c == 'i' || c == 'o' || c == 'u'; }

// A y is a consonant at the beginning and after a vowel.
bool is_consonant(std::string_view word, std::size_t i) {
  bool flipped = false;
  while (i > 0 && word[i] == 'y') {
    flipped = !flipped;
    --i;
  }
  return is_plain_vowel(word[i]) == flipped;
}

// Porter's m: how often a consonant follows a vowel.
int measure(std::string_view stem) {
  int m = 0;
  bool before = true;  // whether the last letter is a consonant
  for (std::size_t i = 0; i < stem.size(); ++i) {
    const bool consonant = stem[i] == 'y' ? i == 0 || !before : !is_plain_vowel(stem[i]);
    if (consonant && !before) ++m;
    before = consonant;
  }
  return m;
}

bool contains_vowel(std::string_view stem) {
  // The first vowel is a plain one, or a y after a consonant.
  for (std::size_t i = 0; i < stem.size(); ++i) {
    if (is_plain_vowel(stem[i]) || (stem[i] == 'y' && i > 0)) return true;
  }
  return false;
}

bool ends_double_consonant(std::string_view word) {
  return word.size() >= 2 && word[word.size() - 1] == word[word.size() - 2] &&
         is_consonant(word, word.size() - 1);
}

// Porter's *o, and NLTK's addition of two-letter stems such as "us".
bool ends_short(std::string_view word) {
  const std::size_t n = word.size();
  if (n == 2) return !is_consonant(word, 0) && is_consonant(word, 1);
  return n >= 3 && is_consonant(word, n - 3) && !is_consonant(word, n - 2) &&
         is_consonant(word, n - 1) && word[n - 1] != 'w' && word[n - 1] != 'x' &&
         word[n - 1] != 'y';
}

struct Rule {
  std::string_view suffix;
  std::string_view replacement;  // never longer than the suffix
};

constexpr Rule kStep2[] = {
    {"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"}, {"anci", "ance"}, {"izer", "ize"},
    {"bli", "ble"},     {"alli", "al"},     {"entli", "ent"}, {"eli", "e"},     {"ousli", "ous"},
    {"ization", "ize"}, {"ation", "ate"},   {"ator", "ate"},  {"alism", "al"},  {"iveness", "ive"},
    {"fulness", "ful"}, {"ousness", "ous"}, {"aliti", "al"},  {"iviti", "ive"}, {"biliti", "ble"},
    {"fulli", "ful"},   {"logi", "log"}};

constexpr Rule kStep3[] = {{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"},
                           {"ical", "ic"},  {"ful", ""},   {"ness", ""}};

constexpr std::string_view kStep4[] = {"al",  "ance",  "ence", "er",  "ic",  "able", "ible",
                                       "ant", "ement", "ment", "ent", "ion", "ou",   "ism",
                                       "ate", "iti",   "ous",  "ive", "ize"};

constexpr Rule kIrregular[] = {
    {"sky", "sky"},        {"skies", "sky"},       {"dying", "die"},        {"lying", "lie"},
    {"tying", "tie"},      {"news", "news"},       {"innings", "inning"},   {"inning", "inning"},
    {"outings", "outing"}, {"outing", "outing"},   {"cannings", "canning"}, {"canning", "canning"},
    {"howe", "howe"},      {"proceed", "proceed"}, {"exceed", "exceed"},    {"succeed", "succeed"}};

class Stemmer {
 public:
  Stemmer(char* word, std::size_t size) : word_(word), size_(size) {}

  std::size_t run() {
    for (const Rule& form : kIrregular) {
      if (view() == form.suffix) {
        replace(size_, form.replacement);
        return size_;
      }
    }
    if (size_ <= 2) return size_;
    plural();
    past_and_gerund();
    final_y();
    step2();
    step3();
    step4();
    final_e();
    if (ends("ll") && measure(view().substr(0, size_ - 1)) > 1) --size_;
    return size_;
  }

 private:
  std::string_view view() const { return {word_, size_}; }
  bool ends(std::string_view suffix) const {
    return size_ >= suffix.size() &&
           std::memcmp(word_ + size_ - suffix.size(), suffix.data(), suffix.size()) == 0;
  }
  std::string_view without(std::size_t suffix) const { return view().substr(0, size_ - suffix); }
  void replace(std::size_t suffix, std::string_view with) {
    size_ -= suffix;
    std::memcpy(word_ + size_, with.data(), with.size());
    size_ += with.size();
  }

  void plural() {
    if (ends("ies")) {
      size_ -= size_ == 4 ? 1 : 2;
    } else if (ends("sses")) {
      size_ -= 2;
    } else if (ends("s") && !ends("ss")) {
      size_ -= 1;
    }
  }

  void past_and_gerund() {
    if (ends("ied")) {
      size_ -= size_ == 4 ? 1 : 2;
      return;
    }
    if (ends("eed")) {
      if (measure(without(3)) > 0) size_ -= 1;
      return;
    }
    if (ends("ed") && contains_vowel(without(2))) {
      size_ -= 2;
    } else if (ends("ing") && contains_vowel(without(3))) {
      size_ -= 3;
    } else {
      return;
    }
    // The removed suffix leaves room for an e.
    if (ends("at") || ends("bl") || ends("iz")) {
      replace(0, "e");
    } else if (ends_double_consonant(view())) {
      const char last = word_[size_ - 1];
      if (last != 'l' && last != 's' && last != 'z') --size_;
    } else if (measure(view()) == 1 && ends_short(view())) {
      replace(0, "e");
    }
  }

  void final_y() {
    if (ends("y") && size_ > 2 && is_consonant(without(1), size_ - 2)) word_[size_ - 1] = 'i';
  }

  void step2() {
    while (ends("alli") && measure(without(4)) > 0) replace(4, "al");
    for (const Rule& rule : kStep2) {
      if (!ends(rule.suffix)) continue;
      // The l of "logi" counts as part of the stem, so that "geologi" has one.
      const std::size_t cut = rule.suffix == "logi" ? 3 : rule.suffix.size();
      if (measure(without(cut)) > 0) replace(rule.suffix.size(), rule.replacement);
      return;
    }
  }

  void step3() {
    for (const Rule& rule : kStep3) {
      if (!ends(rule.suffix)) continue;
      if (measure(without(rule.suffix.size())) > 0) replace(rule.suffix.size(), rule.replacement);
      return;
    }
  }

  void step4() {
    for (const std::string_view suffix : kStep4) {
      if (!ends(suffix)) continue;
      const std::string_view stem = without(suffix.size());
      if (measure(stem) > 1 && (suffix != "ion" || stem.back() == 's' || stem.back() == 't')) {
        size_ = stem.size();
      }
      return;
    }
  }

  void final_e() {
    if (!ends("e")) return;
    const int m = measure(without(1));
    if (m > 1 || (m == 1 && !ends_short(without(1)))) --size_;
  }

  char* word_;
  std::size_t size_;
};

}  // namespace

std::size_t porter_stem(char* word, std::size_t size) { return Stemmer(word, size).run(); }

std::string porter_stem(std::string_view word) {
  std::string stem(word);
  stem.resize(porter_stem(stem.data(), stem.size()));
  return stem;
}

}  // namespace petlab::metrics
