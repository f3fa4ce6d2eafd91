#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace petlab::testing {

/// The tokenizers with one pass for each of sacrebleu's replacements, on code points. They are
/// slow, but easy to compare with the description. `text` must be valid UTF-8.
std::vector<std::string> naive_13a(std::string_view text);
std::vector<std::string> naive_intl(std::string_view text);
std::vector<std::string> naive_zh(std::string_view text);
/// TER's tokenizer with `normalized`.
std::vector<std::string> naive_tercom(std::string_view text, bool lowercase, bool asian);

}  // namespace petlab::testing
