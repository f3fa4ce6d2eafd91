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
  /// A file of certificates to trust; empty: those of the system.
  std::string certificates;
  /// Failures in a row, without a byte between them, before a download is given up.
  std::int64_t retries = 5;
  std::chrono::milliseconds retry_delay{1000};  // before the first one; doubled with each further
  /// To connect, and without a byte, before a try has failed. Whole seconds.
  std::chrono::seconds timeout{30};
};

/// A small answer. Names of headers are in lower case.
struct Answer {
  std::string body;
  std::map<std::string, std::string> headers;
};

/// A file on a server.
struct Download {
  std::string url;
  std::string token;           // sent to the url's own host only; empty: none
  std::string name;            // in messages
  std::uintmax_t size = 0;     // bytes, known beforehand
  std::filesystem::path file;  // grows while it goes on; what it holds already is not asked again
};

/// HTTP and HTTPS with redirects, proxies of the environment (https_proxy, no_proxy), retries with
/// growing pauses and resumed downloads. Throws Interrupted where the watcher says so. From one
/// thread.
class Http {
 public:
  Http(HttpOptions options, const Watcher& watcher);
  ~Http();
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;

  /// Up to 64 MiB. Throws HttpError, NoConnection, Error.
  Answer get(const std::string& url, const std::string& token);
  /// Returns when the file has all its bytes, and leaves it as far as it came when it throws:
  /// HttpError, NoConnection, Error (too many failures, a server that sends too much, a disk that
  /// is full). Says nothing of the content.
  void download(const Download& wanted);
  /// Bytes that download() has received so far.
  std::uintmax_t received() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A part of a URL's path, with %XX for all but letters, digits, `-`, `.`, `_` and `~`.
std::string url_part(const std::string& text);

}  // namespace petlab::fetch
