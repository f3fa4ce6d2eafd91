#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace petlab::serving {

/// What of a request decides whether it is answered. Empty: the header is not there.
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

/// Who may ask.
struct Rules {
  /// Names by which this machine is known, besides localhost and its loopback addresses; lower
  /// case. Whoever asks for another was led here by somebody else's name (DNS rebinding).
  std::vector<std::string> names;
  bool any_address = false;  // every IP address is one of its own; else loopback ones alone
  std::string token;         // what a reader must know; empty: nothing
  std::string cookie;        // the name of the cookie that keeps the token
};

/// What there is. Nothing else is ever sent, and no path of a file is made of what was asked.
enum class Resource { page, changing_part, events, icon };

struct Granted {
  Resource what = Resource::page;
  bool operator==(const Granted&) const = default;
};
/// The token came in the address: it becomes a cookie, and the address is asked for without it.
struct SignedIn {
  bool operator==(const SignedIn&) const = default;
};
struct Refused {
  int status = 404;
  std::string why;  // a line for people
  bool operator==(const Refused&) const = default;
};
using Verdict = std::variant<Granted, SignedIn, Refused>;

/// Whether the request is answered. It must be a GET or HEAD for this machine by one of its own
/// names, no page of another site may have made it (Origin, Sec-Fetch-Site; a link that is followed
/// to the page is none), and it must have the token, in the address, a cookie or as a bearer's.
Verdict judge(const Asked& asked, const Rules& rules);

/// The host of a Host header without its port, in lower case; empty where it is none.
std::string host_name(std::string_view host);

/// 32 hexadecimal digits that nobody guesses. Throws std::runtime_error where the system has no
/// randomness.
std::string make_token();

}  // namespace petlab::serving
