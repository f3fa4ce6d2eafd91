#include "serving/document.h"

#include <zlib.h>

#include <random>
#include <string>

#include "tests/support/catch.h"

namespace petlab::serving {
namespace {

std::string unpacked(const std::string& packed, std::size_t size) {
  std::string bytes(size + 1, '\0');
  z_stream stream{};
  REQUIRE(inflateInit2(&stream, 15 + 16) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  CHECK(inflate(&stream, Z_FINISH) == Z_STREAM_END);
  CHECK(stream.avail_in == 0);
  bytes.resize(stream.total_out);
  inflateEnd(&stream);
  return bytes;
}

TEST_CASE("A document is available plain and compressed", "[serving]") {
  std::mt19937 random(3);
  std::string noise(300000, '\0');
  for (char& c : noise) c = static_cast<char>(random());
  for (const std::string& text :
       {std::string(), std::string("x"), std::string(1 << 20, 'x'), noise}) {
    const Document document = make_document(text);
    CHECK(*document.plain.bytes == text);
    CHECK(unpacked(*document.gzip.bytes, text.size()) == text);
    CHECK(document.gzip.tag != document.plain.tag);
    CHECK(make_document(text).gzip.tag == document.gzip.tag);
    CHECK(make_document(text + "y").plain.tag != document.plain.tag);
  }
  CHECK(make_document(std::string(1 << 20, 'x')).gzip.bytes->size() < 4096);
}

TEST_CASE("A request says whether its answer may be compressed", "[serving]") {
  for (const char* yes : {"gzip", "GZIP", "gzip, deflate, br, zstd", "br;q=1.0, gzip;q=0.001", "*",
                          "identity, *;q=0.5", "deflate , gzip ; Q=0.5", "*;q=0, gzip"}) {
    INFO(yes);
    CHECK(accepts_gzip(yes));
  }
  for (const char* no : {"", "identity", "br", "gzip;q=0", "gzip;q=0.000, br", "*;q=0",
                         "*, gzip;q=0", "gzipped", "\", gzip"}) {
    INFO(no);
    CHECK_FALSE(accepts_gzip(no));
  }
}

}  // namespace
}  // namespace petlab::serving
