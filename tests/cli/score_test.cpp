#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "metrics/metric_table.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"

using petlab::testing::CommandResult;
using petlab::testing::run_command;
using petlab::testing::TempDir;

namespace {

// Runs `petlab score ARGUMENTS` in the folder, so that messages name files without a path.
CommandResult score(const TempDir& dir, const std::string& arguments) {
  return run_command("cd '" + dir.path().string() + "' && '" +
                     petlab::testing::program("petlab").string() + "' score " + arguments);
}

void check_refused(const TempDir& dir, const std::string& arguments, int exit_code,
                   const std::string& message) {
  INFO(arguments);
  const CommandResult result = score(dir, arguments);
  CHECK(result.err == "petlab: " + message + "\n");
  CHECK(result.out.empty());
  CHECK(result.exit_code == exit_code);
}

struct Folder {
  TempDir dir;
  Folder() {
    dir.write("hyp", "the cat sat\nhello big world out there\n");
    dir.write("ref", "the cat sat down\nhello big world out\n");
    dir.write("gold", "1\n0\n1\n1\n");
    dir.write("pred", "1\n0\n0\n1\n");
    dir.write("x", "1.5\n2\n4\n");
    dir.write("y", "2\n1\n7e0\n");
  }
};

}  // namespace

TEST_CASE("petlab score prints BLEU as sacrebleu does", "[cli]") {
  const Folder files;
  const CommandResult result = score(files.dir, "bleu --hyp hyp --ref ref");
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());
  CHECK(result.out ==
        "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0 = 72.3127 "
        "87.5/83.3/75.0/50.0 (BP = 1.000 ratio = 1.000 hyp_len = 8 ref_len = 8)\n");
  CHECK(score(files.dir, "bleu --hyp hyp --ref ref --short --width 1 --lowercase").out ==
        "BLEU|#:1|c:lc|e:no|tok:13a|s:exp|v:2.6.0 = 72.3 "
        "87.5/83.3/75.0/50.0 (BP = 1.000 ratio = 1.000 hyp_len = 8 ref_len = 8)\n");
}

TEST_CASE("petlab score prints JSON with sacrebleu's keys and all digits", "[cli]") {
  const Folder files;
  const CommandResult result = score(files.dir, "bleu --hyp hyp --ref ref --json");
  CHECK(result.exit_code == 0);
  const auto json = nlohmann::json::parse(result.out);
  CHECK(json.at("name") == "BLEU");
  CHECK(json.at("score").get<double>() == Approx(100 * std::pow(35.0 / 128, 0.25)).epsilon(1e-12));
  CHECK(json.at("signature") == "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0");
  CHECK(json.at("verbose_score") ==
        "87.5/83.3/75.0/50.0 (BP = 1.000 ratio = 1.000 hyp_len = 8 ref_len = 8)");
  for (const char* key : {"nrefs", "case", "eff", "tok", "smooth", "version"}) {
    CHECK(json.contains(key));
  }
  CHECK(json.at("counts") == nlohmann::json({7, 5, 3, 1}));
  CHECK(json.at("totals") == nlohmann::json({8, 6, 4, 2}));
  CHECK(json.at("sys_len") == 8);
  CHECK(json.at("segments") == 2);
  // Enough digits to read back the same number.
  CHECK(result.out.find("\"score\": 72.31269021") != std::string::npos);
  CHECK(result.out.find("\"score\": 72.3127,") == std::string::npos);
}

TEST_CASE("petlab score computes every metric that it lists", "[cli]") {
  const Folder files;
  const CommandResult listed = score(files.dir, "--list");
  CHECK(listed.exit_code == 0);
  const auto rows = nlohmann::json::parse(score(files.dir, "--list --json").out);
  CHECK(rows.size() == petlab::metrics::metric_table().size());
  for (const auto& row : rows) {
    const std::string name = row.at("name");
    INFO(name);
    CHECK(listed.out.find(name + " ") != std::string::npos);
    const std::string input = row.at("input");
    const std::string arguments = input == "text"     ? " --hyp hyp --ref ref"
                                  : input == "labels" ? " --hyp pred --ref gold"
                                                      : " --hyp x --ref y";
    const CommandResult result = score(files.dir, name + arguments + " --json");
    CHECK(result.exit_code == 0);
    CHECK(nlohmann::json::parse(result.out).at("score").is_number());
  }
  // A hypothesis equal to its reference.
  const auto perfect = [&](const std::string& arguments) {
    return nlohmann::json::parse(score(files.dir, arguments + " --json").out)
        .at("score")
        .get<double>();
  };
  CHECK(perfect("bleu --hyp ref --ref ref") == Approx(100));
  CHECK(perfect("chrf --hyp ref --ref ref") == Approx(100));
  CHECK(perfect("ter --hyp ref --ref ref") == 0);
  CHECK(perfect("rougeL --hyp ref --ref ref") == 1);
  CHECK(perfect("exact-match --hyp ref --ref ref") == 1);
  CHECK(perfect("token-error-rate --hyp ref --ref ref") == 0);
}

TEST_CASE("petlab score applies sacrebleu's options", "[cli]") {
  const Folder files;
  const auto signature = [&](const std::string& arguments) {
    const CommandResult result = score(files.dir, arguments + " --hyp hyp --ref ref");
    INFO(result.err);
    return result.out.substr(0, result.out.find(" = "));
  };
  CHECK(signature("bleu --tokenize char --lowercase --smooth-method floor --smooth-value 0.5") ==
        "BLEU|nrefs:1|case:lc|eff:no|tok:char|smooth:floor[0.50]|version:2.6.0");
  CHECK(signature("chrf --word-order 2 --beta 3 --char-order 5") ==
        "chrF3++|nrefs:1|case:mixed|eff:yes|nc:5|nw:2|space:no|version:2.6.0");
  CHECK(signature("chrf --chrf-word-order 1 --chrf-whitespace") ==
        "chrF2+|nrefs:1|case:mixed|eff:yes|nc:6|nw:1|space:yes|version:2.6.0");
  CHECK(signature("ter --case-sensitive --ter-normalized --no-punct --asian-support") ==
        "TER|nrefs:1|case:mixed|tok:tercom|norm:yes|punct:no|asian:yes|version:2.6.0");
  CHECK(signature("rouge1 --stem") == "rouge1|nrefs:1|stem:yes|tok:rouge-score|version:0.1.2");
  CHECK(score(files.dir, "bleu --max-ngram-order 2 --hyp hyp --ref ref --json")
            .out.find("\"counts\": [\n  7,\n  5\n ]") != std::string::npos);
}

TEST_CASE("petlab score accepts several references, some of them missing", "[cli]") {
  const Folder files;
  files.dir.write("other", "the cat sat\n\n");
  const auto sys_nrefs = [&](const std::string& arguments) {
    return nlohmann::json::parse(
               score(files.dir, "bleu --hyp hyp --ref ref --ref other --json" + arguments).out)
        .at("nrefs")
        .get<std::string>();
  };
  CHECK(sys_nrefs("") == "2");
  CHECK(sys_nrefs(" --empty-is-missing") == "var");
}

TEST_CASE("petlab score prints a line for each sentence on request", "[cli]") {
  const Folder files;
  const CommandResult result = score(files.dir, "bleu --sentence-level --hyp hyp --ref ref");
  CHECK(result.exit_code == 0);
  CHECK(result.out ==
        "BLEU|nrefs:1|case:mixed|eff:yes|tok:13a|smooth:exp|version:2.6.0 = 71.6531 "
        "100.0/100.0/100.0/0.0 (BP = 0.717 ratio = 0.750 hyp_len = 3 ref_len = 4)\n"
        "BLEU|nrefs:1|case:mixed|eff:yes|tok:13a|smooth:exp|version:2.6.0 = 66.8740 "
        "80.0/75.0/66.7/50.0 (BP = 1.000 ratio = 1.250 hyp_len = 5 ref_len = 4)\n");
  const CommandResult json =
      score(files.dir, "chrf --sentence-level --json --threads 2 --hyp hyp --ref ref");
  const std::size_t end = json.out.find('\n');
  CHECK(nlohmann::json::parse(json.out.substr(0, end)).at("line") == 1);
  CHECK(nlohmann::json::parse(json.out.substr(end + 1)).at("line") == 2);
}

TEST_CASE("petlab score reports intervals and compares with a baseline", "[cli]") {
  const Folder files;
  files.dir.write("base", "the dog\nhello\n");
  const auto json = nlohmann::json::parse(
      score(files.dir, "chrf --hyp hyp --ref ref --confidence --confidence-n 50 --seed 1 --json")
          .out);
  CHECK(json.at("bs") == "50");
  CHECK(json.at("seed") == "1");
  CHECK(json.at("confidence_var").get<double>() > 0);
  CHECK(json.at("score") ==
        nlohmann::json::parse(score(files.dir, "chrf --hyp hyp --ref ref --json").out).at("score"));
  for (const std::string test : {"bs", "ar"}) {
    const auto paired = nlohmann::json::parse(
        score(files.dir, "chrf --hyp hyp --baseline base --ref ref --json --paired-" + test +
                             " --paired-" + test + "-n 40")
            .out);
    CHECK(paired.at("baseline_score").get<double>() < paired.at("score").get<double>());
    CHECK(paired.at("p_value").get<double>() > 0);
    CHECK(paired.at("identical") == false);
  }
}

TEST_CASE("petlab score reports that equal systems do not differ, without a p value", "[cli]") {
  const Folder files;
  for (const std::string test : {"bs", "ar"}) {
    const std::string arguments = "chrf --hyp hyp --baseline hyp --ref ref --paired-" + test;
    CHECK(score(files.dir, arguments).out ==
          "chrF2|nrefs:1|" + test + ":" + (test == "bs" ? "1000" : "10000") +
              "|seed:12345|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0 = 82.2869, baseline "
              "82.2869 (the systems do not differ)\n");
    const auto json = nlohmann::json::parse(score(files.dir, arguments + " --json").out);
    CHECK(json.at("identical") == true);
    CHECK(json.at("p_value").is_null());
  }
}

TEST_CASE("petlab score also prints the interval of a score of zero", "[cli]") {
  const Folder files;
  files.dir.write("nothing", "x\ny\n");
  const std::string arguments = "chrf --hyp nothing --ref gold3 --confidence --confidence-n 20";
  files.dir.write("gold3", "a\nb\n");
  CHECK(score(files.dir, arguments).out ==
        "chrF2|nrefs:1|bs:20|seed:12345|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0 = "
        "0.0000 (μ = 0.0000 ± 0.0000)\n");
  const auto json = nlohmann::json::parse(score(files.dir, arguments + " --json").out);
  CHECK(json.at("confidence_mean") == 0.0);
  CHECK(json.at("confidence_var") == 0.0);
}

TEST_CASE("petlab score cuts white space at the end of a line, as sacrebleu's command does",
          "[cli]") {
  const Folder files;
  files.dir.write("dos", "the cat sat\r\nhello big world out there \t\r\n");
  files.dir.write("dos_ref", "the cat sat down\xE3\x80\x80\nhello big world out\r\n");
  const std::string expected = score(files.dir, "chrf --whitespace --hyp hyp --ref ref").out;
  CHECK(score(files.dir, "chrf --whitespace --hyp dos --ref dos_ref").out == expected);
  files.dir.write("other", "the cat sat\r\n\r\n");
  const auto json = nlohmann::json::parse(
      score(files.dir, "bleu --hyp dos --ref ref --ref other --empty-is-missing --json").out);
  CHECK(json.at("nrefs") == "var");
}

TEST_CASE("petlab score reads examples of several lines as JSON strings", "[cli]") {
  const Folder files;
  files.dir.write("hyp.jsonl", "\"c d\\na b\"\n\"the cat\\nsat \\u00e9\"\n");
  files.dir.write("ref.jsonl", "\"a b\\nc d\"\n\"the cat\\nsat\\n\\ndown\"\n");
  const auto of = [&](const std::string& metric) {
    const CommandResult result =
        score(files.dir, metric + " --json-lines --hyp hyp.jsonl --ref ref.jsonl --json");
    INFO(result.err);
    return nlohmann::json::parse(result.out).at("score").get<double>();
  };
  // The other order of sentences halves rougeL of the first example. In the second, all three words
  // of the hypothesis match, and the reference has four.
  CHECK(of("rougeLsum") == Approx((1.0 + 6.0 / 7) / 2));
  CHECK(of("rougeL") == Approx((0.5 + 6.0 / 7) / 2));
  // A line of a plain file is one sentence.
  CHECK(score(files.dir, "rougeLsum --hyp hyp --ref ref").out.substr(9) ==
        score(files.dir, "rougeL --hyp hyp --ref ref").out.substr(6));
  files.dir.write("bad.jsonl", "\"a\"\n[\"b\"]\n");
  check_refused(
      files.dir, "rougeLsum --json-lines --hyp bad.jsonl --ref ref.jsonl", 1,
      "bad.jsonl:2: found JSON of type array, expected a JSON string in double quotes (its "
      "line breaks as \\n)");
  check_refused(
      files.dir, "rouge1 --json-lines --hyp hyp.jsonl --ref ref", 1,
      "ref:1: found a line that is not JSON, expected a JSON string in double quotes (its "
      "line breaks as \\n)");
  // Line breaks do not change the words of a text.
  CHECK(of("token-error-rate") == Approx(5.0 / 8));
  CHECK(of("exact-match") == 0);
  files.dir.write("plain.hyp", "c d a b\nthe cat sat \u00e9\n");
  files.dir.write("plain.ref", "a b c d\nthe cat sat down\n");
  const CommandResult plain = score(files.dir, "bleu --hyp plain.hyp --ref plain.ref --json");
  CHECK(of("bleu") == nlohmann::json::parse(plain.out).at("score").get<double>());
  check_refused(files.dir, "accuracy --json-lines --hyp pred --ref gold", 2,
                "--json-lines does not apply to accuracy: it belongs to text");
}

// AddressSanitizer reserves more address space than any limit would leave.
#if !defined(PETLAB_SANITIZED)
TEST_CASE("petlab score names the line that does not fit into memory", "[cli]") {
  const Folder files;
  files.dir.write("small", "a\nb\n");
  files.dir.write("one", "1\n");
  run_command("truncate -s 600M '" + files.dir.path().string() + "/huge'");
  for (const std::string arguments :
       {"bleu --hyp huge --ref small", "ter --hyp small --ref huge",
        "chrf --hyp huge --ref small --confidence", "bleu --hyp huge --ref small --threads 2",
        "pearson --hyp huge --ref one"}) {
    INFO(arguments);
    const CommandResult result =
        run_command("cd '" + files.dir.path().string() + "' && ulimit -v 400000 && '" +
                    petlab::testing::program("petlab").string() + "' score " + arguments);
    CHECK(result.exit_code == 1);
    CHECK(result.out.empty());
    CHECK(result.err.starts_with("petlab: huge:"));
    CHECK(result.err.find(": not enough memory for this line, after reading ") !=
          std::string::npos);
  }
}
#endif

TEST_CASE("petlab score reads standard input for one of its files", "[cli]") {
  const Folder files;
  const std::string expected = score(files.dir, "chrf --hyp hyp --ref ref").out;
  CHECK(score(files.dir, "chrf --hyp - --ref ref <hyp").out == expected);
  CHECK(score(files.dir, "chrf --hyp hyp --ref - <ref").out == expected);
  CHECK(score(files.dir, "accuracy --hyp - --ref gold <pred").out == "accuracy = 0.7500 (n = 4)\n");
  check_refused(files.dir, "chrf --hyp - --ref - <hyp", 2,
                "- is given 2 times, but standard input can be read only once");
}

TEST_CASE("petlab score scores labels and numbers", "[cli]") {
  const Folder files;
  CHECK(score(files.dir, "accuracy --hyp pred --ref gold").out == "accuracy = 0.7500 (n = 4)\n");
  CHECK(score(files.dir, "f1 --hyp pred --ref gold").out == "f1 = 0.8000 (n = 4)\n");
  CHECK(score(files.dir, "spearman --hyp x --ref y").out == "spearman = 0.5000 (n = 3)\n");
  const auto json =
      nlohmann::json::parse(score(files.dir, "matthews --hyp pred --ref gold --json").out);
  CHECK(json.at("score").get<double>() == Approx(0.5773502691896258).epsilon(1e-15));
  CHECK(json.at("n") == 4);
  CHECK(json.at("num_labels") == 2);
  // CRLF line ends.
  files.dir.write("crlf", "1\r\n0\r\n0\r\n1\r\n");
  CHECK(score(files.dir, "accuracy --hyp crlf --ref gold").out == "accuracy = 0.7500 (n = 4)\n");
}

TEST_CASE("petlab score notes undefined values and conventions", "[cli]") {
  const Folder files;
  files.dir.write("same", "2\n2\n2\n");
  files.dir.write("zeros", "0\n0\n0\n0\n");
  const CommandResult undefined = score(files.dir, "pearson --hyp same --ref x");
  CHECK(undefined.exit_code == 0);
  CHECK(undefined.out == "pearson = undefined (n = 3)\n");
  CHECK(undefined.err ==
        "petlab: undefined: all numbers of a file are equal, or it has only one line\n");
  const auto json =
      nlohmann::json::parse(score(files.dir, "pearson --hyp same --ref x --json").out);
  CHECK(json.at("score").is_null());
  CHECK(json.contains("note"));
  // There are two classes although only one occurs.
  const auto zeros =
      nlohmann::json::parse(score(files.dir, "accuracy --hyp zeros --ref zeros --json").out);
  CHECK(zeros.at("num_labels") == 2);
  CHECK(zeros.at("score") == 1);
  const CommandResult convention = score(files.dir, "matthews --hyp zeros --ref gold");
  CHECK(convention.out == "matthews = 0.0000 (n = 4)\n");
  CHECK(convention.err ==
        "petlab: all examples or all predictions are of one class: matthews is 0 by convention\n");
}

TEST_CASE("petlab score skips a byte order mark before labels and keeps it in texts", "[cli]") {
  const Folder files;
  const std::string mark = "\xEF\xBB\xBF";
  files.dir.write("marked", mark + "1\n0\n1\n0\n");
  files.dir.write("plain", "1\n0\n1\n0\n");
  files.dir.write("only-mark", mark);
  const CommandResult marked = score(files.dir, "accuracy --hyp marked --ref marked");
  CHECK(marked.out == "accuracy = 1.0000 (n = 4)\n");
  CHECK(score(files.dir, "chrf --hyp marked --ref plain").out !=
        score(files.dir, "chrf --hyp plain --ref plain").out);
  check_refused(files.dir, "accuracy --hyp only-mark --ref only-mark", 1,
                "only-mark: the corpus is empty, expected at least one line");
}

TEST_CASE("petlab score refuses invalid files by name and line", "[cli]") {
  const Folder files;
  files.dir.write("empty", "");
  files.dir.write("bad-utf8",
                  "fine\nb\xFF"
                  "d\n");
  files.dir.write("nan", "1\nnan\n3\n");
  files.dir.write("inf", "1\n2\n1e999\n");
  files.dir.write("words", "1\n0\nyes\n1\n");
  files.dir.write("minus", "1\n0\n-1\n1\n");
  files.dir.write("three", "1\n0\n2\n1\n");
  files.dir.write("cr", "1\r0\r1\r");
  files.dir.write("mac", std::string(1000, 'a') + "\rb\r");
  files.dir.write("blank", "\"a\"\n\n");
  for (const char* words :
       {"f1 --hyp cr --ref gold", "f1 --hyp gold --ref cr", "spearman --hyp cr --ref gold"}) {
    check_refused(
        files.dir, words, 1,
        "cr: found lines that end with a carriage return (CR) alone, expected newlines (LF "
        "or CRLF)");
  }
  check_refused(
      files.dir, "bleu --hyp mac --ref mac", 1,
      "mac: found lines that end with a carriage return (CR) alone, expected newlines (LF "
      "or CRLF)");
  check_refused(files.dir, "bleu --json-lines --hyp blank --ref blank", 1,
                "blank:2: found a blank line, expected a JSON string in double quotes (its line "
                "breaks as \\n)");
  check_refused(files.dir, "bleu --hyp hyp --ref gold", 1,
                "the files have different numbers of lines: hyp has 2, gold has 4");
  check_refused(files.dir, "accuracy --hyp x --ref y", 1,
                "x:1: found '1.5', expected a label from 0 to 4095");
  check_refused(files.dir, "spearman --hyp x --ref gold", 1,
                "the files have different numbers of lines: x has 3, gold has 4");
  check_refused(files.dir, "spearman --hyp x --ref nan", 1,
                "nan:2: found 'nan', expected a finite decimal number");
  check_refused(files.dir, "pearson --hyp inf --ref x", 1,
                "inf:3: found '1e999', expected a finite decimal number");
  check_refused(files.dir, "f1 --hyp words --ref gold", 1,
                "words:3: found 'yes', expected a label from 0 to 4095");
  check_refused(files.dir, "f1 --hyp minus --ref gold", 1,
                "minus:3: found '-1', expected a label from 0 to 4095");
  check_refused(files.dir, "f1-macro --hyp three --ref gold --num-labels 2", 1,
                "three:3: found '2', expected a label from 0 to 1");
  check_refused(files.dir, "f1 --hyp three --ref gold", 2,
                "f1 needs two classes, found 3: f1-macro takes any number");
  check_refused(files.dir, "chrf --hyp bad-utf8 --ref ref", 1,
                "bad-utf8:2: invalid UTF-8 at byte 2 of the line (0xFF)");
  for (const char* metric : {"bleu", "rouge2", "accuracy", "pearson"}) {
    const CommandResult result = score(files.dir, std::string(metric) + " --hyp empty --ref empty");
    CHECK(result.exit_code == 1);
    CHECK(result.err.find("empty") != std::string::npos);
  }
  const CommandResult missing = score(files.dir, "bleu --hyp nothing --ref ref");
  CHECK(missing.exit_code == 1);
  CHECK(missing.err.find("nothing") != std::string::npos);
}

TEST_CASE("petlab score refuses unknown words, with the nearest known one", "[cli]") {
  const Folder files;
  const std::string both = " --hyp hyp --ref ref";
  check_refused(files.dir, "blue" + both, 2, "unknown metric \"blue\"; did you mean \"bleu\"?");
  check_refused(files.dir, "bleu --tokenize 14a" + both, 2,
                "unknown tokenizer \"14a\"; did you mean \"13a\"?");
  check_refused(files.dir, "bleu --smooth-method flor" + both, 2,
                "unknown smoothing method \"flor\"; did you mean \"floor\"?");
  check_refused(files.dir, "bleu --spm-model nothing.model" + both, 1,
                "nothing.model: does not exist, expected a SentencePiece model");
}

TEST_CASE("petlab score refuses options that do not apply", "[cli]") {
  const Folder files;
  const std::string both = " --hyp hyp --ref ref";
  check_refused(files.dir, "bleu --stem" + both, 2,
                "--stem does not apply to bleu: it belongs to rouge1, rouge2, rougeL, rougeLsum");
  check_refused(files.dir, "chrf --tokenize 13a" + both, 2,
                "--tokenize does not apply to chrf: it belongs to bleu");
  check_refused(files.dir, "accuracy --sentence-level --hyp pred --ref gold", 2,
                "--sentence-level does not apply to accuracy: it belongs to text");
  check_refused(files.dir, "pearson --num-labels 3 --hyp x --ref y", 2,
                "--num-labels does not apply to pearson: it belongs to labels");
  check_refused(files.dir, "accuracy --hyp pred --ref gold --ref gold", 2,
                "--ref is given 2 times, accuracy takes one");
  check_refused(files.dir, "bleu --paired-bs" + both, 2, "--paired-bs requires --baseline");
  check_refused(files.dir, "bleu --baseline hyp" + both, 2,
                "--baseline requires --paired-bs or --paired-ar");
  check_refused(files.dir, "bleu --seed 3" + both, 2, "--seed requires --confidence or --baseline");
  check_refused(files.dir, "bleu --threads 0" + both, 2, "--threads is 0, must be > 0");
  check_refused(files.dir, "bleu --width 18" + both, 2, "--width is 18, must be 0 to 17");
  check_refused(files.dir, "bleu --hyp hyp", 2, "score requires --ref FILE");
  check_refused(files.dir, "--hyp hyp --ref ref", 2,
                "score needs a metric (petlab score --list shows them)");
}

TEST_CASE("petlab score prints the same with any number of threads", "[cli][golden][wide]") {
  const auto golden = petlab::testing::golden("metrics");
  if (!golden) return;
  const TempDir dir;
  const std::string corpus = (*golden / "corpora" / "noisy_en").string();
  for (const std::string metric : {"bleu", "chrf", "ter", "rouge2 --stem", "rougeLsum"}) {
    INFO(metric);
    const std::string arguments =
        metric + " --json --hyp '" + corpus + ".hyp' --ref '" + corpus + ".ref' --threads ";
    const CommandResult one = score(dir, arguments + "1");
    CHECK(one.exit_code == 0);
    CHECK(score(dir, arguments + "3").out == one.out);
  }
}
