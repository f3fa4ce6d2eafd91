// `petlab score` with the arguments of sacrebleu's command. The expected output is that of the
// sacrebleu 2.6 command on the same files, byte for byte.
#include <nlohmann/json.hpp>
#include <string>

#include "cli/scoring/score_table.h"
#include "tests/support/catch.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"

using petlab::cli::booktabs_of;
using petlab::cli::grid_of;
using petlab::cli::ScoreTable;
using petlab::testing::CommandResult;
using petlab::testing::run_command;
using petlab::testing::TempDir;

namespace {

struct Systems {
  TempDir dir;
  Systems() {
    dir.write("hyp", "the cat is on the mat\nhello there world\n");
    dir.write("other", "a cat sat on mat\nhi there world\n");
    dir.write("ref", "the cat sat on the mat\nhello there big world\n");
  }
  CommandResult score(const std::string& arguments) const {
    return run_command("cd '" + dir.path().string() + "' && '" +
                       petlab::testing::program("petlab").string() + "' score " + arguments);
  }
  std::string out(const std::string& arguments) const {
    const CommandResult result = score(arguments);
    INFO(arguments);
    CHECK(result.err.empty());
    CHECK(result.exit_code == 0);
    return result.out;
  }
  std::string refusal(const std::string& arguments, int exit_code = 2) const {
    const CommandResult result = score(arguments);
    INFO(arguments);
    CHECK(result.out.empty());
    CHECK(result.exit_code == exit_code);
    return result.err;
  }
};

const std::string kBleuSignature = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0";
const std::string kVerbose =
    "88.9/57.1/20.0/16.7 (BP = 0.895 ratio = 0.900 hyp_len = 9 ref_len = 10)";

}  // namespace

TEST_CASE("petlab score prints sacrebleu's JSON for sacrebleu's arguments", "[cli]") {
  const Systems files;
  const std::string bleu = R"({
 "name": "BLEU",
 "score": 32.3,
 "signature": ")" + kBleuSignature +
                           R"(",
 "verbose_score": ")" + kVerbose +
                           R"(",
 "nrefs": "1",
 "case": "mixed",
 "eff": "no",
 "tok": "13a",
 "smooth": "exp",
 "version": "2.6.0"
})";
  CHECK(files.out("ref -i hyp") == bleu + "\n");
  CHECK(files.out("ref < hyp") == bleu + "\n");
  const std::string two = files.out("ref -i hyp -m ter bleu");
  CHECK(two.starts_with("[\n" + bleu + ",\n{\n \"name\": \"TER\",\n \"score\": 20.0,\n"));
  CHECK(two.ends_with("}\n]\n"));
  CHECK(files.out("ref -i hyp -b -w 3 -m bleu ter") == "[\n32.279,\n20.000\n]\n");
  CHECK(files.out("ref -i hyp -b -w 2 -f text -m bleu ter") == "32.28\n20.00\n");
  CHECK(files.out("ref -i hyp -ci -cin 20").find(R"( "score": 32.3,
 "signature": "nrefs:1|bs:20|seed:12345|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0",
 "confidence_mean": 24.1,
 "confidence_var": 16.1,
 "confidence": "μ = 24.1 ± 16.1",
 "verbose_score": ")") != std::string::npos);
}

TEST_CASE("petlab score prints sacrebleu's text and accepts its short options", "[cli]") {
  const Systems files;
  CHECK(files.out("ref -i hyp -m chrf bleu -f text") ==
        "  BLEU|" + kBleuSignature + " = 32.3 " + kVerbose +
            "\nchrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0 = 63.7\n");
  CHECK(files.out("ref -i hyp -sl -b") == "38.0\n45.1\n");
  CHECK(files.out("ref -i hyp -tok intl -lc -s floor -sv 0.2 -sh -f text -w 0")
            .starts_with("BLEU|#:1|c:lc|e:no|tok:intl|s:floor[0.20]|v:2.6.0 = 26 "));
  CHECK(files.out("ref -i hyp -m chrf -cw 2 -cc 5 -sh -f text")
            .starts_with("chrF2++|#:1|c:mixed|e:yes|nc:5|nw:2|s:no|v:2.6.0 = "));
  // There -lc applies only to BLEU; chrF has a separate option.
  const std::string cased = files.out("ref -i hyp -m bleu chrf -lc -sh -f text");
  CHECK(cased.find("chrF2|#:1|c:mixed|") != std::string::npos);
}

TEST_CASE("petlab score accepts a SentencePiece model under sacrebleu's name", "[cli]") {
  const Systems files;
  const auto file = petlab::testing::source_dir() / "tests/metrics/data/tiny_spm.model";
  const std::string model = " --spm-model '" + file.string() + "'";
  const std::string rest =
      " = 77.2 97.1/90.9/83.9/75.9 (BP = 0.892 ratio = 0.897 hyp_len = 35 ref_len = 39)\n";
  CHECK(files.out("ref -i hyp -tok flores200 -f text" + model) ==
        "BLEU|nrefs:1|case:mixed|eff:no|tok:flores200|smooth:exp|version:2.6.0" + rest);
  CHECK(files.out("ref -i hyp -tok flores101 -lc -sh -f text" + model) ==
        "BLEU|#:1|c:lc|e:no|tok:flores101|s:exp|v:2.6.0" + rest);
  CHECK(files.out("bleu --hyp hyp --ref ref --short --width 1 --tokenize spBLEU-1K" + model)
            .find("|tok:spBLEU-1K|") != std::string::npos);
  CHECK(files.refusal("ref -i hyp -tok flores200") ==
        "petlab: tokenizer flores200 needs its SentencePiece model (--spm-model FILE); sacrebleu "
        "keeps it in ~/.sacrebleu/models/flores200sacrebleuspm\n");
}

TEST_CASE("petlab score prints a table of several systems", "[cli]") {
  const Systems files;
  CHECK(files.out("ref -i hyp other -m bleu chrf -f text") ==
        "╒══════════╤════════╤═════════╕\n"
        "│   System │  BLEU  │  chrF2  │\n"
        "╞══════════╪════════╪═════════╡\n"
        "│      hyp │  32.3  │  63.7   │\n"
        "├──────────┼────────┼─────────┤\n"
        "│    other │  27.5  │  40.2   │\n"
        "╘══════════╧════════╧═════════╛\n"
        "\n"
        "-----------------\nMetric signatures\n-----------------\n"
        " - BLEU       " +
            kBleuSignature +
            "\n"
            " - chrF2      nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0\n");
  CHECK(files.out("ref -i hyp other -m bleu") ==
        "[\n    {\n        \"system\": \"hyp\",\n        \"BLEU\": \"32.3\"\n    },\n"
        "    {\n        \"system\": \"other\",\n        \"BLEU\": \"27.5\"\n    }\n]\n");
  const std::string paired = files.out("ref -i hyp other -m bleu -pbs -f text");
  CHECK(
      paired.starts_with("╒═══════════════╤═════════════════════╕\n"
                         "│        System │  BLEU (μ ± 95% CI)  │\n"
                         "╞═══════════════╪═════════════════════╡\n"
                         "│ Baseline: hyp │ 32.3 (24.0 ± 16.1)  │\n"
                         "├───────────────┼─────────────────────┤\n"
                         "│         other │ 27.5 (21.0 ± 14.7)  │\n"
                         "│               │    (p = 0.0010)*    │\n"
                         "╘═══════════════╧═════════════════════╛\n"));
  const auto json = nlohmann::json::parse(files.out("ref -i hyp other -m ter -par -parn 50"));
  CHECK(json.at(0).at("system") == "Baseline: hyp");
  CHECK(json.at(0).at("TER").at("p_value").is_null());
  CHECK(json.at(1).at("TER").at("p_value").is_number());
  CHECK(json.at(1).at("TER").at("score") == 40.0);
  files.dir.write("same", "the cat is on the mat\nhello there world\n");
  CHECK(files.out("ref -i hyp same -par -parn 50 -f latex").find("32.3 (no difference)") !=
        std::string::npos);
}

TEST_CASE("A LaTeX table of scores has its special characters escaped", "[cli]") {
  const ScoreTable table{{"System", "a%"}, {{"x_1 & \\y", "1.0"}, {"z", "$2^~#{}<>\u03bb"}}};
  CHECK(booktabs_of(table) ==
        "\\begin{tabular}{rc}\n\\toprule\n"
        "   System &     a\\%     \\\\\n\\midrule\n"
        " x\\_1 \\& \\textbackslash{}y &    1.0     \\\\\n"
        "        z & \\$2\\textasciicircum{}\\textasciitilde{}\\#\\{\\}$<$$>$$\\lambda$ \\\\\n"
        "\\bottomrule\n\\end{tabular}\n");
  CHECK(grid_of({{"System", "μ"}, {{"ä", "1"}}}) ==
        "╒══════════╤═════╕\n│   System │  μ  │\n╞══════════╪═════╡\n│        ä │  1  │\n"
        "╘══════════╧═════╛\n");
}

TEST_CASE("petlab score reads compressed files, and references separated by tabs", "[cli]") {
  const Systems files;
  const std::string expected = files.out("ref -i hyp -w 4");
  for (const std::string program : {"gzip", "bzip2", "xz", "zstd"}) {
    const std::string end = program == "gzip" ? "gz" : program == "bzip2" ? "bz2" : program;
    const std::string extension = end == "zstd" ? "zst" : end;
    if (run_command("command -v " + program).exit_code != 0) continue;
    INFO(program);
    for (const std::string file : {"hyp", "ref"}) {
      REQUIRE(run_command("cd '" + files.dir.path().string() + "' && " + program + " -c " + file +
                          " > " + file + "." + extension)
                  .exit_code == 0);
    }
    CHECK(files.out("ref." + extension + " -i hyp." + extension + " -w 4") == expected);
  }
  files.dir.write("plain.gz", "the cat\n");
  CHECK(files.refusal("ref -i plain.gz", 1) ==
        "petlab: plain.gz: is not compressed, although its name ends like a compressed file\n");
  files.dir.write("cut.gz", std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03"
                                        "abc",
                                        13));
  CHECK(files.refusal("ref -i cut.gz", 1).starts_with("petlab: cut.gz: cannot be read: "));

  files.dir.write("both",
                  "the cat sat on the mat\ta cat sat on mat\nhello there big world\thi there "
                  "world\n");
  CHECK(files.out("both -i hyp -nr 2 -w 4") == files.out("ref other -i hyp -w 4"));
  CHECK(files.out("bleu --hyp hyp --ref both --num-refs 2") ==
        files.out("bleu --hyp hyp --ref ref --ref other"));
  CHECK(files.refusal("ref -i hyp -nr 2", 1) ==
        "petlab: ref:1: found 1 reference separated by tabs, expected 2\n");
}

TEST_CASE("petlab score refuses invalid arguments in sacrebleu's form", "[cli]") {
  const Systems files;
  CHECK(files.refusal("-i hyp") == "petlab: score needs reference files before --input\n");
  CHECK(files.refusal("ref -i hyp -m accuracy") ==
        "petlab: --metrics names accuracy, a metric of labels: use petlab score accuracy --hyp "
        "FILE --ref FILE\n");
  CHECK(files.refusal("ref -i hyp -m bleu bleu") == "petlab: --metrics names bleu twice\n");
  CHECK(files.refusal("ref -i hyp hyp") ==
        "petlab: --input names hyp twice: each system needs its own file\n");
  CHECK(files.refusal("ref -i hyp -pbs") ==
        "petlab: a paired test compares systems: --input needs at least two, the baseline first\n");
  CHECK(files.refusal("ref -i hyp -f latex") ==
        "petlab: --format latex prints a table of systems: --input needs at least two\n");
  CHECK(files.refusal("ref -i hyp -f html") ==
        "petlab: --format is 'html', must be text, json or latex\n");
  CHECK(files.refusal("ref -i hyp other -ci") ==
        "petlab: --confidence takes one system; for several, --paired-bs shows intervals\n");
  CHECK(files.refusal("ref -m bleu ter < hyp") ==
        "petlab: standard input can be read only once: several metrics or systems need files\n");
  CHECK(files.refusal("ref -i hyp -m chrf -tok 13a")
            .starts_with("petlab: --tokenize does not apply to chrf: it belongs to bleu"));
  CHECK(files.refusal("bleu --hyp hyp --ref ref --format latex") ==
        "petlab: --format is 'latex', must be text or json; latex needs --input\n");
  CHECK(files.refusal("ref -i hyp --hyp hyp")
            .starts_with("petlab: --hyp does not belong to this form"));
  CHECK(files.out("ref -i hyp --json") == files.out("ref -i hyp --format json"));
  CHECK(files.out("bleu --hyp hyp --ref ref --json") ==
        files.out("bleu --hyp hyp --ref ref --format json"));
}
