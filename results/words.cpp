#include "results/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "base/nearest_word.h"
#include "base/shown.h"
#include "results/schema.h"
#include "sweeps/vocabulary.h"

namespace petlab::results {
namespace {

using sweeps::FieldType;

std::vector<Word> make_words() {
  std::vector<Word> all = {
      {"trial_id", FieldType::text, WordScope::trial, "id of the trial", ""},
      {"sweep", FieldType::text, WordScope::member, "name of the sweep", ""},
      {"variant", FieldType::text, WordScope::member, "name of the trial in the sweep", ""},
      {"task", FieldType::text, WordScope::score, "task of a score", ""},
      {"name", FieldType::text, WordScope::score, "name of a score's metric", ""},
      {"tasks", FieldType::text, WordScope::trial, "tasks of the trial, joined by commas", ""},
      {"tag", FieldType::text, WordScope::tag, "a tag of the trial or of its sweep", ""},
      {"attempt", FieldType::integer, WordScope::attempt, "number of the attempt that counts", ""},
      {"host", FieldType::text, WordScope::attempt, "machine on which it ran", ""},
      {"device", FieldType::text, WordScope::attempt, "core or GPU on which it ran", ""},
      {"launcher", FieldType::text, WordScope::attempt, "local or slurm", ""},
      {"worker", FieldType::text, WordScope::attempt, "name of the worker", ""},
      {"worker_version", FieldType::text, WordScope::attempt, "version of the worker", ""},
      {"train_seconds", FieldType::number, WordScope::attempt, "as the worker measured", ""},
      {"peak_memory_mib", FieldType::number, WordScope::attempt, "of the machine's memory", ""},
      {"device_memory_mib", FieldType::number, WordScope::attempt, "of the GPU's memory", ""},
      {"bls_bits", FieldType::number, WordScope::artifact, "bit-level storage of the module", ""},
      {"stored_bits", FieldType::integer, WordScope::artifact, "bits of the artifact", ""},
      {"user", FieldType::text, WordScope::trial, "the free group, as JSON", ""},
  };
  for (const internal::FieldColumn& column : internal::field_columns()) {
    for (const sweeps::Field& row : sweeps::fields()) {
      if (row.column != column.column) continue;
      all.push_back({column.column, row.type, WordScope::trial, row.help, ""});
    }
  }
  for (const sweeps::Field& row : sweeps::fields()) {
    if (row.declared == nullptr) continue;
    all.push_back({std::string(row.column), row.type, WordScope::trial, row.help, "",
                   internal::json_path(row)});
  }
  return all;
}

}  // namespace

const std::vector<Word>& words() {
  static sweeps::OfVocabulary<std::vector<Word>> all(make_words);
  return all.get();
}

std::optional<Word> find_word(std::string_view text) {
  if (text.starts_with("user.") && text.size() > 5) {
    return Word{std::string(text), FieldType::text, WordScope::trial, "",
                std::string(text.substr(5))};
  }
  // `tags` is the views' column with all tags of a trial.
  std::string name(text == "metric" ? "name" : text == "tags" ? "tag" : text);
  if (const sweeps::Field* field = sweeps::find_field(text)) name = field->column;
  for (const Word& word : words()) {
    if (word.name == name) return word;
  }
  return std::nullopt;
}

Word word_named(std::string_view text, std::span<const std::string_view> others) {
  if (auto word = find_word(text)) return *word;
  std::vector<std::string_view> names(others.begin(), others.end());
  for (const Word& word : words()) names.push_back(word.name);
  names.emplace_back("metric");
  names.emplace_back("user.NAME");
  std::string_view nearest = base::nearest_word(text, names);
  // Finds `learning_rate` or `lr`, the last part of a field's name.
  const std::string field =
      nearest.empty() ? sweeps::nearest_field(std::string(text.substr(0, 100))) : "";
  if (const sweeps::Field* row = sweeps::find_field(field)) nearest = row->column;
  if (!nearest.empty()) {
    throw std::invalid_argument(
        fmt::format("unknown field \"{}\"; did you mean \"{}\"?", base::excerpt(text), nearest));
  }
  throw std::invalid_argument(fmt::format(
      "unknown field \"{}\"; petlab help fields lists all fields", base::excerpt(text)));
}

}  // namespace petlab::results
