#include <cstdio>
#include <string>

#include "sweeps/catalog.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"
#include "trainer/data/batches.h"
#include "trainer/data/load_data.h"
#include "trainer/data/rows.h"
#include "trainer/data/splits.h"
#include "trainer/files/error.h"

namespace petlab::trainer {
namespace {

using sweeps::FileFormat;
using sweeps::SplitRule;
using sweeps::TaskDeclaration;
using sweeps::TaskLayout;
using Numbers = std::vector<std::int64_t>;

TaskLayout layout(FileFormat format, bool header, std::vector<std::string> texts,
                  std::string target) {
  TaskLayout result;
  result.format = format;
  result.header = header;
  result.text_columns = std::move(texts);
  result.target_column = std::move(target);
  result.train = "train";
  return result;
}

const TaskLayout kTsv = layout(FileFormat::tsv, true, {"a", "b"}, "y");

std::string refusal(const TaskLayout& layout, std::string_view text) {
  try {
    parse_rows(layout, text, "f.tsv");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Numbers first_ten(const Numbers& rows) {
  return {rows.begin(), rows.begin() + std::min<std::ptrdiff_t>(10, std::ssize(rows))};
}

TEST_CASE("tabs separate columns and quotes are ordinary characters", "[trainer][files]") {
  const auto rows =
      parse_rows(kTsv, "\xEF\xBB\xBFy\ta\tb\r\n1\tHe said \"no\tx\r\n0\t\"y\"\tz", "f.tsv");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0] == DataRow{{"He said \"no", "x"}, "1", false, 2});
  CHECK(rows[1] == DataRow{{"\"y\"", "z"}, "0", false, 3});
  const auto bare = parse_rows(layout(FileFormat::tsv, false, {"3"}, "1"), "g\t1\t\ttext\n", "f");
  CHECK(bare[0].texts == std::vector<std::string>{"text"});
}

TEST_CASE("comma-separated files follow RFC 4180 in quoting", "[trainer][files]") {
  const TaskLayout csv = layout(FileFormat::csv, true, {"a"}, "y");
  const auto rows = parse_rows(csv, "a,y\n\"x, \"\"q\"\"\nz\",1\r\nplain,0\n", "f.csv");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0] == DataRow{{"x, \"q\"\nz"}, "1", false, 2});
  CHECK(rows[1] == DataRow{{"plain"}, "0", false, 4});
  CHECK(refusal(csv, "a,y\n\"x,1\n") == "f.tsv:2: a quoted field has no closing quote");
  CHECK(refusal(csv, "a,y\nx\"z\",1\n") ==
        "f.tsv:2: found a double quote inside an unquoted field");
  CHECK(refusal(csv, "a,y\n\"x\"z,1\n") ==
        "f.tsv:2: found text after a closing quote, expected a comma or the line's end");
}

TEST_CASE("JSON Lines files give texts and targets by key", "[trainer][files]") {
  const TaskLayout jsonl = layout(FileFormat::jsonl, true, {"a"}, "y");
  const auto rows =
      parse_rows(jsonl, "{\"a\": \"x\", \"y\": 1}\n{\"y\": \"no\", \"a\": \"z\"}\n", "f.jsonl");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0] == DataRow{{"x"}, "1", true, 1});
  CHECK(rows[1] == DataRow{{"z"}, "no", false, 2});
  CHECK(refusal(jsonl, "[]\n") == "f.tsv:1: is a JSON array, expected an object");
  CHECK(refusal(jsonl, "{\"a\": \"x\"}\n") == "f.tsv:1: has no key 'y'");
  CHECK(refusal(jsonl, "{\"a\": 3, \"y\": 1}\n") ==
        "f.tsv:1: 'a' is a JSON number, expected a string");
  CHECK(refusal(jsonl, "{\"a\": \"x\", \"y\": []}\n") ==
        "f.tsv:1: 'y' is a JSON array, expected a string or a number");
  CHECK(refusal(jsonl, "{\"a\"\n").starts_with("f.tsv:1: is not JSON: "));
  CHECK(refusal(jsonl, "{\"a\":" + std::string(200'000, '[') + "\n") ==
        "f.tsv:1: must have at most 64 levels of nesting");
}

TEST_CASE("bad data files are refused with file and line", "[trainer][files]") {
  CHECK(refusal(kTsv, "") == "f.tsv: is empty, expected examples");
  CHECK(refusal(kTsv, "y\ta\tb\n") == "f.tsv: contains no examples");
  CHECK(refusal(kTsv, "y\ta\tb\n1\tx\n") == "f.tsv:2: found 2 columns, expected 3");
  CHECK(refusal(kTsv, "y\ta\tb\n1\tx\tx\tx\n") ==
        "f.tsv:2: found 4 columns, expected 3 as in line 1; `extra_columns: ignore` in the task's "
        "file allows more than the task uses");
  CHECK(refusal(kTsv, "y\ta\tc\n1\tx\tx\n") == "f.tsv:1: has no column 'b', found 'y', 'a', 'c'");
  CHECK(refusal(kTsv, "y\ta\tb\ta\n1\tx\tx\tz\n") ==
        "f.tsv:1: has two columns 'a', expected each name once");
  CHECK(refusal(kTsv, "y\ta\tb\n1\tx\tz\n1\tab\xc3\tz\n") ==
        "f.tsv:3: byte 5 of the line is not UTF-8 (0xC3)");
  CHECK(refusal(layout(FileFormat::tsv, false, {"x"}, "0"), "1\t2\n") ==
        "f.tsv: column 'x' is not a number, expected one for a file without a header");
  TaskLayout lenient = kTsv;
  lenient.skip_short_rows = true;
  CHECK(parse_rows(lenient, "y\ta\tb\n1\tx\n0\tp\tq\n", "f.tsv").size() == 1);
  CHECK_THROWS_WITH(read_rows(kTsv, "/nowhere/train.tsv", "gluebenchmark.com"),
                    "/nowhere/train.tsv: is missing; it comes from gluebenchmark.com");
}

TEST_CASE("extra columns are refused unless the task ignores them, for any order of rows",
          "[trainer][files]") {
  const TaskLayout bare = layout(FileFormat::tsv, false, {"1"}, "0");
  const std::string narrow = "1\tx\n";
  const std::string wide = "0\ty\textra\n";
  const std::string advice =
      "; `extra_columns: ignore` in the task's file allows more than the task uses";
  CHECK(refusal(bare, narrow + wide) ==
        "f.tsv:2: found 3 columns, expected 2 as in line 1" + advice);
  CHECK(refusal(bare, wide + narrow) ==
        "f.tsv:2: found 2 columns, expected 3 as in line 1" + advice);
  TaskLayout short_first = bare;
  short_first.skip_short_rows = true;
  CHECK(refusal(short_first, "1\n" + wide + narrow) ==
        "f.tsv:3: found 2 columns, expected 3 as in line 2" + advice);
  TaskLayout ignoring = bare;
  ignoring.ignore_extra_columns = true;
  for (const std::string& text : {narrow + wide, wide + narrow}) {
    CHECK(parse_rows(ignoring, text, "f.tsv").size() == 2);
  }
  CHECK(refusal(ignoring, wide + "1\n") == "f.tsv:2: found 1 columns, expected 3");
  ignoring = layout(FileFormat::csv, true, {"a"}, "y");
  ignoring.ignore_extra_columns = true;
  const auto rows = parse_rows(ignoring, "a,y\nx,1,more,than that\nz,0\n", "f.csv");
  CHECK(rows == std::vector<DataRow>{{{"x"}, "1", false, 2}, {{"z"}, "0", false, 3}});
}

TEST_CASE("files with other encodings and line ends are reported as such", "[trainer][files]") {
  const TaskLayout jsonl = layout(FileFormat::jsonl, true, {"a"}, "y");
  CHECK(refusal(jsonl, "{\"a\": \"x\", \"y\": 1}\n\n{\"a\": \"x\", \"y\": 1}\n") ==
        "f.tsv:2: found a blank line, expected a JSON object");
  for (const TaskLayout& any : {kTsv, jsonl, layout(FileFormat::csv, true, {"a"}, "y")}) {
    CHECK(refusal(any, "y\ta\tb\r1\tx\tz\r") ==
          "f.tsv: found lines that end with a carriage return (CR) alone, expected newlines (LF or "
          "CRLF)");
    CHECK(refusal(any, "\xFF\xFEy\n") ==
          "f.tsv: begins with the byte order mark of UTF-16, expected UTF-8");
    CHECK(refusal(any, "\xFE\xFFy\n") ==
          "f.tsv: begins with the byte order mark of UTF-16, expected UTF-8");
  }
  // Two byte order marks, as from two concatenated files.
  CHECK(refusal(kTsv, "\xEF\xBB\xBF\xEF\xBB\xBFy\ta\tb\n1\tx\tz\n") ==
        "f.tsv:1: has no column 'y', found '\\ufeffy', 'a', 'b'");
}

TEST_CASE("messages about a row are at most a few lines long", "[trainer][files]") {
  const testing::TempDir dir;
  const std::string flood(1'000'000, '7');
  TaskDeclaration task;
  task.name = "mine";
  task.classes = {"no", "yes"};
  task.split = SplitRule::one_file;
  const auto size_of_message = [&](FileFormat format, const std::string& content) -> std::size_t {
    task.layouts = {layout(format, true, {"t"}, "y")};
    sweeps::TaskFiles files;
    files.train = dir.write("d", content);
    try {
      load_task_data(task, files, {});
    } catch (const Error& error) {
      INFO(error.what());
      return std::string(error.what()).size();
    }
    return 1'000'000;
  };
  std::string wide = "a0";
  for (int column = 1; column < 1000; ++column)
    wide += "\ta" + std::to_string(column) + flood.substr(0, 100);
  CHECK(size_of_message(FileFormat::tsv, wide + "\n") < 1000);
  CHECK(size_of_message(FileFormat::tsv, "t\ty\nx\t" + flood + "\n") < 500);
  CHECK(size_of_message(FileFormat::csv, "t,y\nx," + flood + "\n") < 500);
  CHECK(size_of_message(FileFormat::jsonl, "{\"t\": \"x\", \"y\": \"" + flood + "\"}") < 500);
  CHECK(size_of_message(FileFormat::jsonl, "{\"t\": \"x\", \"y\": " + flood + "}") < 500);
  CHECK(size_of_message(FileFormat::jsonl, "{\"" + flood + "\": \"x\"}") < 500);
  CHECK(size_of_message(FileFormat::jsonl, "{\"t\": " + flood) < 500);
  task.kind = sweeps::TaskKind::regression;
  task.target = sweeps::TargetRule::score;
  task.score_max = 5;
  CHECK(size_of_message(FileFormat::tsv, "t\ty\nx\t" + flood + "\n") < 500);
  CHECK(size_of_message(FileFormat::tsv, "t\ty\nx\t7." + flood + "\n") < 500);
}

TEST_CASE("an invalid label or score is refused with file and line", "[trainer][files]") {
  const testing::TempDir dir;
  TaskDeclaration task;
  task.name = "mine";
  task.classes = {"no", "yes"};
  task.split = SplitRule::one_file;
  task.layouts = {layout(FileFormat::tsv, true, {"t"}, "y")};
  const auto load = [&](const std::string& content) -> std::string {
    sweeps::TaskFiles files;
    files.train = dir.write("d.tsv", content);
    try {
      load_task_data(task, files, {});
    } catch (const Error& error) {
      return std::string(error.what()).substr(files.train.string().size());
    }
    return "no error";
  };
  CHECK(load("t\ty\nx\tmaybe\n") == ":2: label 'maybe' is not known, expected one of 'no', 'yes'");
  task.kind = sweeps::TaskKind::regression;
  task.target = sweeps::TargetRule::score;
  task.score_min = 0;
  task.score_max = 5;
  CHECK(load("t\ty\nx\t3\nx\tthree\n") == ":3: score 'three' is not a finite number");
  CHECK(load("t\ty\nx\t3 \n") == ":2: score '3 ' is not a finite number");
  CHECK(load("t\ty\nx\tnan\n") == ":2: score 'nan' is not a finite number");
  CHECK(load("t\ty\nx\t5.1\n") == ":2: score 5.1 is outside 0 .. 5");
  CHECK(load("t\ty\nx\t1\n") == ": leaves no example for the validation split of task mine");
  task.target = sweeps::TargetRule::sign;
  CHECK(load("t\ty\nx\t0\nx\t0\nx\t0\nx\t0\nx\t0\nx\t0\n") ==
        ": leaves no example for the training split of task mine");
}

TEST_CASE("limits shorten each split, and zero scores are dropped after the permutation",
          "[trainer][files]") {
  const testing::TempDir dir;
  TaskDeclaration task;
  task.name = "mine";
  task.classes = {"negative", "positive"};
  task.target = sweeps::TargetRule::sign;
  task.split = SplitRule::one_file;
  task.layouts = {layout(FileFormat::tsv, true, {"t"}, "y")};
  std::string content = "t\ty\n";
  for (int i = 0; i < 50; ++i) {
    content += "row" + std::to_string(i) + "\t" + std::to_string(i % 3 - 1) + "\n";
  }
  sweeps::TaskFiles files;
  files.train = dir.write("d.tsv", content);
  const TaskData all = load_task_data(task, files, {});
  Numbers validation;
  for (const std::int64_t row : split_rows(SplitRule::one_file, 50, 0, 0).validation) {
    if (row % 3 != 1) validation.push_back(row);
  }
  REQUIRE(all.validation.examples.size() == validation.size());
  for (std::size_t i = 0; i < validation.size(); ++i) {
    CHECK(all.validation.examples[i].text == "row" + std::to_string(validation[i]));
    CHECK(all.validation.examples[i].label == (validation[i] % 3 == 2 ? 1 : 0));
  }
  sweeps::DataConfig few;
  few.max_train_examples = 5;
  few.max_test_examples = 2;
  const TaskData cut = load_task_data(task, files, few);
  CHECK(cut.train.examples.size() == 5);
  CHECK(cut.test.examples.size() == 2);
  CHECK(
      std::equal(cut.train.examples.begin(), cut.train.examples.end(), all.train.examples.begin()));
  CHECK(cut.validation.examples == all.validation.examples);
}

TEST_CASE("a split's permutation is torch's for seed 42", "[trainer][files]") {
  // torch 2.13.0: torch.randperm(n, generator=torch.Generator().manual_seed(42)).
  CHECK(torch_randperm(20, 42) ==
        Numbers{2, 14, 18, 15, 1, 10, 0, 4, 6, 11, 8, 3, 7, 17, 13, 12, 19, 5, 16, 9});
  CHECK(torch_randperm(1, 42) == Numbers{0});
  CHECK(torch_randperm(0, 42).empty());
  const SplitRows cola = split_rows(SplitRule::glue_small, 8551, 1043, 0);
  CHECK(first_ten(cola.train) == Numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(first_ten(cola.validation) == Numbers{911, 408, 813, 657, 710, 526, 977, 467, 768, 440});
  CHECK(first_ten(cola.test) == Numbers{334, 85, 10, 327, 486, 13, 944, 116, 892, 754});
  CHECK(cola.validation.size() == 521);
  CHECK(cola.test.size() == 522);
  const SplitRows rte = split_rows(SplitRule::glue_small, 2490, 277, 0);
  CHECK(first_ten(rte.validation) == Numbers{207, 84, 253, 243, 190, 28, 165, 111, 87, 170});
  CHECK(first_ten(rte.test) == Numbers{152, 221, 79, 245, 103, 208, 60, 159, 210, 155});
  const SplitRows sst2 = split_rows(SplitRule::glue_large, 67349, 872, 0);
  CHECK(first_ten(sst2.validation) ==
        Numbers{6677, 49712, 38268, 32909, 23395, 66940, 62886, 11359, 52008, 24222});
  CHECK(first_ten(sst2.train) ==
        Numbers{6043, 63299, 11082, 50055, 57215, 43137, 9389, 65601, 2489, 18952});
  CHECK(first_ten(sst2.test) == Numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(sst2.validation.size() == 1000);
  CHECK(sst2.train.size() == 66349);
}

TEST_CASE("a single file is split into validation, test and training, in this order",
          "[trainer][files]") {
  const SplitRows rows = split_rows(SplitRule::one_file, 20, 0, 0);
  CHECK(rows.validation == Numbers{2, 14, 18, 15});
  CHECK(rows.test == Numbers{1, 10, 0, 4});
  CHECK(rows.train == Numbers{6, 11, 8, 3, 7, 17, 13, 12, 19, 5, 16, 9});
  const SplitRows many = split_rows(SplitRule::one_file, 7000, 0, 0);
  CHECK(many.validation.size() == 1000);
  CHECK(many.test.size() == 1000);
  CHECK(many.train.size() == 5000);
  // load_task_data takes the same rows.
  const testing::TempDir dir;
  std::string text = "t\ty\n";
  for (int i = 0; i < 20; ++i) text += "row" + std::to_string(i) + "\tno\n";
  TaskDeclaration task;
  task.name = "mine";
  task.classes = {"no", "yes"};
  task.split = SplitRule::one_file;
  task.layouts = {layout(FileFormat::tsv, true, {"t"}, "y")};
  sweeps::TaskFiles files;
  files.train = dir.write("d.tsv", text);
  const TaskData data = load_task_data(task, files, {});
  CHECK(data.validation.examples[0].text == "row2");
  CHECK(data.test.examples[0].text == "row1");
  CHECK(data.train.examples[0].text == "row6");
}

TEST_CASE("dotted columns select fields of nested objects", "[trainer][files]") {
  const TaskLayout nested = layout(FileFormat::jsonl, true, {"translation.ro"}, "translation.en");
  const auto rows = parse_rows(nested,
                               R"({"translation": {"en": "b", "ro": "a"}})"
                               "\n"
                               R"({"translation.ro": "c", "translation": {"en": "d", "ro": "x"}})",
                               "f");
  CHECK(rows[0] == DataRow{{"a"}, "b", false, 1});
  CHECK(rows[1] == DataRow{{"c"}, "d", false, 2});  // a key with a dot takes precedence
  CHECK(refusal(nested, R"({"translation": {"en": "b"}})") ==
        "f.tsv:1: has no key 'translation.ro'");
  CHECK(refusal(nested, R"({"translation": 7})") == "f.tsv:1: has no key 'translation.ro'");
  CHECK(refusal(nested, R"({"translation": {"en": "b", "ro": ["a"]}})") ==
        "f.tsv:1: 'translation.ro' is a JSON array, expected a string");
}

TEST_CASE("aligned files are read line by line in parallel", "[trainer][files]") {
  const std::string_view sources =
      "\xEF\xBB\xBF"
      "a b\r\n\nc";
  const std::vector<LineFile> files = {{"x.ro", sources}, {"x.en", "A\nB\n\xC3\xA9\n"}};
  const auto rows = align_rows(files);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0] == DataRow{{"a b"}, "A", false, 1});
  CHECK(rows[1] == DataRow{{""}, "B", false, 2});
  CHECK(rows[2] == DataRow{{"c"}, "\xC3\xA9", false, 3});
  const auto why = [](std::vector<LineFile> bad) {
    try {
      align_rows(bad);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  CHECK(why({{"x.ro", "a\nb\n"}, {"x.en", "A\n"}}) ==
        "x.ro has 2 lines, x.en has 1 lines: expected equal numbers, one line for each example");
  CHECK(why({{"x.ro", "a\n"}, {"x.en", "A\n\xFF"}}) ==
        "x.en:2: byte 1 of the line is not UTF-8 (0xFF)");
  CHECK(why({{"x.ro", ""}, {"x.en", ""}}) == "x.ro: contains no examples");
}

TEST_CASE("target texts are kept unchanged", "[trainer][files]") {
  const testing::TempDir dir;
  dir.write("x.ro", "unu\ndoi\n");
  dir.write("x.en", "one \n two\n");
  TaskDeclaration task;
  task.name = "mine";
  task.kind = sweeps::TaskKind::text;
  task.target = sweeps::TargetRule::text;
  task.folder = dir.path();
  task.layouts = {layout(FileFormat::aligned, true, {"ro"}, "en")};
  task.layouts[0].train = task.layouts[0].validation = task.layouts[0].test = "x";
  const TaskData data = load_task_data(task, sweeps::find_task_files(task, {}), {});
  CHECK(data.train.kind == sweeps::TaskKind::text);
  CHECK(data.labels.empty());
  REQUIRE(data.test.examples.size() == 2);
  CHECK(data.test.examples[0].text == "unu");
  CHECK(data.test.examples[0].target == "one ");
  CHECK(data.test.examples[1].target == " two");
  task.layouts = {layout(FileFormat::jsonl, true, {"a"}, "b")};
  task.split = SplitRule::one_file;
  dir.write("train", "{\"a\": \"x\", \"b\": 7}\n");
  CHECK_THROWS_WITH(
      load_task_data(task, sweeps::find_task_files(task, {}), {}),
      (dir.path() / "train").string() + ":1: target 7 is a JSON number, expected a string");
}

TEST_CASE("the real GLUE files are split by the protocol", "[trainer][files]") {
  const auto folder = testing::real_data();
  if (!folder) return;
  struct Wanted {
    const char* task;
    std::size_t train, validation, test;
  };
  const std::vector<std::filesystem::path> folders{*folder};
  int ran = 0;
  for (const Wanted& wanted :
       {Wanted{"cola", 8551, 521, 522}, Wanted{"rte", 2490, 138, 139}, Wanted{"mrpc", 0, 204, 204},
        Wanted{"stsb", 5749, 750, 750}, Wanted{"sst2", 66349, 1000, 872}}) {
    INFO(wanted.task);
    const TaskDeclaration* task = sweeps::find_task(wanted.task);
    REQUIRE(task != nullptr);
    const TaskData data = load_task_data(*task, sweeps::find_task_files(*task, folders), {});
    // 0: not checked. Published copies of MRPC's training file differ by a row.
    if (wanted.train != 0) CHECK(data.train.examples.size() == wanted.train);
    CHECK(data.validation.examples.size() == wanted.validation);
    CHECK(data.test.examples.size() == wanted.test);
    ++ran;
  }
  const TaskDeclaration* cola = sweeps::find_task("cola");
  const TaskData data = load_task_data(*cola, sweeps::find_task_files(*cola, folders), {});
  CHECK(data.train.examples[0].text ==
        "Our friends won't buy this analysis, let alone the next one we propose.");
  CHECK(data.train.examples[0].label == 1);
  std::printf("real GLUE data: %d tasks\n", ran);
}

TEST_CASE("WMT16 and XSum are read in their published formats", "[trainer][files]") {
  const testing::TempDir dir;
  const std::vector<std::filesystem::path> folders{dir.path()};
  for (const char* const part : {"train", "val", "test"}) {
    dir.write(std::string("wmt16-ro-en/") + part + ".json",
              R"({ "translation": { "en": "Good day.", "ro": "Bun\u0103 ziua." } })"
              "\n");
    dir.write(std::string("xsum/") + part + ".json",
              R"({"document": "Line.\nNext.", "summary": "Lines.", "id": "7"})"
              "\n");
  }
  const auto first = [&](const char* name) {
    const TaskDeclaration& task = *sweeps::find_task(name);
    return load_task_data(task, sweeps::find_task_files(task, folders), {}).test.examples.at(0);
  };
  CHECK(first("wmt16-ro-en").text == "Bun\xC4\x83 ziua.");
  CHECK(first("wmt16-ro-en").target == "Good day.");
  CHECK(first("xsum").text == "Line.\nNext.");
  CHECK(first("xsum").target == "Lines.");
  // The first complete layout counts. Aligned files are the last one.
  for (const char* const part : {"train", "validation", "test"}) {
    dir.write(std::string("wmt16-ro-en/") + part + ".ro", "unu\n");
    dir.write(std::string("wmt16-ro-en/") + part + ".en", "one\n");
  }
  CHECK(first("wmt16-ro-en").target == "Good day.");
  std::filesystem::remove(dir.path() / "wmt16-ro-en/train.json");
  CHECK(first("wmt16-ro-en").text == "unu");
}

TEST_CASE("the real RO-STS is read from its aligned files", "[trainer][files]") {
  const auto folder = testing::real_data();
  if (!folder || !std::filesystem::exists(*folder / "ro-sts")) return;
  TaskDeclaration task;
  task.name = "ro-sts";
  task.kind = sweeps::TaskKind::text;
  task.target = sweeps::TargetRule::text;
  task.layouts = {layout(FileFormat::aligned, true, {"ro"}, "en")};
  task.layouts[0].train = "ro-sts/RO-STS.train";
  task.layouts[0].validation = "ro-sts/RO-STS.dev";
  task.layouts[0].test = "ro-sts/RO-STS.test";
  const std::vector<std::filesystem::path> folders{*folder};
  const TaskData data = load_task_data(task, sweeps::find_task_files(task, folders), {});
  CHECK(data.train.examples.size() == 11498);
  CHECK(data.validation.examples.size() == 3000);
  CHECK(data.test.examples.size() == 2758);
  CHECK(data.train.examples[0].text == "Un avion decolează.");
  CHECK(data.train.examples[0].target == "A plane is taking off.");
}

TEST_CASE("QNLI, QQP and MNLI are read from files with the official layout", "[trainer][files]") {
  const testing::TempDir dir;
  dir.write("glue/QNLI/train.tsv",
            "index\tquestion\tsentence\tlabel\n0\tWho?\tHe.\tentailment\n1\tWhy \"x?\tSo."
            "\tnot_entailment\n");
  dir.write("glue/QNLI/dev.tsv", "index\tquestion\tsentence\tlabel\n0\tA?\tB.\tentailment\n");
  dir.write("glue/QQP/train.tsv",
            "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
            "1\t2\t3\tHow?\tHow so?\t1\n2\t3\t4\tbroken\n5\t6\t7\tWhere?\tWhen?\t0\n");
  dir.write("glue/QQP/dev.tsv",
            "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\tP?\tQ?\t0\n");
  const std::string mnli =
      "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\t"
      "sentence1_parse\tsentence2_parse\tsentence1\tsentence2\t";
  const std::string row = "0\t1\t2\tfiction\t( a )\t( b )\t(A)\t(B)\tIt is.\tIt is not.\t";
  dir.write("glue/MNLI/train.tsv", mnli + "label1\tgold_label\n" + row + "neutral\tneutral\n" +
                                       row + "neutral\tcontradiction\n");
  dir.write("glue/MNLI/dev_matched.tsv",
            mnli + "label1\tlabel2\tlabel3\tlabel4\tlabel5\tgold_label\n" + row +
                "neutral\tneutral\tneutral\tneutral\tneutral\tentailment\n");
  dir.write("glue/MNLI/dev_mismatched.tsv", mnli + "label1\tgold_label\n");
  const std::vector<std::filesystem::path> folders{dir.path()};
  for (const char* name : {"qnli", "qqp", "mnli"}) {
    INFO(name);
    const TaskDeclaration* task = sweeps::find_task(name);
    REQUIRE(task != nullptr);
    const TaskData data = load_task_data(*task, sweeps::find_task_files(*task, folders), {});
    CHECK(data.train.examples.size() == 1);
    CHECK(data.validation.examples.size() == 1);
    CHECK(data.test.examples.size() == 1);
    CHECK(data.train.examples[0].pair.has_value());
    if (std::string(name) == "mnli") CHECK(data.labels.size() == 3);
  }
}

TEST_CASE("a packed batch has its examples' tokens one after another", "[trainer][files]") {
  const testing::TempDir dir;
  dir.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\n");
  const auto tokenizer = load_tokenizer(dir.path());
  Split split;
  split.examples = {{"a b a", std::nullopt, 1, 0}, {"b", "a", 0, 0}, {"a", std::nullopt, 1, 0}};
  const TokenisedSplit tokens = tokenise(split, *tokenizer, 8);
  CHECK(tokens.size() == 3);
  const Numbers chosen{2, 1};
  const PackedBatch batch = pack(tokens, chosen);
  const PackedSequences& packed = batch.input.sequences;
  CHECK(packed.ids == Numbers{2, 4, 3, 2, 5, 3, 4, 3});
  CHECK(batch.input.type_ids == Numbers{0, 0, 0, 0, 0, 0, 1, 1});
  CHECK(batch.input.position_ids.empty());
  CHECK(counted_positions(packed, 0) == Numbers{0, 1, 2, 0, 1, 2, 3, 4});
  CHECK(packed.offsets == Numbers{0, 3, 8});
  CHECK(packed.examples == chosen);
  CHECK(packed.trial_sequences == Numbers{0, 2});
  CHECK(batch.classes == Numbers{1, 0});
  CHECK(batch.scores.empty());
  // A pad id inside a text, for a backbone whose positions start after the pad id.
  const Numbers first{0};
  CHECK(counted_positions(pack(tokens, first).input.sequences, 5) == Numbers{5, 4, 6, 4, 7});
  // The sequences of two trials follow each other.
  const PackedBatch both = joined(std::vector{pack(tokens, Numbers{1}), batch});
  CHECK(both.input.sequences.trial_sequences == Numbers{0, 1, 3});
  CHECK(both.input.sequences.examples == Numbers{1, 2, 1});
  CHECK(both.input.sequences.ids == Numbers{2, 5, 3, 4, 3, 2, 4, 3, 2, 5, 3, 4, 3});
  CHECK(both.input.sequences.offsets == Numbers{0, 5, 8, 13});
  CHECK(both.input.type_ids == Numbers{0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1});
  CHECK(roberta_positions(Numbers{0, 7, 1, 8, 2, 1, 1}, 1) == Numbers{2, 3, 1, 4, 5, 1, 1});
}

}  // namespace
}  // namespace petlab::trainer
