#include <fmt/format.h>

#include "sweeps/catalog.h"

namespace petlab::sweeps {
namespace {

constexpr std::string_view kGlueSource =
    "the official GLUE files, gluebenchmark.com/tasks, unpacked to a data folder as glue/{}; "
    "petlab "
    "fetch data {} does that";
constexpr std::string_view kSnippetSource =
    "hutto_ICWSM_2014.tar.gz in the source archive of vaderSentiment 3.3.2 on PyPI "
    "(petlab quickstart downloads it), unpacked to a data folder as snippets";

// Data sets without a fixed server: JSON lines with the data sets' column names.
constexpr std::string_view kTextSource =
    "{0}, written to a data folder as {1}/train.jsonl, validation.jsonl and test.jsonl, JSON lines "
    "of the data set's own keys";

// Common to the eight tasks: the official TSV files, or JSON lines with the keys of the same
// sentences and a key `label` (classes by number or name, STS-B's score).
struct GlueRow {
  const char* name;
  const char* help;
  const char* folder;
  const char* validation;  // without extension
  bool large;
  bool header;
  std::vector<std::string> text_columns;
  std::string target_column;
  std::vector<std::string> json_keys;
  std::vector<std::string> classes;  // empty: STS-B's score
  std::vector<std::string> metrics;  // all are used for selection
  bool skip_short_rows = false;
};

TaskDeclaration glue(const GlueRow& row) {
  TaskDeclaration task;
  task.name = row.name;
  task.help = row.help;
  task.source = fmt::format(kGlueSource, row.folder, row.name);
  task.classes = row.classes;
  if (row.classes.empty()) {
    task.kind = TaskKind::regression;
    task.target = TargetRule::score;
    task.score_min = 0;
    task.score_max = 5;
  }
  task.split = row.large ? SplitRule::glue_large : SplitRule::glue_small;
  const std::string folder = fmt::format("glue/{}/", row.folder);
  TaskLayout tsv;
  tsv.format = FileFormat::tsv;
  tsv.header = row.header;
  tsv.train = fmt::format("{}train.tsv", folder);
  tsv.validation = fmt::format("{}{}.tsv", folder, row.validation);
  tsv.text_columns = row.text_columns;
  tsv.target_column = row.target_column;
  tsv.skip_short_rows = row.skip_short_rows;
  TaskLayout jsonl;
  jsonl.format = FileFormat::jsonl;
  jsonl.train = fmt::format("{}train.jsonl", folder);
  jsonl.validation = fmt::format("{}{}.jsonl", folder, row.validation);
  jsonl.text_columns = row.json_keys;
  jsonl.target_column = std::string("label");
  task.layouts = {tsv, jsonl};
  task.metrics = row.metrics;
  task.select_by = row.metrics;
  task.text_to_text.source = row.name;
  for (std::size_t i = 0; i < row.json_keys.size(); ++i) {
    task.text_to_text.source += fmt::format(" {}: {{text{}}}", row.json_keys[i], i + 1);
  }
  return task;
}

TaskDeclaration snippets(const std::string& set, const std::string& file, const std::string& what,
                         bool polarity) {
  TaskDeclaration task;
  task.name = fmt::format("{}-{}", set, polarity ? "polarity" : "valence");
  task.help = polarity ? fmt::format("is the mean valence of {} above or below zero", what)
                       : fmt::format("the mean valence, -4 to 4, of {}", what);
  task.source = kSnippetSource;
  task.kind = polarity ? TaskKind::classification : TaskKind::regression;
  task.target = polarity ? TargetRule::sign : TargetRule::score;
  if (polarity) task.classes = {"negative", "positive"};
  task.score_min = -4;
  task.score_max = 4;
  task.split = SplitRule::one_file;
  TaskLayout layout;
  layout.format = FileFormat::tsv;
  layout.header = false;
  layout.train = fmt::format("snippets/{}", file);
  layout.text_columns = {"2"};
  layout.target_column = std::string("1");
  task.layouts = {layout};
  if (polarity) {
    task.metrics = {"accuracy", "f1", "matthews"};
    task.select_by = {"accuracy"};
  } else {
    task.metrics = {"pearson", "spearman"};
    task.select_by = {"pearson", "spearman"};
  }
  task.text_to_text.source = fmt::format("{} sentence: {{text1}}", task.name);
  return task;
}

// A text task over the three published parts of its data set.
TaskDeclaration text_task(const std::string& name, const std::string& help,
                          const std::string& source, const std::string& text_column,
                          const std::string& target_column) {
  TaskDeclaration task;
  task.name = name;
  task.help = help;
  task.source = fmt::format(kTextSource, source, name);
  task.kind = TaskKind::text;
  task.target = TargetRule::text;
  task.split = SplitRule::given;
  TaskLayout jsonl;
  jsonl.format = FileFormat::jsonl;
  jsonl.train = name + "/train.jsonl";
  jsonl.validation = name + "/validation.jsonl";
  jsonl.test = name + "/test.jsonl";
  jsonl.text_columns = {text_column};
  jsonl.target_column = target_column;
  TaskLayout plain = jsonl;  // names used in the examples of Hugging Face's transformers
  plain.train = name + "/train.json";
  plain.validation = name + "/val.json";
  plain.test = name + "/test.json";
  task.layouts = {jsonl, plain};
  return task;
}

TaskDeclaration wmt16_ro_en() {
  TaskDeclaration task =
      text_task("wmt16-ro-en", "WMT16: translate Romanian news into English",
                "Hugging Face's data set wmt/wmt16, its part ro-en (statmt.org/wmt16)",
                "translation.ro", "translation.en");
  TaskLayout aligned;
  aligned.format = FileFormat::aligned;
  aligned.train = "wmt16-ro-en/train";
  aligned.validation = "wmt16-ro-en/validation";
  aligned.test = "wmt16-ro-en/test";
  aligned.text_columns = {"ro"};
  aligned.target_column = "en";
  task.layouts.push_back(aligned);
  task.metrics = {"bleu", "chrf", "ter"};
  task.select_by = {"bleu"};
  task.text_to_text.source = "wmt16-ro-en Translate Romanian to English: {text1}";
  return task;
}

TaskDeclaration xsum() {
  TaskDeclaration task =
      text_task("xsum", "XSum: summarise a news article in one sentence",
                "Hugging Face's data set EdinburghNLP/xsum", "document", "summary");
  task.metrics = {"rouge1", "rouge2", "rougeL", "rougeLsum"};
  task.select_by = {"rouge2"};
  task.text_to_text.source = "xsum document: {text1}";
  return task;
}

std::vector<TaskDeclaration> all_tasks() {
  const std::vector<std::string> pair = {"sentence1", "sentence2"};
  const std::vector<std::string> zero_one = {"0", "1"};
  const std::vector<std::string> entailment = {"entailment", "not_entailment"};
  const std::vector<GlueRow> rows = {
      {"cola",
       "GLUE CoLA: is the sentence acceptable English",
       "CoLA",
       "dev",
       false,
       false,
       {"3"},
       "1",
       {"sentence"},
       zero_one,
       {"matthews"}},
      {"sst2",
       "GLUE SST-2: is a movie-review phrase positive",
       "SST-2",
       "dev",
       true,
       true,
       {"sentence"},
       "label",
       {"sentence"},
       zero_one,
       {"accuracy"}},
      {"mrpc",
       "GLUE MRPC: are two sentences paraphrases",
       "MRPC",
       "dev",
       false,
       true,
       {"#1 String", "#2 String"},
       "Quality",
       pair,
       zero_one,
       {"accuracy", "f1"}},
      // Some rows of the official QQP files lack their last columns; the reference skips them.
      {"qqp",
       "GLUE QQP: are two questions duplicates",
       "QQP",
       "dev",
       true,
       true,
       {"question1", "question2"},
       "is_duplicate",
       {"question1", "question2"},
       zero_one,
       {"accuracy", "f1"},
       true},
      {"stsb",
       "GLUE STS-B: how similar are two sentences, 0 to 5",
       "STS-B",
       "dev",
       false,
       true,
       pair,
       "score",
       pair,
       {},
       {"pearson", "spearman"}},
      {"mnli",
       "GLUE MNLI (matched): does the premise entail the hypothesis",
       "MNLI",
       "dev_matched",
       true,
       true,
       pair,
       "gold_label",
       {"premise", "hypothesis"},
       {"entailment", "neutral", "contradiction"},
       {"accuracy"}},
      {"qnli",
       "GLUE QNLI: does the sentence answer the question",
       "QNLI",
       "dev",
       true,
       true,
       {"question", "sentence"},
       "label",
       {"question", "sentence"},
       entailment,
       {"accuracy"}},
      {"rte",
       "GLUE RTE: does the first sentence entail the second",
       "RTE",
       "dev",
       false,
       true,
       pair,
       "label",
       pair,
       entailment,
       {"accuracy"}},
  };
  std::vector<TaskDeclaration> all;
  for (const GlueRow& row : rows) all.push_back(glue(row));
  for (const bool polarity : {true, false}) {
    all.push_back(snippets("movie", "movieReviewSnippets_GroundTruth.txt", "a movie-review snippet",
                           polarity));
    all.push_back(snippets("amazon", "amazonReviewSnippets_GroundTruth.txt",
                           "a product-review snippet", polarity));
    all.push_back(snippets("nyt", "nytEditorialSnippets_GroundTruth.txt",
                           "a snippet of a newspaper's editorial", polarity));
    all.push_back(snippets("tweets", "tweets_GroundTruth.txt", "a tweet", polarity));
  }
  all.push_back(wmt16_ro_en());
  all.push_back(xsum());
  return all;
}

}  // namespace

std::span<const TaskDeclaration> tasks() {
  static const std::vector<TaskDeclaration> all = all_tasks();
  return all;
}

}  // namespace petlab::sweeps
