#pragma once

#include <memory>
#include <string>

#include "metrics/text_tokenizers.h"

namespace petlab::metrics {

/// Pieces of a SentencePiece model. Throws InputError for a file that is missing or no model.
std::shared_ptr<const TextTokenizer> make_spm_tokenizer(const std::string& model_file,
                                                        bool lowercase);

}  // namespace petlab::metrics
