#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "trainer/files/error.h"

namespace petlab::trainer {

// Limits for values in config.json. Larger tables would not fit any machine, and the limits keep
// products within 64 bits.
inline constexpr std::int64_t kMostRows = 100'000'000;
inline constexpr std::int64_t kMostWidth = 1'000'000;
inline constexpr std::int64_t kMostLayers = 10'000;

/// Reads typed fields of a JSON object. Error messages name the file and the field.
class ConfigFields {
 public:
  ConfigFields(const nlohmann::json& json, const std::string& file) : json_(json), file_(file) {}

  [[noreturn]] void refuse(const char* field, const std::string& message) const {
    throw Error(fmt::format("{}: {} {}", file_, field, message));
  }

  /// Returns a whole number in [least, most]. A missing field gives `fallback`, or an error without
  /// one.
  std::int64_t whole(const char* field, std::int64_t least, std::int64_t most,
                     std::optional<std::int64_t> fallback = std::nullopt) const {
    const nlohmann::json* value = find(field);
    if (value == nullptr) {
      if (fallback) return *fallback;
      refuse(field, "is missing");
    }
    if (!value->is_number_integer() || value->get<double>() < static_cast<double>(least) ||
        value->get<double>() > static_cast<double>(most)) {
      refuse(field,
             fmt::format("is {}, must be a whole number in {}..{}", shown(*value), least, most));
    }
    return value->get<std::int64_t>();
  }

  double number(const char* field, double least, double below, double fallback) const {
    const nlohmann::json* value = find(field);
    if (value == nullptr) return fallback;
    if (!value->is_number() || !(value->get<double>() >= least) ||
        !(value->get<double>() < below)) {
      refuse(field,
             fmt::format("is {}, must be a number in [{}, {})", shown(*value), least, below));
    }
    return value->get<double>();
  }

  std::string text(const char* field, const std::string& fallback) const {
    const nlohmann::json* value = find(field);
    if (value == nullptr) return fallback;
    if (!value->is_string()) refuse(field, fmt::format("is {}, must be a string", shown(*value)));
    return value->get<std::string>();
  }

  bool flag(const char* field, bool fallback) const {
    const nlohmann::json* value = find(field);
    if (value == nullptr) return fallback;
    if (!value->is_boolean())
      refuse(field, fmt::format("is {}, must be true or false", shown(*value)));
    return value->get<bool>();
  }

 private:
  /// nullptr if the field is missing or null; Hugging Face writes null for unset fields.
  const nlohmann::json* find(const char* field) const {
    const auto found = json_.find(field);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }

  static std::string shown(const nlohmann::json& value) {
    return value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace).substr(0, 60);
  }

  const nlohmann::json& json_;
  const std::string& file_;
};

}  // namespace petlab::trainer
