#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace petlab::serving {

/// The parts of a request that decide whether it is answered. A missing header is empty.
struct Asked {
  std::string_view method;
  std::string_view target;
  std::string_view host;
  std::string_view origin;
  std::string_view fetch_site;  // Sec-Fetch-Site
  std::string_view fetch_mode;  // Sec-Fetch-Mode
  std::string_view fetch_dest;  // Sec-Fetch-Dest
  std::string_view cookie;
  std::string_view authorization;
};

/// The rules for accepting requests.
struct Rules {
  /// Accepted names of this machine besides localhost and its loopback addresses; lower case.
  /// Requests for any other name are rejected as DNS rebinding.
  std::vector<std::string> names;
  bool any_address = false;  // accept every IP address as the machine's; else only loopback ones
  std::string token;         // required from readers; empty: none
  std::string cookie;        // name of the cookie that stores the token
};

/// The resources. Nothing else is ever served, and no file path depends on a request.
enum class Resource { page, changing_part, events, icon };

struct Granted {
  Resource what = Resource::page;
  bool operator==(const Granted&) const = default;
};
/// The token was in the address: it becomes a cookie, followed by a redirect to the address without
/// it.
struct SignedIn {
  bool operator==(const SignedIn&) const = default;
};
struct Refused {
  int status = 404;
  std::string why;  // a line for people
  bool operator==(const Refused&) const = default;
};
using Verdict = std::variant<Granted, SignedIn, Refused>;

/// Decides on a request. It must be a GET or HEAD for this machine by one of its names. It must not
/// come from a page of another site (Origin, Sec-Fetch-Site; following a link to the page is
/// allowed). If there is a token, it must have it in the address, a cookie or as a bearer token.
Verdict judge(const Asked& asked, const Rules& rules);

/// The host of a Host header without port, in lower case; empty if it is invalid.
std::string host_name(std::string_view host);

/// 32 random hexadecimal digits. Throws std::runtime_error if the system provides no randomness.
std::string make_token();

}  // namespace petlab::serving
