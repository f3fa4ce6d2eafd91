#include "metrics/file_corpus.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/line_ends.h"
#include "base/utf8.h"
#include "metrics/error.h"
#include "metrics/unicode.h"

namespace petlab::metrics {
namespace {

constexpr std::size_t kBlock = 256 * 1024;
constexpr std::size_t kBatchBytes = 4 * 1024 * 1024;

}  // namespace

// A file descriptor that is owned (perhaps of a compressed file) or a stream that is not.
struct LineReader::Input {
  int descriptor = -1;
  std::istream* stream = nullptr;
  struct archive* compressed = nullptr;

  Input() = default;
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;
  ~Input() {
    if (compressed != nullptr) ::archive_read_free(compressed);
    if (descriptor >= 0) ::close(descriptor);
  }

  void open_compressed(const std::string& name) {
    compressed = ::archive_read_new();
    if (compressed == nullptr) throw std::bad_alloc();
    ::archive_read_support_filter_gzip(compressed);
    ::archive_read_support_filter_bzip2(compressed);
    ::archive_read_support_filter_xz(compressed);
    ::archive_read_support_filter_zstd(compressed);
    ::archive_read_support_format_raw(compressed);
    ::archive_read_support_format_empty(compressed);
    struct archive_entry* entry = nullptr;
    const bool opened = ::archive_read_open_fd(compressed, descriptor, kBlock) == ARCHIVE_OK;
    const int found = opened ? ::archive_read_next_header(compressed, &entry) : ARCHIVE_FATAL;
    if (found == ARCHIVE_EOF) return;  // empty
    if (found != ARCHIVE_OK) refuse(name);
    if (::archive_filter_code(compressed, 0) == ARCHIVE_FILTER_NONE) {
      throw InputError(name + ": is not compressed, although its name ends like a compressed file");
    }
  }
  [[noreturn]] void refuse(const std::string& name) const {
    const char* const why = ::archive_error_string(compressed);
    throw InputError(fmt::format("{}: cannot be read: {}", name, why ? why : "damaged"));
  }

  // Returns 0 at the end.
  std::size_t read(char* to, std::size_t size, const std::string& name) {
    if (stream != nullptr) {
      stream->read(to, static_cast<std::streamsize>(size));
      if (stream->bad()) throw InputError(name + ": cannot be read");
      return static_cast<std::size_t>(stream->gcount());
    }
    if (compressed != nullptr) {
      const la_ssize_t got = ::archive_read_data(compressed, to, size);
      if (got < 0) refuse(name);
      return static_cast<std::size_t>(got);
    }
    while (true) {
      const ssize_t got = ::read(descriptor, to, size);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) {
        throw InputError(fmt::format("{}: cannot be read: {}", name, std::strerror(errno)));
      }
    }
  }
};

LineReader::LineReader(const std::string& path) : input_(std::make_unique<Input>()), name_(path) {
  input_->descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (input_->descriptor < 0) {
    throw InputError(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  }
  constexpr std::array<std::string_view, 4> kCompressed{".gz", ".bz2", ".xz", ".zst"};
  if (std::any_of(kCompressed.begin(), kCompressed.end(),
                  [&](std::string_view end) { return path.ends_with(end); })) {
    input_->open_compressed(path);
  }
}

LineReader::LineReader(std::istream& stream, std::string name)
    : input_(std::make_unique<Input>()), name_(std::move(name)) {
  input_->stream = &stream;
}

LineReader::~LineReader() = default;
LineReader::LineReader(LineReader&&) noexcept = default;
LineReader& LineReader::operator=(LineReader&&) noexcept = default;

bool LineReader::refill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() - end_ < kBlock) {
    try {
      buffer_.resize(end_ + kBlock + end_ / 2);
    } catch (const std::bad_alloc&) {
      throw InputError(
          fmt::format("{}:{}: not enough memory for this line, after reading {} MiB; split it, or "
                      "allow the process more memory",
                      name_, lines_ + 1, end_ >> 20));
    }
  }
  const auto read = [this] {
    const std::size_t got = input_->read(buffer_.data() + end_, kBlock, name_);
    end_ += got;
    return got > 0;
  };
  if (mark_expected_) {
    mark_expected_ = false;
    // A pipe may deliver the mark in pieces.
    while (end_ < base::kByteOrderMark.size() && read()) {
    }
    begin_ = end_ - base::without_byte_order_mark({buffer_.data(), end_}).size();
    return begin_ < end_;
  }
  if (read()) return true;
  if (lines_ == 0 && base::lines_end_with_cr({buffer_.data() + begin_, end_ - begin_})) {
    throw InputError(fmt::format("{}: {}", name_, base::kLinesEndWithCr));
  }
  return false;
}

std::optional<std::string_view> LineReader::next() {
  std::size_t searched = 0;  // bytes after begin_ known to contain no line end
  std::string_view line;
  while (true) {
    const char* const from = buffer_.data() + begin_;
    const std::size_t size = end_ - begin_;
    const char* const found =
        size == searched
            ? nullptr
            : static_cast<const char*>(std::memchr(from + searched, '\n', size - searched));
    if (found != nullptr) {
      line = {from, static_cast<std::size_t>(found - from)};
      begin_ += line.size() + 1;
      break;
    }
    searched = size;
    if (!refill()) {
      if (size == 0) return std::nullopt;
      line = {buffer_.data() + begin_, size};
      begin_ = end_;
      break;
    }
  }
  ++lines_;
  if (const auto offset = base::first_invalid_utf8(line)) {
    throw InputError(invalid_utf8(fmt::format("{}:{}", name_, lines_), line, *offset));
  }
  return line;
}

std::string_view LineReader::ahead() {
  std::size_t searched = 0;  // bytes after begin_ known to contain no line end
  while (true) {
    const char* const from = buffer_.data() + begin_;
    const std::size_t size = end_ - begin_;
    const char* const last =
        size == searched
            ? nullptr
            : static_cast<const char*>(::memrchr(from + searched, '\n', size - searched));
    if (last != nullptr) return {from, static_cast<std::size_t>(last - from) + 1};
    searched = size;
    if (!refill()) {
      if (size == 0) return {};
      // refill() has left space for it.
      buffer_[end_++] = '\n';
    }
  }
}

void LineReader::skip(std::size_t bytes, std::int64_t lines) {
  begin_ += bytes;
  lines_ += lines;
}

void refuse_line_counts(LineReader& hypotheses, std::span<LineReader> references) {
  std::string message = "the files have different numbers of lines: ";
  const auto count = [&message](LineReader& file) {
    while (file.next()) {
    }
    message += fmt::format("{} has {}", file.name(), file.lines());
  };
  count(hypotheses);
  for (LineReader& file : references) {
    message += ", ";
    count(file);
  }
  throw InputError(message);
}

void refuse_empty(const LineReader& file) {
  throw InputError(file.name() + ": the corpus is empty, expected at least one line");
}

FileCorpus::FileCorpus(LineReader hypotheses, std::vector<LineReader> references, Options options)
    : hypotheses_(std::move(hypotheses)), references_(std::move(references)), options_(options) {
  if (references_.empty()) {
    throw std::invalid_argument("found no reference file, expected at least one");
  }
}

FileCorpus::FileCorpus(LineReader hypotheses, std::vector<LineReader> references)
    : FileCorpus(std::move(hypotheses), std::move(references), Options{}) {}

std::string FileCorpus::name_of(std::int64_t segment) const {
  return fmt::format("{}:{}", hypotheses_.name(), segment + 1);
}

// The view is valid until the next call or the file's next line.
std::string_view FileCorpus::text_of(std::string_view line, const LineReader& file) {
  if (options_.json_lines) {
    const nlohmann::json value = nlohmann::json::parse(line, nullptr, false);
    if (!value.is_string()) {
      throw InputError(fmt::format(
          "{}:{}: found {}, expected a JSON string in double quotes (its line breaks as \\n)",
          file.name(), file.lines(),
          trim_right(line).empty() ? "a blank line"
          : value.is_discarded()   ? "a line that is not JSON"
                                   : fmt::format("JSON of type {}", value.type_name())));
    }
    decoded_ = value.get_ref<const std::string&>();
    line = decoded_;
  }
  return trim_right(line);
}

void FileCorpus::read(SegmentBatch& batch, std::size_t limit) try {
  batch.clear(hypotheses_.lines());
  while (!ended_ && batch.size() < limit && batch.bytes() < kBatchBytes) {
    const auto hypothesis = hypotheses_.next();
    if (hypothesis) batch.add_hypothesis(text_of(*hypothesis, hypotheses_));
    std::size_t present = 0;
    for (LineReader& file : references_) {
      const auto line = file.next();
      if (line.has_value() != hypothesis.has_value()) {
        refuse_line_counts(hypotheses_, references_);
      }
      if (!line) continue;
      std::string_view left = trim_right(*line);
      for (std::int64_t r = 1; r <= options_.tabs; ++r) {
        std::string_view part = left;
        if (r < options_.tabs) {
          const std::size_t tab = left.find('\t');
          if (tab == std::string_view::npos) {
            throw InputError(
                fmt::format("{}:{}: found {} reference{} separated by tabs, expected {}",
                            file.name(), file.lines(), r, r == 1 ? "" : "s", options_.tabs));
          }
          part = left.substr(0, tab);
          left.remove_prefix(tab + 1);
        }
        const std::string_view reference = text_of(part, file);
        if (options_.empty_is_missing && reference.empty()) continue;
        batch.add_reference(reference);
        ++present;
      }
    }
    if (!hypothesis) {
      ended_ = true;
      if (hypotheses_.lines() == 0) refuse_empty(hypotheses_);
    } else if (present == 0) {
      throw InputError(fmt::format("{}:{}: this segment has no reference in any file",
                                   references_.front().name(), references_.front().lines()));
    }
  }
  batch.finish();
} catch (const std::bad_alloc&) {
  throw InputError(fmt::format(
      "{}:{}: not enough memory to read this segment; split it, or allow the process more memory",
      hypotheses_.name(), hypotheses_.lines()));
}

}  // namespace petlab::metrics
