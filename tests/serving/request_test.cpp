#include <random>
#include <string>

#include "tests/fuzz/serving_inputs.h"
#include "tests/support/catch.h"

namespace petlab::serving {

TEST_CASE("No bytes of a request break the parser, or get past the token", "[serving]") {
  const std::string whole =
      "GET /?token=0123456789abcdef HTTP/1.1\r\nHost: localhost:8642\r\nOrigin: "
      "http://localhost:8642\r\nCookie: a=b; petlab_8642=0123456789abcdef\r\nAuthorization: "
      "Bearer x\r\nSec-Fetch-Site: none\r\nAccept-Encoding: br;q=1.0, gzip;q=0.5, "
      "*;q=0\r\nContent-Length: 7\r\n\r\n";
  fuzz::http_request(whole);
  std::mt19937 random(5);
  for (int i = 0; i < 20000; ++i) {
    std::string text = whole.substr(0, 1 + random() % whole.size());
    for (std::size_t edits = random() % 6; edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, random() % 9);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 40));
      }
      if (text.empty()) text = "G";
    }
    fuzz::http_request(text);
  }
}

}  // namespace petlab::serving
