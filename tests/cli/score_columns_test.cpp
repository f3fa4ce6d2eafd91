#include "cli/scoring/score_columns.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "metrics/error.h"
#include "metrics/t5_labels.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using petlab::cli::for_each_labels;
using petlab::cli::for_each_numbers;
using petlab::cli::ScoreOptions;
using petlab::cli::Streams;
using petlab::testing::TempDir;

namespace {

struct Files {
  TempDir dir;
  std::istringstream in;
  std::ostringstream out;
  ScoreOptions options;

  Files(const std::string& hypotheses, const std::string& references) {
    dir.write("hyp", hypotheses);
    dir.write("ref", references);
    options.metric = "spearman";
    options.hypotheses = (dir.path() / "hyp").string();
    options.references = {(dir.path() / "ref").string()};
  }
  Streams streams() { return {in, out, out}; }
};

std::vector<double> predicted_numbers(Files& files) {
  std::vector<double> all;
  for_each_numbers(files.options, files.streams(),
                   [&](std::span<const double> predicted, std::span<const double> gold) {
                     CHECK(predicted.size() == gold.size());
                     all.insert(all.end(), predicted.begin(), predicted.end());
                   });
  return all;
}

std::vector<std::int32_t> predicted_labels(Files& files, std::int64_t num_labels) {
  std::vector<std::int32_t> all;
  for_each_labels(files.options, files.streams(), num_labels,
                  [&](std::span<const std::int32_t> predicted, std::span<const std::int32_t> gold) {
                    CHECK(predicted.size() == gold.size());
                    all.insert(all.end(), predicted.begin(), predicted.end());
                  });
  return all;
}

std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

std::string refusal(Files& files) {
  try {
    predicted_numbers(files);
  } catch (const petlab::metrics::InputError& error) {
    std::string message = error.what();
    const std::string folder = files.dir.path().string() + "/";
    for (std::size_t at = 0; (at = message.find(folder)) != std::string::npos;) {
      message.erase(at, folder.size());
    }
    return message;
  }
  return "";
}

}  // namespace

TEST_CASE("Numbers in a file become the nearest doubles, however they are written", "[cli]") {
  std::mt19937_64 random(3);
  const char* const formats[] = {"%.1f",     "%.3f",   "%.12f", "%.14f",   "%.16f", "%.17g",
                                 "%.25f",    "%.15g",  "%+.5f", " %.4f\t", "%.0f.", "%.2f\r",
                                 "%08.3f\r", "%.300f", "%.6e",  "%.3g"};
  std::string content;
  std::vector<double> expected;
  for (int i = 0; i < 20000; ++i) {
    const double value =
        (static_cast<double>(random() >> 11) * 0x1p-53 - 0.5) * std::pow(10.0, random() % 12);
    char line[400];
    std::snprintf(line, sizeof(line), formats[random() % std::size(formats)], value);
    content += line;
    content += '\n';
    expected.push_back(std::strtod(line, nullptr));
  }
  for (const char* line :
       {"-0", "+0.0", "-.5", "5.", "1e-400", "-1e-400", "999999999999999", "9007199254740993",
        "0.000000000000001", "123456789012345678901234567890"}) {
    content += line;
    content += '\n';
    expected.push_back(std::strtod(line, nullptr));
  }
  content.pop_back();  // the last line has no newline
  Files files(content, repeated("1\n", expected.size()));
  const std::vector<double> found = predicted_numbers(files);
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO(i);
    REQUIRE(std::bit_cast<std::uint64_t>(found[i]) == std::bit_cast<std::uint64_t>(expected[i]));
  }
  files.options.threads = 2;
  CHECK(predicted_numbers(files) == found);
}

TEST_CASE("Labels in a file may be surrounded by white space", "[cli]") {
  Files files("0\n 1\n2 \t\r\n3\r\n007\n-0\n4095", repeated("1\n", 7));
  CHECK(predicted_labels(files, 4096) == std::vector<std::int32_t>{0, 1, 2, 3, 7, 0, 4095});
  CHECK_THROWS_AS(predicted_labels(files, 4095), petlab::metrics::InputError);
}

TEST_CASE("A line that is not a number is refused with its line number, even deep in a file",
          "[cli]") {
  const std::string many = repeated("0.25\n", 100000);
  const auto refused = [&](const std::string& line) {
    Files files(many + line + "\n" + many, many + "1\n" + many);
    const std::string message = refusal(files);
    files.options.threads = 2;
    CHECK(refusal(files) == message);
    return message;
  };
  for (const std::string line : {"nan", "inf", "-inf", "1e999", "", "1_0", "3,8", "--1", "+-1", ".",
                                 "-", "1\r1", "1 2", "0x10", "1e", "1.5e+"}) {
    INFO(line);
    std::string shown = line;
    if (const auto cr = shown.find('\r'); cr != std::string::npos) shown.replace(cr, 1, "\\r");
    CHECK(refused(line) == "hyp:100001: found '" + shown + "', expected a finite decimal number");
  }
  CHECK(refused(std::string(400, '9')).find("hyp:100001: found '9999") == 0);
  // The cut is before a character of two bytes that does not fit completely.
  const std::string digits(56, '9');
  CHECK(refused(digits + "\u00e9 and more") ==
        "hyp:100001: found '" + digits + "\u2026', expected a finite decimal number");
  CHECK(refused("1\xFF") == "hyp:100001: invalid UTF-8 at byte 2 of the line (0xFF)");
}

TEST_CASE("Files of different lengths are refused with both lengths, whichever is shorter",
          "[cli]") {
  for (const std::size_t n : {1u, 16383u, 16384u, 16385u, 50000u}) {
    Files longer(repeated("1\n", n + 1), repeated("2\n", n));
    CHECK(refusal(longer) == "the files have different numbers of lines: hyp has " +
                                 std::to_string(n + 1) + ", ref has " + std::to_string(n));
    Files shorter(repeated("1\n", n), repeated("2\n", n + 70000));
    CHECK(refusal(shorter) == "the files have different numbers of lines: hyp has " +
                                  std::to_string(n) + ", ref has " + std::to_string(n + 70000));
  }
  Files empty("", "");
  CHECK(refusal(empty) == "hyp: the corpus is empty, expected at least one line");
  Files one("", "1\n");
  CHECK(refusal(one) == "the files have different numbers of lines: hyp has 0, ref has 1");
}
