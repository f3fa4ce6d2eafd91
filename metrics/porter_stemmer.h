#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace petlab::metrics {

/// The stem of a word of a-z and 0-9 by Porter's algorithm with NLTK's extensions, the default mode
/// of nltk.stem.porter (Porter 1980). Other bytes count as consonants.
std::string porter_stem(std::string_view word);

/// Stems in place and returns the stem's size, at most `size`.
std::size_t porter_stem(char* word, std::size_t size);

}  // namespace petlab::metrics
