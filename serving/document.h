#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace petlab::serving {

/// Bytes that are served, with a tag that differs whenever they do: hexadecimal digits.
struct Text {
  std::shared_ptr<const std::string> bytes;  // nullptr: not made yet
  std::string tag;
};
Text tagged(std::string bytes);

/// A text as it is and compressed (gzip, RFC 1952): once, not for every request.
struct Document {
  Text plain;
  Text gzip;
};
Document make_document(std::string bytes);

/// Whether a request's Accept-Encoding lets its answer be compressed by gzip (RFC 9110, 12.5.3).
/// What cannot be read, and what comes after it, says nothing.
bool accepts_gzip(std::string_view accept_encoding);

}  // namespace petlab::serving
