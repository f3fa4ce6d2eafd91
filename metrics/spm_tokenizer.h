#pragma once

#include <memory>
#include <string>

#include "metrics/text_tokenizers.h"

namespace petlab::metrics {

/// Tokenizes by a SentencePiece model. The signature is `name`, or if that is empty "spm-" and the
/// first eight hexadecimal digits of the file's SHA-256. Throws InputError if the file is missing
/// or not a model.
std::shared_ptr<const TextTokenizer> make_spm_tokenizer(const std::string& model_file,
                                                        bool lowercase,
                                                        const std::string& name = {});

}  // namespace petlab::metrics
