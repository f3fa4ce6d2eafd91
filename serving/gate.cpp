#include "serving/gate.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/address.hpp>
#include <cctype>
#include <charconv>
#include <stdexcept>

namespace petlab::serving {
namespace {

bool is_port(std::string_view text) {
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port <= 65535;
}

// Compares in constant time for texts of equal length.
bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

bool is_own_name(const std::string& name, const Rules& rules) {
  if (name.empty()) return false;
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(name, error);
  if (!error) return rules.any_address || address.is_loopback();
  return name == "localhost" ||
         std::find(rules.names.begin(), rules.names.end(), name) != rules.names.end();
}

bool is_from_elsewhere(const Asked& asked, bool for_page) {
  if (!asked.origin.empty()) {
    const std::string origin = lower(asked.origin);
    const std::string host = lower(asked.host);
    // A reverse proxy may use https.
    return origin != "http://" + host && origin != "https://" + host;
  }
  if (asked.fetch_site.empty() || asked.fetch_site == "same-origin" || asked.fetch_site == "none") {
    return false;
  }
  return !(for_page && asked.fetch_mode == "navigate" && asked.fetch_dest == "document");
}

// The value of the first `name=value` in a list with that separator.
std::string_view value_in(std::string_view list, char separator, std::string_view name) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(separator), list.size());
    std::string_view part = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    if (part.size() > name.size() && part.starts_with(name) && part[name.size()] == '=') {
      return part.substr(name.size() + 1);
    }
  }
  return {};
}

}  // namespace

std::string host_name(std::string_view host) {
  std::string_view name = host;
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    if (end == std::string_view::npos) return {};
    name = host.substr(1, end - 1);
    const std::string_view rest = host.substr(end + 1);
    if (!rest.empty() && (rest.front() != ':' || !is_port(rest.substr(1)))) return {};
    // Only addresses have brackets.
    boost::system::error_code error;
    boost::asio::ip::make_address_v6(std::string(name), error);
    return error ? std::string() : lower(name);
  }
  if (const std::size_t colon = host.find(':'); colon != std::string_view::npos) {
    if (!is_port(host.substr(colon + 1))) return {};
    name = host.substr(0, colon);
  }
  if (name.ends_with('.')) name.remove_suffix(1);
  return lower(name);
}

Verdict judge(const Asked& asked, const Rules& rules) {
  if (asked.method != "GET" && asked.method != "HEAD") {
    return Refused{405, "reports are read-only: use GET or HEAD"};
  }
  if (!is_own_name(host_name(asked.host), rules)) {
    return Refused{403,
                   "this server has another name: open the address that petlab serve printed, or "
                   "set this one with --host"};
  }
  const std::size_t question = asked.target.find('?');
  const std::string_view path = asked.target.substr(0, question);
  const std::string_view query =
      question == std::string_view::npos ? std::string_view() : asked.target.substr(question + 1);
  if (is_from_elsewhere(asked, path == "/")) {
    return Refused{403, "pages of other sites cannot use reports"};
  }
  if (!rules.token.empty()) {
    if (const std::string_view given = value_in(query, '&', "token"); !given.empty()) {
      if (!same_secret(given, rules.token)) {
        return Refused{403, "the token differs from the one that petlab serve printed"};
      }
      if (path == "/") return SignedIn{};
    } else {
      constexpr std::string_view kBearer = "Bearer ";
      const std::string_view bearer = asked.authorization.starts_with(kBearer)
                                          ? asked.authorization.substr(kBearer.size())
                                          : std::string_view();
      if (!same_secret(value_in(asked.cookie, ';', rules.cookie), rules.token) &&
          !same_secret(bearer, rules.token)) {
        return Refused{403,
                       "this page needs a token: open the full address that petlab serve printed, "
                       "with the part after the question mark"};
      }
    }
  }
  if (path == "/") return Granted{Resource::page};
  if (path == "/main") return Granted{Resource::changing_part};
  if (path == "/events") return Granted{Resource::events};
  if (path == "/favicon.ico") return Granted{Resource::icon};
  return Refused{404, "not found; the reports are at /"};
}

std::string make_token() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw std::runtime_error("the system returned no random bytes for a token");
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string token;
  for (const unsigned char byte : bytes) {
    token += kDigits[byte >> 4];
    token += kDigits[byte & 15];
  }
  return token;
}

}  // namespace petlab::serving
