#pragma once

#include <string>
#include <string_view>

namespace petlab::reports {

/// Escapes any text for pdfLaTeX, including commands, ligatures and `[` after `\\`. Accented
/// letters, Greek, arrows and common signs become 7-bit commands that need no package. Throws
/// std::runtime_error naming the character and the text if pdfLaTeX's standard fonts lack the glyph
/// (Chinese, emoji). U+FFFD, the replacement for invalid bytes, becomes `?`.
std::string escaped_latex(std::string_view text);

}  // namespace petlab::reports
