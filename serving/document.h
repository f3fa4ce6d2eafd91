#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace petlab::serving {

/// Bytes to serve, with a tag (hexadecimal digits) that changes whenever they do.
struct Text {
  std::shared_ptr<const std::string> bytes;  // nullptr: not yet computed
  std::string tag;
};
Text tagged(std::string bytes);

/// A text and its compressed form (gzip, RFC 1952), computed once for all requests.
struct Document {
  Text plain;
  Text gzip;
};
Document make_document(std::string bytes);

/// True if a request's Accept-Encoding allows gzip (RFC 9110, 12.5.3). Anything from the first
/// syntax error on is ignored.
bool accepts_gzip(std::string_view accept_encoding);

}  // namespace petlab::serving
