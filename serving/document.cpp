#include "serving/document.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/sha256.h"

namespace petlab::serving {
namespace {

// zlib parameters: the largest window with a gzip header, and the default amount of memory.
constexpr int kGzipWindow = 15 + 16;
constexpr int kMemoryLevel = 8;

std::string gzip(const std::string& bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("a page cannot be compressed: zlib cannot be initialised");
  }
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  // zlib counts a call's input in 32 bits, so longer pages are passed in pieces.
  constexpr std::size_t kPiece = std::size_t{1} << 30;
  std::size_t read = 0;
  std::size_t written = 0;
  int state = Z_OK;
  while (state == Z_OK) {
    const std::size_t in = std::min(kPiece, bytes.size() - read);
    const std::size_t out = std::min(kPiece, packed.size() - written);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + read));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(packed.data() + written);
    stream.avail_out = static_cast<uInt>(out);
    state = deflate(&stream, read + in == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
    read += in - stream.avail_in;
    written += out - stream.avail_out;
  }
  deflateEnd(&stream);
  if (state != Z_STREAM_END) {
    throw std::runtime_error(fmt::format("a page cannot be compressed: zlib returned {}", state));
  }
  packed.resize(written);
  return packed;
}

// A weight of zero means refusal.
bool is_zero(std::string_view weight) {
  return weight.find_first_of("123456789") == std::string_view::npos;
}

}  // namespace

Text tagged(std::string bytes) {
  std::string tag = base::sha256(bytes).substr(std::string_view("sha256:").size(), 32);
  return {std::make_shared<const std::string>(std::move(bytes)), std::move(tag)};
}

Document make_document(std::string bytes) {
  Document document;
  document.gzip = tagged(gzip(bytes));
  document.plain = tagged(std::move(bytes));
  return document;
}

bool accepts_gzip(std::string_view accept_encoding) {
  namespace http = boost::beast::http;
  // In Boost 1.81, a name at the end of the text gets the parameters of the one before it, so end
  // the text with a comma.
  const std::string text = std::string(accept_encoding) + ",";
  const http::ext_list codings(text);
  std::optional<bool> named;
  bool any = false;
  for (const auto& [coding, parameters] : codings) {
    bool wanted = true;
    for (const auto& [name, value] : parameters) {
      if (boost::beast::iequals(name, "q")) wanted = !is_zero({value.data(), value.size()});
    }
    if (boost::beast::iequals(coding, "gzip")) named = wanted;
    if (coding == "*") any = wanted;
  }
  return named.value_or(any);
}

}  // namespace petlab::serving
