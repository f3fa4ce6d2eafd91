#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace petlab::base {

/// `'lerning_rate'`: text from a file, a command line or a worker as a message quotes it. One line:
/// control and invisible characters (such as a byte order mark) are escaped as in JSON, invalid
/// UTF-8 becomes U+FFFD. Text of more than 60 bytes ends with `…` after at most 57.
std::string in_quotes(std::string_view text);
/// The same without the quotes.
std::string excerpt(std::string_view text);
/// `'a', 'b' and 7 more`: at most `most` of the texts, each quoted.
std::string list_in_quotes(std::span<const std::string> texts, std::size_t most = 10);
/// `'lerning_rate'`, `-0.1`, `true`, `a list`: a value as a message shows it; text is quoted.
std::string shown(const nlohmann::json& value);

/// The text with invalid UTF-8 and control characters (line ends, escape sequences) replaced by
/// U+FFFD: safe to print on a terminal.
std::string printable(std::string_view text);
/// Each line of the text, printable; a line end at the end of the text begins no further line.
std::vector<std::string> printable_lines(std::string_view text);
/// A whole message, printable, with its line breaks. What exceeds a screen is cut: the middle of a
/// line of more than 2,000 bytes, and all after 120 lines.
std::string printable_message(std::string_view text);

}  // namespace petlab::base
