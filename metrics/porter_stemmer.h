#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace petlab::metrics {

/// The stem of a word of a-z and 0-9 by Porter's algorithm with NLTK's extensions, the default mode
/// of nltk.stem.porter (Porter 1980). Other bytes count as consonants.
std::string porter_stem(std::string_view word);

/// The same in place; returns the stem's size, which is at most `size`.
std::size_t porter_stem(char* word, std::size_t size);

}  // namespace petlab::metrics
