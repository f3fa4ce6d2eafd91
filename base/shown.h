#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace petlab::base {

/// Quotes text from a file, a command line or a worker for a message: `'lerning_rate'`. The result
/// is one line: control and invisible characters (such as a byte order mark) are escaped as in
/// JSON, and invalid UTF-8 becomes U+FFFD. Text of more than 60 bytes is cut to at most 57 and ends
/// with `…`.
std::string in_quotes(std::string_view text);
/// Likewise, without the quotes.
std::string excerpt(std::string_view text);
/// Quotes at most `most` of the texts: `'a', 'b' and 7 more`.
std::string list_in_quotes(std::span<const std::string> texts, std::size_t most = 10);
/// Formats a value for a message, with text in quotes: `'lerning_rate'`, `-0.1`, `true`, `a list`.
std::string shown(const nlohmann::json& value);

/// Replaces invalid UTF-8 and control characters (newlines, escape sequences) by U+FFFD, so that
/// the text is safe to print on a terminal.
std::string printable(std::string_view text);
/// The printable lines of a text. A newline at its end adds no empty line.
std::vector<std::string> printable_lines(std::string_view text);
/// Makes a whole message printable, and keeps its newlines. Cuts what exceeds a screen: the middle
/// of a line of more than 2,000 bytes, and everything after 120 lines.
std::string printable_message(std::string_view text);

}  // namespace petlab::base
