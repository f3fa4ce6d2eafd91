#include "trainer/data/token_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/shown.h"
#include "trainer/files/error.h"

namespace petlab::trainer {
namespace {

std::string token_problem(const Tokenizer& tokenizer, std::int32_t id, std::int64_t rows) {
  return fmt::format(
      "token {} has id {}, must be below {}, the number of the embedding's rows (vocab_size in "
      "config.json)",
      base::in_quotes(tokenizer.token(id)), id, rows);
}

/// The first of all examples' `ids` that is not below `rows`, or the end.
auto first_beyond(const std::vector<std::int32_t>& ids, std::int64_t rows) {
  return std::find_if(ids.begin(), ids.end(), [rows](std::int32_t id) { return id >= rows; });
}

/// The number, from 1, of the example that contains token `index`.
std::ptrdiff_t example_with(const std::vector<std::int64_t>& offsets, std::int64_t index) {
  return std::upper_bound(offsets.begin(), offsets.end(), index) - offsets.begin();
}

}  // namespace

void require_rows(const Tokenizer& tokenizer, const sweeps::BackboneShape& shape,
                  const std::filesystem::path& folder) {
  const auto beyond = tokenizer.token_beyond(shape.vocab_size);
  if (!beyond) return;
  throw Error(folder.string() + ": " + token_problem(tokenizer, *beyond, shape.vocab_size));
}

void require_rows(const TokenisedSplit& split, const Tokenizer& tokenizer,
                  const sweeps::BackboneShape& shape, const std::string& subject) {
  const auto require_tokens = [&](const std::vector<std::int32_t>& ids,
                                  const std::vector<std::int64_t>& offsets, const char* of) {
    const auto found = first_beyond(ids, shape.vocab_size);
    if (found == ids.end()) return;
    throw Error(fmt::format("{}: in {} {}, {}", subject, of,
                            example_with(offsets, found - ids.begin()),
                            token_problem(tokenizer, *found, shape.vocab_size)));
  };
  require_tokens(split.ids, split.offsets, "example");
  require_tokens(split.target_ids, split.target_offsets, "the target of example");
  if (shape.type_vocab_size == 0) return;  // the backbone has no segments
  const auto found = first_beyond(split.type_ids, shape.type_vocab_size);
  if (found == split.type_ids.end()) return;
  throw Error(fmt::format(
      "{}: in example {}, token {} has segment id {}, must be below {}, the number of segments' "
      "rows (type_vocab_size in config.json)",
      subject, example_with(split.offsets, found - split.type_ids.begin()),
      base::in_quotes(
          tokenizer.token(split.ids[static_cast<std::size_t>(found - split.type_ids.begin())])),
      *found, shape.type_vocab_size));
}

}  // namespace petlab::trainer
