#pragma once

#include <string>
#include <string_view>

namespace petlab::reports {

/// A text for pdfLaTeX, whatever it contains: commands, ligatures and `[` after `\\` are escaped;
/// accented letters, Greek, arrows and common signs are written in 7-bit commands that need no
/// package. Throws std::runtime_error naming the character and the text where pdfLaTeX's standard
/// fonts have no glyph (Chinese, emoji). U+FFFD, which stands for bytes that were no text, is `?`.
std::string escaped_latex(std::string_view text);

}  // namespace petlab::reports
