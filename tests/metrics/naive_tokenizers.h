#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace petlab::testing {

/// The tokenizers pass by pass, as sacrebleu's replacements are written down, on code points: slow,
/// and plain enough to be read against the description. `text` is valid UTF-8.
std::vector<std::string> naive_13a(std::string_view text);
std::vector<std::string> naive_intl(std::string_view text);
std::vector<std::string> naive_zh(std::string_view text);
/// TER's with `normalized`, lower-cased unless asked not to.
std::vector<std::string> naive_tercom(std::string_view text, bool lowercase, bool asian);

}  // namespace petlab::testing
