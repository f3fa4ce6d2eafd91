#include <fstream>
#include <sstream>

#include "metrics/bleu.h"
#include "metrics/error.h"
#include "metrics/file_corpus.h"
#include "metrics/significance.h"
#include "tests/metrics/golden_json.h"
#include "tests/metrics/golden_text.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"

using namespace petlab::metrics;
using namespace petlab::testing;
using Catch::Matchers::Equals;

namespace {

std::vector<std::string> lines_of(const std::string& content) {
  std::istringstream in(content);
  LineReader reader(in, "in");
  std::vector<std::string> lines;
  while (const auto line = reader.next()) lines.emplace_back(*line);
  CHECK(reader.lines() == static_cast<std::int64_t>(lines.size()));
  return lines;
}

// A file of hypotheses and files of references. The first written file has the hypotheses.
struct Files {
  TempDir folder;
  std::vector<std::string> names;

  void write(const std::string& name, const std::string& content) {
    names.push_back(folder.write(name, content).string());
  }
  CorpusStatistics score(int threads = 1, bool empty_is_missing = false) const {
    std::vector<LineReader> references;
    for (std::size_t i = 1; i < names.size(); ++i) references.emplace_back(names[i]);
    FileCorpus corpus{LineReader{names[0]}, std::move(references), {empty_is_missing}};
    return evaluate(corpus, Bleu(), threads);
  }
  // The error message without the folder's path.
  std::string refusal(int threads = 1, bool empty_is_missing = false) const {
    try {
      score(threads, empty_is_missing);
    } catch (const InputError& error) {
      std::string message = error.what();
      const std::string prefix = folder.path().string() + "/";
      for (std::size_t at; (at = message.find(prefix)) != std::string::npos;) {
        message.erase(at, prefix.size());
      }
      return message;
    }
    return "accepted";
  }
};

}  // namespace

TEST_CASE("lines in memory can be skipped in blocks, or read one by one", "[metrics]") {
  std::istringstream in("one\ntwo\n\nfour");
  LineReader reader(in, "in");
  CHECK(reader.ahead() == "one\ntwo\n\n");
  reader.skip(4, 1);
  CHECK(reader.lines() == 1);
  CHECK(*reader.next() == "two");
  CHECK(reader.ahead() == "\n");
  CHECK(*reader.next() == "");
  CHECK(reader.ahead() == "four\n");
  CHECK(*reader.next() == "four");
  CHECK(reader.lines() == 4);
  CHECK(reader.ahead().empty());
  CHECK(!reader.next());

  // A line longer than the reader's buffer.
  const std::string line(3'000'000, 'x');
  std::istringstream long_in(line + "\n" + line);
  LineReader long_reader(long_in, "in");
  for (int i = 0; i < 2; ++i) {
    const std::string_view block = long_reader.ahead();
    REQUIRE(block.size() == line.size() + 1);
    CHECK(block.back() == '\n');
    long_reader.skip(block.size(), 1);
  }
  CHECK(long_reader.ahead().empty());
}

TEST_CASE("lines end only at a line feed, which the last one may lack", "[metrics]") {
  using Lines = std::vector<std::string>;
  CHECK(lines_of("").empty());
  CHECK(lines_of("\n") == Lines{""});
  CHECK(lines_of("a") == Lines{"a"});
  CHECK(lines_of("a\nb\n") == Lines{"a", "b"});
  CHECK(lines_of("a\n\nb") == Lines{"a", "", "b"});
  CHECK(lines_of("a\r\nb\xE2\x80\xA8"
                 "c\x0C"
                 "d\n") == Lines{"a\r",
                                 "b\xE2\x80\xA8"
                                 "c\x0C"
                                 "d"});
}

TEST_CASE("lines longer than the reader's blocks are read whole", "[metrics]") {
  std::vector<std::string> wanted;
  std::string content;
  for (const std::size_t size : {10U, 300000U, 0U, 262144U, 262143U, 1000000U, 3U}) {
    wanted.emplace_back(size, static_cast<char>('a' + wanted.size()));
    content += wanted.back() + "\n";
  }
  CHECK(lines_of(content) == wanted);
}

TEST_CASE("invalid UTF-8 is refused with its file, line and byte", "[metrics]") {
  const std::pair<const char*, const char*> cases[] = {
      {"\xFF", "1 of the line (0xFF)"},
      {"ab\x80", "3 of the line (0x80)"},
      {"abc\xC0\x80", "4 of the line (0xC0)"},  // overlong
      {"abcdefghabcdefghabcdefghabcdefgh\xC1\xBF", "33 of the line (0xC1)"},
      {"\xE0\x9F\xBF", "1 of the line (0xE0)"},          // overlong
      {"\xC3\xA9\xED\xA0\x80", "3 of the line (0xED)"},  // a surrogate
      {"\xF0\x8F\xBF\xBF", "1 of the line (0xF0)"},      // overlong
      {"\xF4\x90\x80\x80", "1 of the line (0xF4)"},      // above U+10FFFF
      {"\xF5\x80\x80\x80", "1 of the line (0xF5)"},
      {"a\xE4\xB8", "2 of the line (0xE4)"},  // cut short
      {"\xF0\x9F\x98", "1 of the line (0xF0)"},
  };
  for (const auto& [text, wanted] : cases) {
    Files files;
    files.write("hyp", std::string("fine\n\xE4\xB8\xAD\n") + text + "\nfine\n");
    files.write("ref", "fine\nfine\nfine\nfine\n");
    for (const int threads : {1, 3}) {
      CHECK(files.refusal(threads) == std::string("hyp:3: invalid UTF-8 at byte ") + wanted);
    }
  }
}

TEST_CASE("a corpus of files is refused if its lines do not match", "[metrics]") {
  SECTION("different numbers of lines, all counted") {
    Files files;
    files.write("hyp", "a\nb\n");
    files.write("one", "a\nb\nc\nd\n");
    files.write("two", "a\n");
    CHECK(files.refusal() ==
          "the files have different numbers of lines: hyp has 2, one has 4, two has 1");
  }
  SECTION("more hypotheses than references") {
    Files files;
    std::string many;
    for (int i = 0; i < 1000; ++i) many += "line\n";
    files.write("hyp", many);
    files.write("ref", many.substr(5));
    CHECK(files.refusal(2) ==
          "the files have different numbers of lines: hyp has 1000, ref has 999");
  }
  SECTION("an empty corpus") {
    Files files;
    files.write("hyp", "");
    files.write("ref", "");
    CHECK(files.refusal() == "hyp: the corpus is empty, expected at least one line");
  }
  SECTION("a missing file or a folder") {
    TempDir folder;
    const std::string missing = (folder.path() / "hyp").string();
    CHECK_THROWS_WITH(LineReader(missing),
                      missing + ": cannot be opened: No such file or directory");
    CHECK_THROWS_WITH(LineReader(folder.path().string()).next(),
                      folder.path().string() + ": cannot be read: Is a directory");
  }
  SECTION("a segment whose references are all missing") {
    Files files;
    files.write("hyp", "a b c d\na\n");
    files.write("one", "a b c d\n\n");
    files.write("two", "\n\n");
    CHECK(files.refusal(1, true) == "one:2: this segment has no reference in any file");
    CHECK(files.refusal(1, false) == "accepted");
  }
}

TEST_CASE("an empty reference line has length 0 unless empty lines count as missing", "[metrics]") {
  Files files;
  files.write("hyp", "a b\n");
  files.write("one", "a b c d e\n");
  files.write("two", "\n");
  const Bleu bleu;
  CHECK(bleu.result(files.score(1, false).sums).ref_len == 0);
  CHECK(bleu.result(files.score(1, true).sums).ref_len == 5);
  CHECK(files.score(1, false).references == 2);
  CHECK(files.score(1, true).references == 1);
}

TEST_CASE("a corpus in memory is checked like files", "[metrics]") {
  const auto refuse = [](std::vector<std::string> hypotheses,
                         std::vector<MemoryCorpus::Stream> references, const std::string& wanted) {
    CHECK_THROWS_WITH(MemoryCorpus(std::move(hypotheses), std::move(references)), Equals(wanted));
  };
  refuse({"a"}, {}, "found no references, expected at least one stream");
  refuse({}, {{}}, "the corpus is empty, expected at least one segment");
  refuse({"a"}, {{"a"}, {"a", "b"}}, "references 2 have 2 segments, the hypotheses have 1");
  refuse({"a", "b"}, {{"a", std::nullopt}}, "segment 2 has no reference");
  refuse({"a\xFF"}, {{"a"}}, "hypotheses:1: invalid UTF-8 at byte 2 of the line (0xFF)");
  refuse({"a"}, {{"\xFF"}}, "references 1:1: invalid UTF-8 at byte 1 of the line (0xFF)");
}

TEST_CASE("every golden input marked as refused is refused", "[metrics][golden][wide]") {
  const auto folder = golden("metrics");
  if (!folder) return;
  std::int64_t cases = 0;
  for (const auto& file : golden_files(*folder, "bleu_refused", ".json")) {
    for (const auto& row : read_json(file)) {
      INFO(row.at("name"));
      std::vector<std::string> hypotheses;
      if (row.contains("hyps_hex")) {
        for (const std::string hex : row.at("hyps_hex")) {
          hypotheses.emplace_back();
          for (std::size_t i = 0; i < hex.size(); i += 2) {
            hypotheses.back() += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
          }
        }
      } else {
        hypotheses = row.at("hyps").get<std::vector<std::string>>();
      }
      const auto run = [&] {
        BleuOptions options;
        if (row.contains("args")) {
          options.tokenize = row.at("args").value("tokenize", options.tokenize);
          options.smooth_method = row.at("args").value("smooth_method", options.smooth_method);
        }
        MemoryCorpus corpus = corpus_of(hypotheses, row.at("refs"));
        evaluate(corpus, Bleu(options));
      };
      CHECK_THROWS(run());
      ++cases;
    }
  }
  golden_ran("metrics/bleu_refused", cases);
}

TEST_CASE("memory does not grow with the number of lines", "[metrics]") {
  // A stream that generates its lines, so that it needs no memory.
  class Endless : public std::streambuf {
   public:
    explicit Endless(std::size_t lines) : left_(lines) {
      for (int i = 0; i < 64; ++i) block_ += "the cat sat on the mat number 17 .\n";
    }
    int_type underflow() override {
      if (left_ == 0) return traits_type::eof();
      const std::size_t lines = std::min<std::size_t>(left_, 64);
      left_ -= lines;
      setg(block_.data(), block_.data(), block_.data() + lines * (block_.size() / 64));
      return traits_type::to_int_type(*gptr());
    }

   private:
    std::size_t left_;
    std::string block_;
  };
  const auto resident_kib = [] {
    std::ifstream status("/proc/self/statm");
    std::size_t total = 0;
    std::size_t resident = 0;
    status >> total >> resident;
    return resident * 4;
  };
  const auto run = [](std::size_t lines) {
    Endless hyp_bytes(lines);
    Endless ref_bytes(lines);
    std::istream hyp(&hyp_bytes);
    std::istream ref(&ref_bytes);
    std::vector<LineReader> references;
    references.emplace_back(ref, "ref");
    FileCorpus corpus(LineReader(hyp, "hyp"), std::move(references));
    const Bleu bleu;
    const auto found = evaluate(corpus, bleu, 2);
    CHECK(found.segments == static_cast<std::int64_t>(lines));
    CHECK(bleu.score(found.sums) == Approx(100.0));
  };
  run(2000);
  const std::size_t before = resident_kib();
  run(100000);  // 3.5 MB for each side
  CHECK(resident_kib() < before + 2048);
}
