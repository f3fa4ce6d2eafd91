#pragma once

#include <filesystem>
#include <string>

#include "sweeps/backbone.h"
#include "trainer/data/batches.h"
#include "trainer/tokenizers/tokenizer.h"

namespace petlab::trainer {

/// Throws Error unless the backbone in `folder` has an embedding row for each token that its
/// tokenizer puts around texts or splits them into. An added token without a row is allowed: only
/// texts that contain it literally have it.
void require_rows(const Tokenizer& tokenizer, const sweeps::BackboneShape& shape,
                  const std::filesystem::path& folder);

/// Throws Error, beginning with `subject` and the example, if a token or a segment of the split has
/// no row in the backbone's tables.
void require_rows(const TokenisedSplit& split, const Tokenizer& tokenizer,
                  const sweeps::BackboneShape& shape, const std::string& subject);

}  // namespace petlab::trainer
