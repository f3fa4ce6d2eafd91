#include "serving/gate.h"

#include <set>

#include "tests/support/catch.h"

namespace petlab::serving {
namespace {

const std::string kToken = "0123456789abcdef0123456789abcdef";

Asked asked(std::string_view target, std::string_view host = "127.0.0.1:8642") {
  Asked request;
  request.method = "GET";
  request.target = target;
  request.host = host;
  return request;
}

Rules with_token() {
  Rules rules;
  rules.names = {"node7", "node7.cluster.example"};
  rules.any_address = true;
  rules.token = kToken;
  rules.cookie = "petlab_8642";
  return rules;
}

/// 200, 303 or the status of a refusal.
int status(const Asked& request, const Rules& rules = {}) {
  const Verdict verdict = judge(request, rules);
  if (const auto* refused = std::get_if<Refused>(&verdict)) return refused->status;
  return std::holds_alternative<SignedIn>(verdict) ? 303 : 200;
}

TEST_CASE("There are four resources, and no others", "[serving]") {
  CHECK(judge(asked("/"), {}) == Verdict(Granted{Resource::page}));
  CHECK(judge(asked("/?x=1"), {}) == Verdict(Granted{Resource::page}));
  CHECK(judge(asked("/main"), {}) == Verdict(Granted{Resource::changing_part}));
  CHECK(judge(asked("/events"), {}) == Verdict(Granted{Resource::events}));
  CHECK(judge(asked("/favicon.ico"), {}) == Verdict(Granted{Resource::icon}));
  for (const std::string_view target :
       {"", "*", "/index.html", "//", "/main/", "/../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2fpetlab.db", "/petlab.db", "http://127.0.0.1/", "/main%00", "/MAIN", "main", "?"}) {
    INFO(target);
    CHECK(status(asked(target)) == 404);
  }
}

TEST_CASE("Only GET and HEAD are accepted", "[serving]") {
  for (const std::string_view method : {"POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "get", ""}) {
    Asked request = asked("/");
    request.method = method;
    CHECK(status(request) == 405);
  }
  Asked request = asked("/");
  request.method = "HEAD";
  CHECK(status(request) == 200);
}

TEST_CASE("The host must be a name of this machine", "[serving]") {
  for (const std::string_view host : {"127.0.0.1", "127.0.0.1:8642", "localhost:8642", "LOCALHOST",
                                      "localhost.:1", "[::1]:8642", "[::1]", "127.1.2.3:80"}) {
    INFO(host);
    CHECK(status(asked("/", host)) == 200);
  }
  // A tunnel (ssh -L) has another port, so any port is accepted.
  CHECK(status(asked("/", "localhost:9999")) == 200);
  for (const std::string_view host :
       {"", "evil.example", "evil.example:8642", "localhost.evil.example", "127.0.0.1.evil.example",
        "10.0.0.1", "[::2]", "[::1", "[localhost]", "localhost:x", "localhost:70000",
        "localhost:1:2", "::1", "localhost ", "evil@localhost", "node7"}) {
    INFO(host);
    CHECK(status(asked("/", host)) == 403);
  }
}

TEST_CASE("If others may connect, every address and the names of the machine are accepted",
          "[serving]") {
  Rules rules = with_token();
  rules.token.clear();
  for (const std::string_view host : {"node7:8642", "Node7.Cluster.Example", "10.1.2.3:8642",
                                      "[fe80::1]:8642", "localhost:8642"}) {
    INFO(host);
    CHECK(status(asked("/", host), rules) == 200);
  }
  CHECK(status(asked("/", "node7.evil.example"), rules) == 403);
}

TEST_CASE("Pages of other sites cannot read a report", "[serving]") {
  Asked request = asked("/main");
  request.origin = "http://127.0.0.1:8642";
  CHECK(status(request) == 200);
  for (const std::string_view origin :
       {"http://evil.example", "null", "http://127.0.0.1:9999", "http://127.0.0.1", "file://",
        "http://127.0.0.1:8642.evil.example", "ftp://127.0.0.1:8642"}) {
    INFO(origin);
    request.origin = origin;
    CHECK(status(request) == 403);
  }
  request.origin = {};
  for (const std::string_view site : {"cross-site", "same-site", "anything"}) {
    request.fetch_site = site;
    CHECK(status(request) == 403);
    Asked link = asked("/");
    link.fetch_site = site;
    link.fetch_mode = "no-cors";
    link.fetch_dest = "script";
    CHECK(status(link) == 403);
    link.fetch_mode = "navigate";
    link.fetch_dest = "iframe";
    CHECK(status(link) == 403);
    // A link that the user follows.
    link.fetch_dest = "document";
    CHECK(status(link) == 200);
    link.target = "/main";
    CHECK(status(link) == 403);
  }
  for (const std::string_view site : {"same-origin", "none"}) {
    request.fetch_site = site;
    CHECK(status(request) == 200);
  }
}

TEST_CASE("A token is accepted in the address, in a cookie or as a bearer token", "[serving]") {
  const Rules rules = with_token();
  CHECK(status(asked("/"), rules) == 403);
  CHECK(status(asked("/events"), rules) == 403);
  CHECK(status(asked("/elsewhere"), rules) == 403);
  const std::string in_address = "/?token=" + kToken;
  CHECK(status(asked(in_address), rules) == 303);
  CHECK(status(asked(in_address + "&x"), rules) == 303);
  CHECK(status(asked("/?x=1&token=" + kToken), rules) == 303);
  const std::string main = "/main?token=" + kToken;
  CHECK(status(asked(main), rules) == 200);
  for (const std::string& wrong :
       {std::string("/?token=x"), "/?token=" + kToken + "0", "/?token=" + kToken.substr(1),
        "/?Token=" + kToken, std::string("/?token"), std::string("/?token="),
        "/#token=" + kToken}) {
    INFO(wrong);
    CHECK(status(asked(wrong), rules) == 403);
  }
  Asked request = asked("/");
  const std::string cookie = "a=b; petlab_8642=" + kToken + "; c";
  request.cookie = cookie;
  CHECK(status(request, rules) == 200);
  const std::string other = "petlab_8643=" + kToken + "; xpetlab_8642=" + kToken;
  request.cookie = other;
  CHECK(status(request, rules) == 403);
  request.cookie = "petlab_8642=";
  CHECK(status(request, rules) == 403);
  request.cookie = {};
  const std::string bearer = "Bearer " + kToken;
  request.authorization = bearer;
  CHECK(status(request, rules) == 200);
  request.authorization = kToken;
  CHECK(status(request, rules) == 403);
}

TEST_CASE("Each token is different", "[serving]") {
  std::set<std::string> tokens;
  for (int i = 0; i < 100; ++i) {
    tokens.insert(make_token());
    CHECK(tokens.rbegin()->size() == 32);
  }
  CHECK(tokens.size() == 100);
}

}  // namespace
}  // namespace petlab::serving
