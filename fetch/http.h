#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "fetch/watcher.h"

namespace petlab::fetch {

struct HttpOptions {
  std::string user_agent = "petlab";
  /// A file of trusted certificates; empty: those of the system.
  std::string certificates;
  /// Number of consecutive failures, without a byte received between them, before a download fails.
  std::int64_t retries = 5;
  std::chrono::milliseconds retry_delay{1000};  // before the first retry; doubles each time
  /// Maximum time to connect, and without receiving a byte. Whole seconds.
  std::chrono::seconds timeout{30};
};

/// A small answer. Header names are in lower case.
struct Answer {
  std::string body;
  std::map<std::string, std::string> headers;
};

/// A file on a server.
struct Download {
  std::string url;
  std::string token;           // sent only to the host of `url`; empty: none
  std::string name;            // name in messages
  std::uintmax_t size = 0;     // bytes, known in advance
  std::filesystem::path file;  // output; existing contents are resumed
};

/// An HTTP and HTTPS client with redirects, the environment's proxies (https_proxy, no_proxy),
/// retries with growing pauses, and resumed downloads. Throws Interrupted if the watcher requests
/// it. Not thread-safe.
class Http {
 public:
  Http(HttpOptions options, const Watcher& watcher);
  ~Http();
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;

  /// Gets an answer of up to 64 MiB. Throws HttpError, NoConnection, Error.
  Answer get(const std::string& url, const std::string& token);
  /// Returns when the file is complete. Keeps the partial file when it throws HttpError,
  /// NoConnection or Error (too many failures, a server that sends too much, a full disk). Does not
  /// verify the content.
  void download(const Download& wanted);
  /// Bytes that download() has received so far.
  std::uintmax_t received() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Percent-encodes a part of a URL's path, except letters, digits, `-`, `.`, `_` and `~`.
std::string url_part(const std::string& text);

}  // namespace petlab::fetch
