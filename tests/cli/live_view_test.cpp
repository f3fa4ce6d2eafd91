#include "cli/live/live_view.h"

#include "reports/text.h"
#include "tests/support/catch.h"

namespace petlab::cli {
namespace {

using Lines = std::vector<std::string>;

orchestrator::RunningTrial training(const std::string& id, const std::string& variant) {
  orchestrator::RunningTrial trial;
  trial.trial_id = id;
  trial.variant = variant;
  trial.attempt = 1;
  trial.slot = "gpu-3.1 GPU-8f6e";
  trial.doing = "training";
  trial.step = 120;
  trial.of = 400;
  trial.loss = 0.51234;
  trial.best = 0.87654;
  trial.device_memory_mib = 12000;
  trial.seconds = 61;
  trial.seconds_left = 200;
  return trial;
}

LivePicture picture() {
  LivePicture picture;
  picture.running = {training("0123456789abcdef", "propetl"), training("fedcba9876543210", "")};
  picture.running[1].attempt = 2;
  picture.running[1].doing = "loading";
  picture.running[1].of = 0;
  picture.running[1].loss.reset();
  picture.running[1].best.reset();
  picture.running[1].seconds_left.reset();
  picture.failures = {{"aaaaaaaaaaaaaaaa", "failed", "attempt 1 crashed", "one\ntwo\n"},
                      {"bbbbbbbbbbbbbbbb", "failed", "attempt 3 failed: CUDA out of memory", ""}};
  picture.summary = {"3 of 7 done, 2 running, 2 failed"};
  return picture;
}

TEST_CASE("The view has a row for each running trial, failures with logs, and the summary",
          "[cli]") {
  CHECK(draw(picture(), 120, 0) ==
        Lines{
            "trial             state                  step    loss    best  device     memory  "
            "time   left",
            "01234567 propetl  training            120/400  0.5123  0.8765  gpu-3.1  11.7 GiB  "
            "61 s  3 min",
            "fedcba98          loading, attempt 2                           gpu-3.1  11.7 GiB  "
            "61 s",
            "aaaaaaaa failed: attempt 1 crashed",
            "    one",
            "    two",
            "bbbbbbbb failed: attempt 3 failed: CUDA out of memory",
            "3 of 7 done, 2 running, 2 failed",
        });
}

// The line as a terminal shows it. Each escape sequence must be a colour.
std::string without_colours(const std::string& line) {
  std::string plain;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] != '\033') {
      plain += line[at];
      continue;
    }
    REQUIRE(line.substr(at, 2) == "\033[");
    at = line.find('m', at);
    REQUIRE(at != std::string::npos);
  }
  return plain;
}

TEST_CASE("A bar and the last results are above the summary", "[cli]") {
  LivePicture whole = picture();
  whole.results = {{"aaaaaaaabbbb", "propetl", {{"cola", "matthews", 0.61234}}},
                   {"ccccccccdddd", "", {{"rte", "accuracy", 0.5}, {"mrpc", "f1", std::nullopt}}},
                   {"eeeeeeeeffff", "no scores", {}}};
  whole.share = {"ablation", 10, 4, 6, 300};
  Lines lines = draw(whole, 120, 0);
  CHECK(lines[3] == "done aaaaaaaa propetl  cola matthews 0.6123");
  CHECK(lines[4] == "done cccccccc  rte accuracy 0.5000, mrpc f1 undefined");
  CHECK(lines[5] == "done eeeeeeee no scores");
  CHECK(lines[6] == "aaaaaaaa failed: attempt 1 crashed");
  CHECK(lines[10] == "ablation ████████████████▒▒▒▒▒▒▒▒░░░░░░░░░░░░░░░░  40 %, about 5 min left");
  CHECK(lines[11] == "3 of 7 done, 2 running, 2 failed");

  // 999 of 1000 are not shown as 100 %.
  whole.share = {"ablation", 1000, 999, 999, {}};
  lines = draw(whole, 120, 0);
  CHECK(lines[10].ends_with("█░  99 %"));

  // A narrow or low terminal has no bar.
  CHECK(draw(whole, 59, 0).size() == 11);
  CHECK(draw(whole, 59, 0).back() == "3 of 7 done, 2 running, 2 failed");
  CHECK(draw(whole, 120, 5).size() == 5);
  CHECK(draw(whole, 120, 5)[3] == "2 earlier failures");
  // If there is room for only some, failures come before results.
  lines = draw(whole, 120, 11);
  CHECK(lines.size() == 11);
  CHECK(lines[3] == "done cccccccc  rte accuracy 0.5000, mrpc f1 undefined");
}

TEST_CASE("Colours do not change the text", "[cli]") {
  LivePicture whole = picture();
  whole.running[1].variant = "漢字";
  whole.results = {{"aaaaaaaabbbb", "propetl", {{"cola", "matthews", 0.61234}}}};
  whole.share = {"ablation", 10, 4, 6, 300};
  for (int width = 1; width < 140; ++width) {
    for (const int height : {0, 3, 9, 40}) {
      whole.colour = false;
      const Lines plain = draw(whole, width, height);
      whole.colour = true;
      const Lines coloured = draw(whole, width, height);
      REQUIRE(plain.size() == coloured.size());
      for (std::size_t i = 0; i < plain.size(); ++i) {
        std::string shown = without_colours(coloured[i]);
        shown.erase(shown.find_last_not_of(' ') + 1);
        REQUIRE(shown == plain[i]);
      }
    }
  }
  const Lines lines = draw(whole, 120, 0);
  CHECK(lines[1].find("\033[36mtraining") != std::string::npos);
  CHECK(lines[2].find("\033[33mloading, attempt 2") != std::string::npos);
  CHECK(lines[3].starts_with("\033[32mdone\033[0m aaaaaaaa"));
  CHECK(lines[4].starts_with("aaaaaaaa \033[31mfailed\033[0m: attempt 1"));
}

TEST_CASE("No picture is wider or higher than its terminal", "[cli]") {
  LivePicture large = picture();
  for (int row = 0; row < 30; ++row) {
    large.running.push_back(
        training("0000000000000000", "漢字 with a long name " + std::string(row, 'x')));
    large.failures.push_back({"cccccccccccccccc", "failed", std::string(300, 'r'), "a\nb\nc\n"});
  }
  large.results = {{"aaaaaaaabbbb", "a long name 漢字", {{"cola", "matthews", 0.61234}}}};
  large.share = {"a name that is much longer than the terminal is wide 漢字", 10, 4, 6, 300};
  large.summary = {"first sweep", "second sweep"};
  for (int width = 1; width < 140; ++width) {
    for (int height = 1; height < 50; ++height) {
      const Lines lines = draw(large, width, height);
      REQUIRE(lines.size() <= static_cast<std::size_t>(height));
      for (const std::string& line : lines) REQUIRE(reports::display_width(line) <= width);
    }
  }
  const Lines lines = draw(large, 80, 20);
  CHECK(lines.size() == 20);
  CHECK(lines[16] == "… and 17 more running");
  CHECK(lines[19] == "second sweep");
  CHECK(draw(large, 80, 1) == Lines{"second sweep"});
}

TEST_CASE("A narrow terminal shows what matters most", "[cli]") {
  CHECK(draw(picture(), 46, 0)[1] == "01234567 …  training            120/400  3 min");
  CHECK(draw(picture(), 20, 0)[1].starts_with("01234567"));
  // Failures in the scrollback keep their whole reasons.
  LivePicture failed;
  failed.failures.push_back({"0123456789abcdef", "failed", std::string(100, 'r'), ""});
  CHECK(draw(failed, 20, 0).front() == "01234567 failed: " + std::string(100, 'r'));
  CHECK(draw(failed, 20, 9).front() == "01234567 failed: rr…");
}

TEST_CASE("Text of users and workers cannot control the terminal", "[cli]") {
  LivePicture evil = picture();
  evil.running[0].variant = "a\033[2Jb";
  evil.failures[0].last_lines = "x\033]0;title\007y\rz\n\xff";
  evil.failures[0].reason = "two\nlines";
  evil.results = {{"aaaaaaaabbbb", "a\033[2Jb", {{"t\rask", "na\nme", 1}}}};
  evil.share = {"sw\033]0;eep", 2, 1, 1, {}};
  for (const std::string& line : draw(evil, 200, 0)) {
    for (const char c : line) CHECK((static_cast<unsigned char>(c) >= 0x20 && c != 0x7f));
  }
}

}  // namespace
}  // namespace petlab::cli
