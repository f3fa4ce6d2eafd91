#include "protocol/events.h"

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/support/catch.h"

using namespace petlab::protocol;

namespace {

std::string error_of(const std::string& line) {
  try {
    parse_event(line);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "(no error)";
}

std::string metric_line(const std::string& value) {
  return R"({"v":1,"seq":3,"time":1.5,"type":"metric","step":7,"split":"test","task":"rte",)"
         R"("name":"accuracy","value":)" +
         value + "}";
}

Finished finished_with(const Examples& examples) {
  Finished finished;
  finished.step = 400;
  finished.examples = examples;
  return finished;
}

Finished finished_after(const std::string& provenance) {
  Finished finished;
  finished.step = 400;
  finished.provenance = provenance;
  return finished;
}

}  // namespace

TEST_CASE("Every kind of event reads back as it was written", "[sweeps]") {
  const std::vector<Event> events = {
      {0, 1763719287.125,
       Started{4711,
               "petlab-trainer",
               "0.1.0",
               R"({"threads":1,"device":"cpu"})",
               "sha256:aa",
               {{"rte", "sha256:bb"}}}},
      {1, 0.0, Started{1, "", "", "", "", {}}},
      {1, 0.0, Started{1, "", "", "", "", {}, R"({"libtorch":"2.13.0","clean":null})"}},
      {2, 1e9 + 0.1, Progress{10, 400, 0.693147}},
      {3, 2, Progress{11, 400, std::nullopt}},
      {3, 2, Progress{11, 400, 0.5, 1234.5}},
      {4, 3, Metric{200, "validation", "movie-polarity", "accuracy", 0.1 + 0.2}},
      {5, 3, Metric{200, "test", "a \"b\" \\ \n\t\x01 ü 漢 🙂", "f1", std::nullopt}},
      {6, 4, Checkpoint{200, "checkpoint/step-200.ckpt"}},
      {7, 5, Finished{400, "artifact.petl", 1.5e7, 15000000, 812.5, 33.25}},
      {8, 6, Finished{400, "", std::nullopt, std::nullopt, 1.0, 2.0, 2048.0}},
      {8, 6, Finished{400, "", std::nullopt, std::nullopt, std::nullopt, std::nullopt}},
      {8, 6,
       finished_with({{"cola", {{"train", 8551}, {"validation", 521}, {"test", 522}}},
                      {"a \"task\"", {{"test", 9223372036854775807}}},
                      {"none", {{"train", 0}}}})},
      {8, 6, finished_after(R"({"packages":{"numpy":"2.0"}})")},
      {9, 7, Failed{"loss is not finite at step 3", "not_finite"}},
      {9, 7, Failed{"CUDA error: an illegal memory access was encountered", "device"}},
      {9, 7, Stopped{3}},
  };
  for (const Event& event : events) {
    const std::string line = to_line(event);
    INFO(line);
    CHECK(line.find('\n') == std::string::npos);
    CHECK(nlohmann::json::parse(line).at("seq") == event.seq);
    CHECK(parse_event(line) == event);
  }
}

TEST_CASE("Doubles read back bit-identical", "[sweeps]") {
  std::mt19937_64 random(7);
  int tried = 0;
  while (tried < 20000) {
    const auto value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    ++tried;
    const Event event{1, 1.0, Metric{1, "test", "t", "n", value}};
    const Event back = parse_event(to_line(event));
    const double read = *std::get<Metric>(back.body).value;
    REQUIRE(std::bit_cast<std::uint64_t>(read) == std::bit_cast<std::uint64_t>(value));
  }
  CHECK(std::signbit(*std::get<Metric>(parse_event(metric_line("-0.0")).body).value));
  CHECK(*std::get<Metric>(parse_event(metric_line("5e-324")).body).value == 5e-324);
  CHECK(*std::get<Metric>(parse_event(metric_line("1e-999")).body).value == 0.0);
}

TEST_CASE("A value that is not finite is written as null", "[sweeps]") {
  const Event event{1, 1.0, Metric{1, "test", "t", "n", std::nan("")}};
  CHECK(to_line(event) ==
        R"({"v":1,"seq":1,"time":1,"type":"metric","step":1,"split":"test","task":"t",)"
        R"("name":"n","value":null})");
}

TEST_CASE("Keys may come in any order and with spaces, and unknown ones are ignored", "[sweeps]") {
  const Event event = parse_event(
      " { \"loss\" : -1.5E-1 , \"of\":9,\"host\":{\"a\":[1,{\"b\":null}],\"c\":true}, \"step\":3,"
      "\"\\u0074ype\":\"progress\",\"time\":12, \"seq\":8 ,\"v\":1 } \r");
  CHECK(event == Event{8, 12, Progress{3, 9, -0.15}});
}

TEST_CASE("A failure without a kind is an error", "[sweeps]") {
  CHECK(parse_event(R"({"v":1,"seq":8,"time":12,"type":"failed","reason":"no data"})") ==
        Event{8, 12, Failed{"no data", "error"}});
}

TEST_CASE("The error for a bad line gives the found and the expected text", "[sweeps]") {
  const std::string start = R"({"v":1,"seq":1,"time":1,"type":)";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "found the end of the line at byte 0, expected a JSON object"},
      {"rubbish", "found 'rubbish' at byte 0, expected a JSON object"},
      {"[1]", "found '[1]' at byte 0, expected a JSON object"},
      {"{\"v\":1", "found the end of the line at byte 6, expected ',' or '}'"},
      {"{\"v\":1,}", "found '}' at byte 7, expected a key in double quotes"},
      {"{\"v\":1} x", "found 'x' at byte 8, expected the end of the line after the object"},
      {"{\"v\":01}", "found '1}' at byte 6, expected ',' or '}'"},
      {"{\"v\":+1}", "found '+1}' at byte 5, expected a JSON value"},
      {"{\"v\":.5}", "found '.5}' at byte 5, expected a JSON value"},
      {"{\"v\":\"a\x01\"}",
       "found '\\x01\"}' at byte 7, expected a string without control characters"},
      {"{\"v\":\"\\x\"}", "found 'x\"}' at byte 7, expected one of \"\\/bfnrtu after a backslash"},
      {"{\"v\":\"\\u12\"}", "found '\"}' at byte 10, expected four hexadecimal digits"},
      {"{\"v\":1,\"seq\":\"\xff\"}", "found the byte 0xff at byte 14, expected UTF-8"},
      {"{}", "v: found nothing, expected a whole number >= 0"},
      {R"({"v":2,"seq":1,"time":1,"type":"progress"})", "v: found 2, expected 1"},
      {R"({"v":1,"seq":-1,"time":1,"type":"progress"})",
       "seq: found -1, expected a whole number >= 0"},
      {R"({"v":1,"seq":1.0,"time":1,"type":"progress"})",
       "seq: found 1.0, expected a whole number >= 0"},
      {R"({"v":1,"seq":99999999999999999999,"time":1,"type":"progress"})",
       "seq: found 99999999999999999999, expected a whole number >= 0"},
      {R"({"v":1,"seq":1,"time":"now","type":"progress"})", "time: found 'now', expected a number"},
      {start + "\"metrics\"}",
       "type: found 'metrics', expected started, progress, metric, checkpoint, finished, failed or "
       "stopped"},
      {start + "7}",
       "type: found 7, expected started, progress, metric, checkpoint, finished, failed or "
       "stopped"},
      {start + R"("progress","step":1,"of":2})", "loss: found nothing, expected a number or null"},
      {start + R"("checkpoint","step":1})", "path: found nothing, expected text"},
      {start + R"("checkpoint","step":1,"path":"../../other/9.ckpt"})",
       "path: found '../../other/9.ckpt', expected a path inside the attempt's directory"},
      {start + R"("finished","step":1,"artifact":"/etc/passwd"})",
       "artifact: found '/etc/passwd', expected a path inside the attempt's directory"},
      {start + R"("finished","step":1,"artifact":"a/../../b"})",
       "artifact: found 'a/../../b', expected a path inside the attempt's directory"},
      {start + R"("finished","step":1,"artifact":""})",
       "artifact: found '', expected a path inside the attempt's directory"},
      {start + R"("finished","step":1,"bls_bits":-1})",
       "bls_bits: found -1, expected a number >= 0"},
      {start + R"("finished","step":1,"stored_bits":-8})",
       "stored_bits: found -8, expected a whole number >= 0"},
      {start + R"("finished","step":1,"train_seconds":-0.5})",
       "train_seconds: found -0.5, expected a number >= 0"},
      {start + R"("failed","reason":"x","kind":"bad"})",
       "kind: found 'bad', expected error, out_of_memory, not_finite, device or gang"},
      {start + R"("started","pid":1,"numerics":"1"})", "numerics: found '1', expected an object"},
      {start + R"("started","pid":1,"digests":{"data":{"rte":1}}})",
       "digests: found {\"data\":{\"rte\":1}}, expected {\"backbone\": text, \"data\": {TASK: "
       "text, "
       "…}}"},
      {start + R"("finished","step":1,"examples":7})", "examples: found 7, expected an object"},
      {metric_line("NaN"), "found 'NaN}' at byte 105, expected a JSON value"},
      {metric_line("\"0.5\""), "value: found '0.5', expected a number or null"},
      {metric_line("1e999"), "value: found 1e999, expected a number that a double can hold"},
      {start + R"("failed","reason":"\ud800"})",
       "reason: found half of a surrogate pair, expected a character"},
  };
  for (const auto& [line, message] : cases) {
    INFO(line);
    CHECK(error_of(line) == message);
  }
}

TEST_CASE("Invalid numbers of examples are refused", "[sweeps]") {
  for (const std::string found :
       {R"({"rte":5})", R"({"rte":{"train":-1}})", R"({"rte":{"train":1.0}})",
        R"({"rte":{"train":"5"}})", R"({"rte":{"train":null}})", R"({"rte":{"train":true}})",
        R"({"rte":{"train":9223372036854775808}})", R"({"rte":{"dev":5}})",
        R"({"rte":{"train":{"a":1}}})"}) {
    CHECK(error_of(R"({"v":1,"seq":1,"time":1,"type":"finished","step":1,"examples":)" + found +
                   "}") ==
          "examples: found " + found +
              R"(, expected {TASK: {"train": N, "validation": N, "test": N}, …} with whole )" +
              "numbers >= 0");
  }
  CHECK_THROWS_WITH(to_line({1, 1, finished_with({{"\xff", {{"test", 1}}}})}),
                    Catch::Matchers::StartsWith("a finished event cannot be written as JSON: "));
}

TEST_CASE("A line that is too long or nested too deeply is refused", "[sweeps]") {
  CHECK(error_of(std::string(1 << 21, ' ')) ==
        "found a line of 2097152 bytes, expected at most 1048576");
  const std::string deep(500000, '[');
  CHECK(error_of("{\"x\":" + deep).find("expected at most 64 levels of nesting") !=
        std::string::npos);
}

TEST_CASE("A failure's reason is always written, with its beginning and end", "[sweeps]") {
  const auto read_back = [](const std::string& reason) {
    return std::get<Failed>(parse_event(to_line({1, 1, Failed{reason, "error"}})).body).reason;
  };
  const std::string fits(4096, 'x');
  CHECK(read_back(fits) == fits);
  const std::string label = "data.tsv:2: label '" + std::string(2'000'000, 'x') + "' is not known";
  const std::string cut = read_back(label);
  CHECK(cut == label.substr(0, 2016) + " … (1996001 bytes left out) … " +
                   label.substr(label.size() - 2016));
  CHECK(read_back(cut) == cut);
  // A character is kept whole or left out.
  std::string wide;
  for (int i = 0; i < 3000; ++i) wide += "漢";
  CHECK(read_back(wide) ==
        wide.substr(0, 2016) + " … (4968 bytes left out) … " + wide.substr(wide.size() - 2016));
  wide = "a" + wide + "b";
  CHECK(read_back(wide) ==
        wide.substr(0, 2014) + " … (4974 bytes left out) … " + wide.substr(wide.size() - 2014));
  CHECK(read_back("folder \xff\xfe/caf\xc3\xa9") == "folder \\xff\\xfe/caf\xc3\xa9");
}

TEST_CASE("A line that parse_event would refuse for its length is not written", "[sweeps]") {
  CHECK_THROWS_WITH(to_line({1, 1, Metric{1, "test", std::string(1 << 20, 'x'), "f1", 0.5}}),
                    "an event has 1048674 bytes, must have at most 1048576");
}

TEST_CASE("Every truncation of a good line is refused", "[sweeps]") {
  const std::string line = to_line({5, 3.25, Metric{200, "test", "rte", "accuracy", 0.5}});
  for (std::size_t size = 0; size < line.size(); ++size) {
    CHECK_THROWS_AS(parse_event(line.substr(0, size)), std::runtime_error);
  }
}

TEST_CASE("Metric lines parse many times faster than through a JSON tree", "[.bench][sweeps]") {
  const Event event{123456, 1763719287.125,
                    Metric{200, "validation", "movie-polarity", "accuracy", 0.7123456789012345}};
  const std::string line = to_line(event);
  const auto rate = [](const char* what, auto&& once) {
    constexpr int kTimes = 300000;
    const auto start = std::chrono::steady_clock::now();
    std::size_t sum = 0;
    for (int i = 0; i < kTimes; ++i) sum += once();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::printf("%-16s %9.0f a second (%zu)\n", what, kTimes / seconds.count(), sum);
    return kTimes / seconds.count();
  };
  rate("to_line", [&] { return to_line(event).size(); });
  const double ours = rate("parse_event", [&] { return parse_event(line).body.index(); });
  const double tree = rate("nlohmann tree", [&] { return nlohmann::json::parse(line).size(); });
  CHECK(ours > 3 * tree);
}
