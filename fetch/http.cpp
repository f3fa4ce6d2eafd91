#include "fetch/http.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <thread>

#include "base/file_descriptor.h"
#include "fetch/error.h"

namespace petlab::fetch {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMostAnswer = std::size_t{64} << 20;
constexpr std::size_t kMostErrorBody = 4096;
constexpr milliseconds kLongestPause = std::chrono::minutes(5);
constexpr long kMostRedirects = 10;

std::optional<std::uintmax_t> number_of(std::string_view text) {
  std::uintmax_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

std::string host_of(const std::string& url) {
  const auto begin = url.find("://");
  if (begin == std::string::npos) return url;
  return url.substr(begin + 3, url.find('/', begin + 3) - begin - 3);
}

// Receives the answer to one request.
struct Receiver {
  CURL* handle = nullptr;
  const Watcher* watcher = nullptr;
  std::map<std::string, std::string> headers;  // of the final answer, after all redirects
  std::string body;                            // a small answer, or the first bytes of an error
  int file = -1;                               // -1: keep the answer in body
  std::uintmax_t asked_from = 0;               // offset at which the file resumes
  std::uintmax_t size = 0;                     // size of the complete file
  std::uintmax_t at = 0;
  std::uintmax_t* received = nullptr;
  std::string name;
  std::string problem;  // why the rest was rejected
  bool placed = false;

  long status() const {
    long code = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &code);
    return code;
  }
  std::string header(const std::string& key) const {
    const auto found = headers.find(key);
    return found == headers.end() ? "" : found->second;
  }
  // Made printable, so that a server cannot control the terminal.
  std::string printable_header(const std::string& key) const {
    std::string text = header(key);
    std::replace_if(
        text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
    return text;
  }
  // Returns false if the answer is rejected; `problem` has the reason.
  bool place() {
    placed = true;
    at = asked_from;
    if (status() != 206) at = 0;  // the server does not support ranges and sends everything
    if (status() == 206) {
      const std::string range = header("content-range");
      const auto digits = range.find_first_of("0123456789");
      const auto begin = digits == std::string::npos
                             ? std::nullopt
                             : number_of(std::string_view(range).substr(digits));
      if (begin != asked_from) {
        problem =
            fmt::format("{}: the server sent the bytes '{}', the request was for those from {} on",
                        name, printable_header("content-range"), asked_from);
        return false;
      }
    }
    if (::ftruncate(file, static_cast<off_t>(at)) != 0) {
      problem = fmt::format("{}: cannot be written: {}", name, std::strerror(errno));
      return false;
    }
    return true;
  }
  bool write(const char* data, std::size_t count) {
    if (!placed && !place()) return false;
    if (at + count > size) {
      problem = fmt::format("{}: the server sends more than the file's {} bytes", name, size);
      return false;
    }
    for (std::size_t done = 0; done < count;) {
      const ssize_t wrote =
          ::pwrite(file, data + done, count - done, static_cast<off_t>(at + done));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) {
        problem = fmt::format("{}: cannot be written: {}", name,
                              wrote < 0 ? std::strerror(errno) : "nothing was written");
        return false;
      }
      done += static_cast<std::size_t>(wrote);
    }
    at += count;
    *received += count;
    watcher->tell(Step{name, at, size});
    return true;
  }
};

std::size_t on_body(char* data, std::size_t one, std::size_t count, void* user) {
  auto& receiver = *static_cast<Receiver*>(user);
  const std::size_t bytes = one * count;
  const long status = receiver.status();
  if (receiver.file >= 0 && (status == 200 || status == 206)) {
    return receiver.write(data, bytes) ? bytes : 0;
  }
  const std::size_t most = status < 400 ? kMostAnswer : kMostErrorBody;
  if (receiver.body.size() + bytes > most) {
    if (status >= 400) return bytes;
    receiver.problem = fmt::format("{}: the answer is larger than {} bytes", receiver.name, most);
    return 0;
  }
  receiver.body.append(data, bytes);
  return bytes;
}

std::size_t on_header(char* data, std::size_t one, std::size_t count, void* user) {
  auto& headers = static_cast<Receiver*>(user)->headers;
  std::string_view line(data, one * count);
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) {
    line.remove_suffix(1);
  }
  if (line.starts_with("HTTP/")) headers.clear();
  const auto colon = line.find(':');
  if (colon != std::string_view::npos) {
    std::string key(line.substr(0, colon));
    std::transform(key.begin(), key.end(), key.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto value = line.find_first_not_of(" \t", colon + 1);
    headers[key] = value == std::string_view::npos ? "" : std::string(line.substr(value));
  }
  return one * count;
}

int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Receiver*>(user)->watcher->ended() ? 1 : 0;
}

bool is_passing(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return true;
    default:
      return false;
  }
}

bool is_no_connection(CURLcode code) {
  return code == CURLE_COULDNT_RESOLVE_PROXY || code == CURLE_COULDNT_RESOLVE_HOST ||
         code == CURLE_COULDNT_CONNECT;
}

bool is_passing(long status) {
  return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 ||
         status == 504;
}

}  // namespace

struct Http::Impl {
  CURL* handle = nullptr;
  HttpOptions options;
  const Watcher& watcher;
  bool answered = false;  // some server answered, so the network works
  std::uintmax_t received = 0;

  void prepare(Receiver& receiver, const std::string& url, const std::string& token) const {
    curl_easy_reset(handle);
    const auto set = [&](CURLoption option, auto value) {
      if (curl_easy_setopt(handle, option, value) != CURLE_OK) {
        throw Error(fmt::format("libcurl rejects option {}", static_cast<int>(option)));
      }
    };
    set(CURLOPT_URL, url.c_str());
    const bool secure = url.starts_with("https://");
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
    set(CURLOPT_FOLLOWLOCATION, 1L);
    set(CURLOPT_MAXREDIRS, kMostRedirects);
    set(CURLOPT_USERAGENT, options.user_agent.c_str());
    set(CURLOPT_NOSIGNAL, 1L);
    const long timeout = static_cast<long>(options.timeout.count());
    set(CURLOPT_CONNECTTIMEOUT, timeout);
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, timeout);
    if (!options.certificates.empty()) set(CURLOPT_CAINFO, options.certificates.c_str());
    // curl does not send the token to hosts of redirects.
    if (!token.empty()) {
      set(CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
      set(CURLOPT_XOAUTH2_BEARER, token.c_str());
    }
    receiver.handle = handle;
    receiver.watcher = &watcher;
    set(CURLOPT_WRITEFUNCTION, &on_body);
    set(CURLOPT_WRITEDATA, &receiver);
    set(CURLOPT_HEADERFUNCTION, &on_header);
    set(CURLOPT_HEADERDATA, &receiver);
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, &on_progress);
    set(CURLOPT_XFERINFODATA, &receiver);
  }

  struct Outcome {
    CURLcode code = CURLE_OK;
    long status = 0;
    std::string text;  // error message; empty: success
    bool passing = false;
    std::optional<milliseconds> wait;  // as requested by the server
  };

  Outcome perform(const Receiver& receiver, const std::string& url) {
    std::array<char, CURL_ERROR_SIZE> detail = {};
    curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, detail.data());
    Outcome outcome;
    outcome.code = curl_easy_perform(handle);
    outcome.status = receiver.status();
    curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, nullptr);
    if (watcher.ended()) throw Interrupted();
    if (!receiver.problem.empty()) throw Error(receiver.problem);
    if (outcome.status > 0) answered = true;
    if (outcome.code != CURLE_OK) {
      outcome.text = fmt::format("{}: {}", host_of(url),
                                 detail[0] ? detail.data() : curl_easy_strerror(outcome.code));
      // If no server ever answered, there is no network and waiting does not help.
      outcome.passing = is_passing(outcome.code) && (answered || !is_no_connection(outcome.code));
      return outcome;
    }
    if (outcome.status >= 400) {
      const std::string reason = receiver.printable_header("x-error-message");
      outcome.text = fmt::format("{}: the server answered with status {}{}", url, outcome.status,
                                 reason.empty() ? "" : fmt::format(" ({})", reason));
      outcome.passing = is_passing(outcome.status);
      if (const auto seconds = number_of(receiver.header("retry-after"))) {
        outcome.wait = std::chrono::seconds(std::min<std::uintmax_t>(*seconds, 3600));
      }
    }
    return outcome;
  }

  [[noreturn]] void fail(const Outcome& outcome, const Receiver& receiver,
                         const std::string& tries) const {
    const std::string text = outcome.text + tries;
    if (outcome.code == CURLE_PEER_FAILED_VERIFICATION ||
        outcome.code == CURLE_SSL_CACERT_BADFILE) {
      throw Error(text +
                  "; if your proxy signs connections, set SSL_CERT_FILE to its certificates");
    }
    if (is_no_connection(outcome.code)) throw NoConnection(text);
    if (outcome.code == CURLE_OK && outcome.status >= 400) {
      throw HttpError(text, outcome.status, receiver.header("x-error-code"));
    }
    throw Error(text);
  }

  // Sleeps. Throws Interrupted.
  void pause(milliseconds time) const {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
      if (watcher.ended()) throw Interrupted();
      std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(
          end - std::chrono::steady_clock::now(), milliseconds(100)));
    }
  }

  // Waits after failure number `failures`, or throws the error if there were too many.
  void retry_or_fail(const Outcome& outcome, const Receiver& receiver,
                     std::int64_t failures) const {
    if (!outcome.passing) fail(outcome, receiver, "");
    if (failures > options.retries) {
      fail(outcome, receiver, fmt::format(" (tried {} times)", failures));
    }
    const auto doubled =
        options.retry_delay * (std::int64_t{1} << std::min<std::int64_t>(failures - 1, 20));
    const milliseconds wait =
        std::min(std::max(doubled, outcome.wait.value_or(milliseconds(0))), kLongestPause);
    watcher.tell(fmt::format("{}; retrying in {:.3g} s", outcome.text,
                             std::chrono::duration<double>(wait).count()));
    pause(wait);
  }
};

Http::Http(HttpOptions options, const Watcher& watcher)
    : impl_(new Impl{nullptr, std::move(options), watcher}) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  impl_->handle = ready == CURLE_OK ? curl_easy_init() : nullptr;
  if (impl_->handle == nullptr) throw Error("libcurl cannot be initialised");
}

Http::~Http() { curl_easy_cleanup(impl_->handle); }

std::uintmax_t Http::received() const { return impl_->received; }

Answer Http::get(const std::string& url, const std::string& token) {
  for (std::int64_t failures = 1;; ++failures) {
    Receiver receiver;
    receiver.name = url;
    impl_->prepare(receiver, url, token);
    const Impl::Outcome outcome = impl_->perform(receiver, url);
    if (outcome.text.empty()) return {std::move(receiver.body), std::move(receiver.headers)};
    impl_->retry_or_fail(outcome, receiver, failures);
  }
}

void Http::download(const Download& wanted) {
  const base::FileDescriptor file(::open(wanted.file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file) {
    throw Error(
        fmt::format("{}: cannot be written: {}", wanted.file.string(), std::strerror(errno)));
  }
  struct stat status = {};
  std::uintmax_t furthest = 0;
  for (std::int64_t failures = 0;;) {
    if (::fstat(file.get(), &status) != 0) {
      throw Error(
          fmt::format("{}: cannot be read: {}", wanted.file.string(), std::strerror(errno)));
    }
    auto existing = static_cast<std::uintmax_t>(status.st_size);
    if (existing == wanted.size) break;
    if (existing > wanted.size) existing = 0;  // left over from another file; overwritten
    Receiver receiver;
    receiver.name = wanted.name;
    receiver.file = file.get();
    receiver.asked_from = existing;
    receiver.size = wanted.size;
    receiver.received = &impl_->received;
    impl_->prepare(receiver, wanted.url, wanted.token);
    const std::string range = fmt::format("{}-", existing);
    if (existing > 0) curl_easy_setopt(impl_->handle, CURLOPT_RANGE, range.c_str());
    Impl::Outcome outcome = impl_->perform(receiver, wanted.url);
    if (outcome.text.empty() && receiver.placed && receiver.at == wanted.size) break;
    if (outcome.text.empty()) {
      outcome.text = fmt::format("{}: the server sent {} of {} bytes", wanted.name,
                                 receiver.placed ? receiver.at : existing, wanted.size);
      outcome.passing = true;
    } else if (outcome.status == 416 && existing > 0) {
      // The existing part cannot be resumed, so start from the beginning.
      if (::ftruncate(file.get(), 0) != 0) {
        throw Error(
            fmt::format("{}: cannot be written: {}", wanted.file.string(), std::strerror(errno)));
      }
      outcome.passing = true;
    }
    if (receiver.at > furthest) {
      furthest = receiver.at;
      failures = 0;
    }
    impl_->retry_or_fail(outcome, receiver, ++failures);
  }
  if (::fsync(file.get()) != 0) {
    throw Error(
        fmt::format("{}: cannot be written: {}", wanted.file.string(), std::strerror(errno)));
  }
}

std::string url_part(const std::string& text) {
  std::string part;
  for (const unsigned char c : text) {
    const bool plain =
        (c < 0x80 && std::isalnum(c)) || c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      part += static_cast<char>(c);
    } else {
      part += fmt::format("%{:02X}", c);
    }
  }
  return part;
}

}  // namespace petlab::fetch
