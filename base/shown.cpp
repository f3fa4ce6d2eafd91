#include "base/shown.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

namespace petlab::base {

std::string shown(const nlohmann::json& value) {
  if (value.is_array()) return "a list";
  if (value.is_object()) return "a group of keys";
  if (value.is_null()) return "nothing";
  std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (value.is_string()) {
    text = fmt::format("'{}'", std::string_view(text).substr(1, text.size() - 2));
  }
  if (text.size() > 60) {
    std::size_t cut = 57;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
    text = text.substr(0, cut) + "…";
  }
  return text;
}

}  // namespace petlab::base
