#include "reports/latex_text.h"

#include <fmt/format.h>
#include <unicode/normalizer2.h>
#include <unicode/unistr.h>

#include <map>
#include <optional>
#include <stdexcept>

#include "base/shown.h"

namespace petlab::reports {
namespace {

// Ordered by code point within each group. Letters use math mode only if OT1, the encoding of
// LaTeX's standard fonts, has no text glyph.
const std::map<std::u32string_view, std::string_view>& signs() {
  static const std::map<std::u32string_view, std::string_view> table = {
      {U"\\", "\\textbackslash{}"},
      {U"{", "\\{"},
      {U"}", "\\}"},
      {U"$", "\\$"},
      {U"&", "\\&"},
      {U"#", "\\#"},
      {U"%", "\\%"},
      {U"_", "\\_"},
      {U"^", "\\textasciicircum{}"},
      {U"~", "\\textasciitilde{}"},
      {U"<", "$<$"},
      {U">", "$>$"},
      {U"|", "$|$"},
      {U"\"", "''"},
      {U"`", "{}`{}"},

      // Otherwise read as an optional argument of a preceding \\ or \item.
      {U"[", "{[}"},
      {U"]", "{]}"},
      {U"\u00A0", "~"},
      {U"¡", "!`"},
      {U"£", "\\pounds{}"},
      {U"§", "\\S{}"},
      {U"©", "\\copyright{}"},
      {U"«", "$\\ll$"},
      {U"¬", "$\\neg$"},
      {U"®", "\\textregistered{}"},
      {U"°", "$^{\\circ}$"},
      {U"±", "$\\pm$"},
      {U"²", "$^{2}$"},
      {U"³", "$^{3}$"},
      {U"µ", "$\\mu$"},
      {U"¶", "\\P{}"},
      {U"·", "$\\cdot$"},
      {U"¹", "$^{1}$"},
      {U"»", "$\\gg$"},
      {U"¼", "$\\frac{1}{4}$"},
      {U"½", "$\\frac{1}{2}$"},
      {U"¾", "$\\frac{3}{4}$"},
      {U"¿", "?`"},
      {U"Æ", "\\AE{}"},
      {U"×", "$\\times$"},
      {U"Ø", "\\O{}"},
      {U"ß", "\\ss{}"},
      {U"æ", "\\ae{}"},
      {U"÷", "$\\div$"},
      {U"ø", "\\o{}"},
      {U"ı", "\\i{}"},
      {U"Ł", "\\L{}"},
      {U"ł", "\\l{}"},
      {U"Œ", "\\OE{}"},
      {U"œ", "\\oe{}"},
      {U"ȷ", "\\j{}"},
      {U"Α", "$\\mathrm{A}$"},
      {U"Β", "$\\mathrm{B}$"},
      {U"Γ", "$\\Gamma$"},
      {U"Δ", "$\\Delta$"},
      {U"Ε", "$\\mathrm{E}$"},
      {U"Ζ", "$\\mathrm{Z}$"},
      {U"Η", "$\\mathrm{H}$"},
      {U"Θ", "$\\Theta$"},
      {U"Ι", "$\\mathrm{I}$"},
      {U"Κ", "$\\mathrm{K}$"},
      {U"Λ", "$\\Lambda$"},
      {U"Μ", "$\\mathrm{M}$"},
      {U"Ν", "$\\mathrm{N}$"},
      {U"Ξ", "$\\Xi$"},
      {U"Ο", "$\\mathrm{O}$"},
      {U"Π", "$\\Pi$"},
      {U"Ρ", "$\\mathrm{P}$"},
      {U"Σ", "$\\Sigma$"},
      {U"Τ", "$\\mathrm{T}$"},
      {U"Υ", "$\\Upsilon$"},
      {U"Φ", "$\\Phi$"},
      {U"Χ", "$\\mathrm{X}$"},
      {U"Ψ", "$\\Psi$"},
      {U"Ω", "$\\Omega$"},
      {U"α", "$\\alpha$"},
      {U"β", "$\\beta$"},
      {U"γ", "$\\gamma$"},
      {U"δ", "$\\delta$"},
      {U"ε", "$\\varepsilon$"},
      {U"ζ", "$\\zeta$"},
      {U"η", "$\\eta$"},
      {U"θ", "$\\theta$"},
      {U"ι", "$\\iota$"},
      {U"κ", "$\\kappa$"},
      {U"λ", "$\\lambda$"},
      {U"μ", "$\\mu$"},
      {U"ν", "$\\nu$"},
      {U"ξ", "$\\xi$"},
      {U"ο", "$o$"},
      {U"π", "$\\pi$"},
      {U"ρ", "$\\rho$"},
      {U"ς", "$\\varsigma$"},
      {U"σ", "$\\sigma$"},
      {U"τ", "$\\tau$"},
      {U"υ", "$\\upsilon$"},
      {U"φ", "$\\varphi$"},
      {U"χ", "$\\chi$"},
      {U"ψ", "$\\psi$"},
      {U"ω", "$\\omega$"},
      {U"ϑ", "$\\vartheta$"},
      {U"ϕ", "$\\phi$"},
      {U"ϵ", "$\\epsilon$"},
      {U"‐", "-{}"},
      {U"‑", "-{}"},
      {U"–", "--{}"},
      {U"—", "---"},
      {U"‘", "{}`{}"},
      {U"’", "'"},
      {U"“", "{}``{}"},
      {U"”", "''"},
      {U"†", "\\dag{}"},
      {U"‡", "\\ddag{}"},
      {U"•", "$\\bullet$"},
      {U"…", "\\dots{}"},
      {U"\u2009", "\\,"},
      {U"\u202F", "\\,"},
      {U"′", "$'$"},
      {U"⁰", "$^{0}$"},
      {U"⁴", "$^{4}$"},
      {U"⁵", "$^{5}$"},
      {U"⁶", "$^{6}$"},
      {U"⁷", "$^{7}$"},
      {U"⁸", "$^{8}$"},
      {U"⁹", "$^{9}$"},
      {U"⁺", "$^{+}$"},
      {U"⁻", "$^{-}$"},
      {U"ⁿ", "$^{n}$"},
      {U"₀", "$_{0}$"},
      {U"₁", "$_{1}$"},
      {U"₂", "$_{2}$"},
      {U"₃", "$_{3}$"},
      {U"₄", "$_{4}$"},
      {U"₅", "$_{5}$"},
      {U"₆", "$_{6}$"},
      {U"₇", "$_{7}$"},
      {U"₈", "$_{8}$"},
      {U"₉", "$_{9}$"},
      {U"ℓ", "$\\ell$"},
      {U"™", "\\texttrademark{}"},
      {U"←", "$\\leftarrow$"},
      {U"↑", "$\\uparrow$"},
      {U"→", "$\\rightarrow$"},
      {U"↓", "$\\downarrow$"},
      {U"↔", "$\\leftrightarrow$"},
      {U"⇐", "$\\Leftarrow$"},
      {U"⇒", "$\\Rightarrow$"},
      {U"⇔", "$\\Leftrightarrow$"},
      {U"∀", "$\\forall$"},
      {U"∂", "$\\partial$"},
      {U"∃", "$\\exists$"},
      {U"∅", "$\\emptyset$"},
      {U"∆", "$\\Delta$"},
      {U"∇", "$\\nabla$"},
      {U"∈", "$\\in$"},
      {U"∏", "$\\prod$"},
      {U"∑", "$\\sum$"},
      {U"−", "$-$"},
      {U"∓", "$\\mp$"},
      {U"∗", "$\\ast$"},
      {U"∘", "$\\circ$"},
      {U"√", "$\\surd$"},
      {U"∝", "$\\propto$"},
      {U"∞", "$\\infty$"},
      {U"∧", "$\\wedge$"},
      {U"∨", "$\\vee$"},
      {U"∩", "$\\cap$"},
      {U"∪", "$\\cup$"},
      {U"∫", "$\\int$"},
      {U"∼", "$\\sim$"},
      {U"≈", "$\\approx$"},
      {U"≠", "$\\neq$"},
      {U"≡", "$\\equiv$"},
      {U"≤", "$\\leq$"},
      {U"≥", "$\\geq$"},
      {U"⊂", "$\\subset$"},
      {U"⊆", "$\\subseteq$"},
      {U"⊕", "$\\oplus$"},
      {U"⊗", "$\\otimes$"},
      {U"⋅", "$\\cdot$"},
      {U"⋆", "$\\star$"},
      {U"\uFFFD", "?"},
  };
  return table;
}

// OT1's accents, by combining mark.
std::optional<std::string_view> accent_of(char32_t mark) {
  switch (mark) {
    case 0x300:
      return "\\`";
    case 0x301:
      return "\\'";
    case 0x302:
      return "\\^";
    case 0x303:
      return "\\~";
    case 0x304:
      return "\\=";
    case 0x306:
      return "\\u";
    case 0x307:
      return "\\.";
    case 0x308:
      return "\\\"";
    case 0x30A:
      return "\\r";
    case 0x30B:
      return "\\H";
    case 0x30C:
      return "\\v";
    case 0x323:
      return "\\d";
    case 0x327:
      return "\\c";
    case 0x331:
      return "\\b";
    default:
      return std::nullopt;
  }
}

bool is_latin(char32_t c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

// Splits letters from their accents, so that one table of accents serves all letters.
std::u32string decomposed(const icu::UnicodeString& text) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* const nfd = icu::Normalizer2::getNFDInstance(status);
  icu::UnicodeString apart = U_SUCCESS(status) ? nfd->normalize(text, status) : text;
  if (U_FAILURE(status)) apart = text;
  std::u32string points;
  for (std::int32_t at = 0; at < apart.length(); at = apart.moveIndex32(at, 1)) {
    points += static_cast<char32_t>(apart.char32At(at));
  }
  return points;
}

[[noreturn]] void refuse_character(const std::u32string& character, std::string_view text) {
  std::string shown;
  std::string codes;
  for (const char32_t c : character) {
    icu::UnicodeString(static_cast<UChar32>(c)).toUTF8String(shown);
    codes += fmt::format("{}U+{:04X}", codes.empty() ? "" : " ", static_cast<std::uint32_t>(c));
  }
  throw std::runtime_error(fmt::format(
      "LaTeX: found '{}' ({}) in {}, expected characters that pdfLaTeX's standard fonts "
      "have; rename it, or choose another --format",
      shown, codes, base::in_quotes(text)));
}

}  // namespace

std::string escaped_latex(std::string_view text) {
  const std::string safe = base::printable(text);
  const std::u32string points = decomposed(icu::UnicodeString::fromUTF8(safe));
  std::string result;
  for (std::size_t at = 0; at < points.size();) {
    std::size_t end = at + 1;
    // Include all combining marks after a letter, so that marks without a command are not lost.
    while (end < points.size() && points[end] >= 0x300 && points[end] <= 0x36F) ++end;
    const std::u32string character = points.substr(at, end - at);
    const char32_t letter = points[at];
    at = end;
    if (character.size() == 1) {
      const auto sign = signs().find(character);
      if (letter == '*' && result.find_first_not_of(' ') == std::string::npos) {
        result += "{*}";  // otherwise the star form of a preceding line break
      } else if (letter == '-' && at < points.size() && points[at] == '-') {
        result += "-{}";  // otherwise part of a dash
      } else if (sign != signs().end()) {
        result += sign->second;
      } else if (letter >= 0x20 && letter < 0x7F) {
        result += static_cast<char>(letter);
      } else {
        refuse_character(character, safe);
      }
      continue;
    }
    // The last mark is the outermost. OT1 letters take at most one mark above and one below.
    if (!is_latin(letter) || character.size() > 3) refuse_character(character, safe);
    const bool dotless = (letter == 'i' || letter == 'j') && character[1] < 0x316;
    std::string inner = dotless ? std::string("\\") + static_cast<char>(letter)
                                : std::string(1, static_cast<char>(letter));
    for (const char32_t mark : character.substr(1)) {
      const auto accent = accent_of(mark);
      if (!accent) refuse_character(character, safe);
      inner = std::string(*accent) + "{" + inner + "}";
    }
    result += inner;
  }
  return result;
}

}  // namespace petlab::reports
