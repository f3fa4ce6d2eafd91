#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace petlab::trainer {

/// A SentencePiece unigram model (spiece.model) of the texts' lines, as T5's: pad 0, end 1, unknown
/// 2, at most `size` pieces in all; of few texts there may be fewer. The same texts and size give
/// the same bytes. Throws Error naming the file that cannot be read, and where SentencePiece
/// refuses (a size that is too small for the texts' characters).
std::string train_sentencepiece(const std::vector<std::filesystem::path>& texts, std::int64_t size);

}  // namespace petlab::trainer
