// The rules of an exchange between machines; tests/end_to_end/exchange.py tests the rest.
#include <cmath>

#include "exchange/archive_format.h"
#include "exchange/attempt_copy.h"
#include "exchange/differences.h"
#include "exchange/foreign_decisions.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::exchange {
namespace {

using protocol::Decision;
using results::CountedValue;

TEST_CASE("Values of two results are compared bit by bit, and test scores are named first") {
  const std::vector<CountedValue> here = {{"test", "cola", "accuracy", 3, 0.5},
                                          {"validation", "cola", "accuracy", 1, 0.1},
                                          {"validation", "cola", "accuracy", 2, std::nullopt}};
  CHECK(difference_of_values(here, here).empty());
  std::vector<CountedValue> there = here;
  there[1].value = std::nextafter(0.1, 1.0);
  CHECK(difference_of_values(here, there) ==
        "accuracy of cola on validation at step 1 is 0.1 here, 0.10000000000000002 there");
  there[0].value = 0.25;
  CHECK(difference_of_values(here, there) ==
        "accuracy of cola on test at step 3 is 0.5 here, 0.25 there; 2 values differ in all");
  there = here;
  there[2].value = 0.0;
  CHECK(difference_of_values(here, there) ==
        "accuracy of cola on validation at step 2 is undefined here, 0 there");
  there.pop_back();
  CHECK(difference_of_values(here, there) ==
        "accuracy of cola on validation at step 2 is undefined here and was not reported there");
  CHECK(difference_of_values(there, here) ==
        "accuracy of cola on validation at step 2 is undefined there and was not reported here");
}

TEST_CASE("Negative zero differs from zero") {
  CHECK_FALSE(
      difference_of_values({{"test", "a", "b", 1, 0.0}}, {{"test", "a", "b", 1, -0.0}}).empty());
}

TEST_CASE("Decisions are imported with their attempts, under local attempt numbers") {
  ForeignDecisions there;
  there.all = {{Decision::What::discard, 2, 10.0, "wrong"},
               {Decision::What::cancel, 0, 11.0},
               {Decision::What::hide, 0, 12.0, "odd"}};
  there.numbers = {{1, 2}, {2, 3}, {3, 4}};
  there.attempts_come = true;
  there.own_attempts = true;
  const std::vector<Decision> discard = {{Decision::What::discard, 3, 10.0, "wrong"}};
  // The trial was also tried here, so only local decisions hide it.
  CHECK(decisions_to_take(there, {}) == discard);
  // A decision is taken only once.
  CHECK(decisions_to_take(there, discard).empty());
  there.own_attempts = false;
  CHECK(decisions_to_take(there, discard) ==
        std::vector<Decision>{{Decision::What::hide, 0, 12.0, "odd"}});
  // A contrary local decision wins.
  CHECK(decisions_to_take(
            there,
            {discard[0], {Decision::What::hide, 0, 12.0, "odd"}, {Decision::What::unhide, 0, 13.0}})
            .empty());
  there.attempts_come = false;
  there.own_attempts = true;
  CHECK(decisions_to_take(there, {}).empty());
  there.numbers.clear();
  there.own_attempts = false;
  CHECK(decisions_to_take(there, {}).empty());
}

TEST_CASE("An archive contains only names of a runs folder") {
  for (const char* name :
       {"runs/sweeps/ablation.jsonl", "runs/0123456789abcdef/decisions.jsonl",
        "runs/0123456789abcdef/1/events.jsonl", "runs/0123456789abcdef/12/predictions/a.txt",
        "runs/0123456789abcdef/1/caf\u00e9"}) {
    INFO(name);
    CHECK(why_no_archive_name(name).empty());
  }
  for (const char* name : {"",
                           "/",
                           "runs",
                           "runs/",
                           "runs//x",
                           "/etc/passwd",
                           "../x",
                           "runs/../x",
                           "runs/./x/y",
                           "runs/sweeps/..",
                           "runs/sweeps/.hidden",
                           "runs/sweeps/a/b",
                           "runs/0123456789abcdef",
                           "runs/0123456789abcdef/0/x",
                           "runs/0123456789abcdef/01/x",
                           "runs/0123456789abcdef/x/y",
                           "runs/0123456789abcde/1/x",
                           "runs/0123456789ABCDEF/1/x",
                           "runs/.locks/1/x",
                           "runs/0123456789abcdef/1/../../x",
                           "runs/0123456789abcdef/1/a\nb",
                           "runs/sweeps/a\\b",
                           "runs/sweeps/\xff",
                           "petlab.db"}) {
    INFO(name);
    CHECK_FALSE(why_no_archive_name(name).empty());
  }
  CHECK_FALSE(why_no_archive_name("runs/sweeps/" + std::string(256, 'a')).empty());
  CHECK(shown_name("a\x1b[1m\xff") == "'a\\x1b[1m\\xff'");
}

TEST_CASE("The list of an archive reads back and invalid lists are refused") {
  ArchiveList list;
  list.petlab = "0.1.0";
  list.files["runs/sweeps/a.jsonl"] = {12, "sha256:" + std::string(64, '0')};
  list.left_out["runs/0123456789abcdef/1"] = {"artifact.petl"};
  const ArchiveList read = parse_archive_list(archive_list_text(list), "x.tar.gz");
  CHECK(read.files == list.files);
  CHECK(read.left_out == list.left_out);
  for (const char* text : {"", "{", "[]", "{}", R"({"kind":"petlab archive"})",
                           R"({"kind":"petlab archive","v":1,"left_out":{},"files":{"a":1}})",
                           R"({"kind":"petlab archive","v":1,"left_out":[],"files":[]})",
                           R"({"kind":"petlab archive","v":1,"left_out":{"..":["x"]},"files":[]})",
                           R"({"kind":1,"v":1,"left_out":{},"files":[]})"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_archive_list(text, "x.tar.gz"), Error);
  }
  CHECK_THROWS_AS(parse_archive_list(std::string(79, '['), "x.tar.gz"), Error);
}

TEST_CASE("Two files are the same if all their bytes are") {
  const testing::TempDir folder;
  // Files are read in blocks of 256 KiB.
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{1} << 18,
                                 (std::size_t{1} << 18) + 1, std::size_t{1} << 19}) {
    INFO(size);
    const std::string bytes(size, 'x');
    const auto one = folder.write("one", bytes);
    CHECK(have_same_bytes(one, folder.write("same", bytes)));
    CHECK_FALSE(have_same_bytes(one, folder.write("longer", bytes + "x")));
    CHECK_FALSE(have_same_bytes(folder.write("longer", bytes + "x"), one));
    if (size == 0) continue;
    std::string other = bytes;
    other.back() = 'y';
    CHECK_FALSE(have_same_bytes(one, folder.write("other", other)));
  }
  std::filesystem::create_symlink("one", folder.path() / "link");
  CHECK_THROWS_AS(have_same_bytes(folder.path() / "one", folder.path() / "link"), SourceError);
  CHECK_THROWS_AS(have_same_bytes(folder.path() / "none", folder.path() / "one"), SourceError);
}

}  // namespace
}  // namespace petlab::exchange
