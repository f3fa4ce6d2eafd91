#include "tests/fuzz/serving_inputs.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <cstdlib>
#include <string>

#include "serving/document.h"
#include "serving/gate.h"

namespace petlab::fuzz {

void http_request(std::string_view text) {
  namespace http = boost::beast::http;
  static const std::string token = "0123456789abcdef0123456789abcdef";
  serving::Rules rules;
  rules.names = {"node7"};
  serving::Rules guarded = rules;
  guarded.any_address = true;
  guarded.token = token;
  guarded.cookie = "petlab_8642";

  http::request_parser<http::empty_body> parser;
  parser.header_limit(8192);
  parser.body_limit(0);
  boost::system::error_code error;
  parser.put(boost::asio::buffer(text.data(), text.size()), error);
  serving::Asked asked;
  const auto view = [](boost::beast::string_view part) {
    return std::string_view(part.data(), part.size());
  };
  if (!error && parser.is_header_done()) {
    const auto& request = parser.get();
    asked.method = view(request.method_string());
    asked.target = view(request.target());
    asked.host = view(request["Host"]);
    asked.origin = view(request["Origin"]);
    asked.fetch_site = view(request["Sec-Fetch-Site"]);
    asked.cookie = view(request["Cookie"]);
    asked.authorization = view(request["Authorization"]);
  } else {
    // Parts of an invalid request are used as the fields of a valid one.
    asked.method = "GET";
    asked.target = text.substr(0, text.size() / 2);
    asked.host = text.substr(text.size() / 2);
    asked.cookie = text;
  }
  serving::judge(asked, rules);
  // The text of an invalid request is used as a header's value.
  serving::accepts_gzip(parser.is_header_done() ? view(parser.get()["Accept-Encoding"]) : text);
  const auto verdict = serving::judge(asked, guarded);
  const bool let_in = !std::holds_alternative<serving::Refused>(verdict);
  if (let_in && text.find(token) == std::string_view::npos) std::abort();
}

}  // namespace petlab::fuzz
