#include "trainer/data/load_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/shown.h"
#include "trainer/data/splits.h"
#include "trainer/files/error.h"

namespace petlab::trainer {
namespace {

using sweeps::SplitRule;
using sweeps::TargetRule;
using sweeps::TaskDeclaration;

constexpr std::uint64_t kSplitSeed = 42;         // independent of the trial's seed
constexpr std::int64_t kLargeValidation = 1000;  // reference/method.md, "GLUE protocol"
constexpr std::int64_t kOneFileFraction = 5;     // sweeps/task.h, SplitRule::one_file

/// The rows of a file as examples. Absent rows are left out of every split.
struct File {
  std::filesystem::path path;
  std::vector<std::optional<Example>> examples;
  std::int64_t size() const { return static_cast<std::int64_t>(examples.size()); }
};

double number_of(const DataRow& row, const TaskDeclaration& task, const std::string& file) {
  double number = 0;
  const char* end = row.target.data() + row.target.size();
  const auto [rest, error] = std::from_chars(row.target.data(), end, number);
  if (error != std::errc() || rest != end || !std::isfinite(number)) {
    throw Error(fmt::format("{}:{}: score {} is not a finite number", file, row.line,
                            base::in_quotes(row.target)));
  }
  if ((task.score_min && number < *task.score_min) ||
      (task.score_max && number > *task.score_max)) {
    throw Error(fmt::format("{}:{}: score {} is outside {} .. {}", file, row.line,
                            base::excerpt(row.target),
                            task.score_min ? fmt::format("{}", *task.score_min) : "-inf",
                            task.score_max ? fmt::format("{}", *task.score_max) : "inf"));
  }
  return number;
}

std::optional<Example> example_of(DataRow& row, const TaskDeclaration& task,
                                  const std::string& file) {
  Example example;
  switch (task.target) {
    case TargetRule::label: {
      const auto label = sweeps::class_of(task, row.target, row.target_is_number);
      if (!label) {
        throw Error(fmt::format("{}:{}: label {} is not known, expected one of {}", file, row.line,
                                base::in_quotes(row.target), base::list_in_quotes(task.classes)));
      }
      example.label = static_cast<std::int32_t>(*label);
      break;
    }
    case TargetRule::sign: {
      const double number = number_of(row, task, file);
      if (number == 0) return std::nullopt;
      example.label = number > 0 ? 1 : 0;
      break;
    }
    case TargetRule::score:
      example.score = static_cast<float>(number_of(row, task, file));
      break;
    case TargetRule::text:
      if (row.target_is_number) {
        throw Error(fmt::format("{}:{}: target {} is a JSON number, expected a string", file,
                                row.line, row.target));
      }
      example.target = std::move(row.target);
      break;
  }
  example.text = std::move(row.texts.at(0));
  if (row.texts.size() > 1) example.pair = std::move(row.texts[1]);
  return example;
}

File read_file(const TaskDeclaration& task, const sweeps::TaskLayout& layout,
               const std::filesystem::path& path) {
  File file{path, {}};
  if (path.empty()) return file;
  for (DataRow& row : read_rows(layout, path, task.source)) {
    file.examples.push_back(example_of(row, task, path.string()));
  }
  return file;
}

Split take(const File& file, const std::vector<std::int64_t>& rows, std::int64_t limit,
           const TaskDeclaration& task, std::string_view split_name) {
  Split split;
  split.kind = task.kind;
  for (const std::int64_t row : rows) {
    if (limit > 0 && static_cast<std::int64_t>(split.examples.size()) == limit) break;
    const auto& example = file.examples[static_cast<std::size_t>(row)];
    if (example) split.examples.push_back(*example);
  }
  if (split.examples.empty()) {
    throw Error(fmt::format("{}: leaves no example for the {} split of task {}", file.path.string(),
                            split_name, task.name));
  }
  return split;
}

std::vector<std::int64_t> in_order(std::int64_t n) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(n));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

std::vector<std::int64_t> part(const std::vector<std::int64_t>& rows, std::int64_t begin,
                               std::int64_t end) {
  return {rows.begin() + begin, rows.begin() + end};
}

}  // namespace

SplitRows split_rows(SplitRule rule, std::int64_t train_rows, std::int64_t validation_rows,
                     std::int64_t test_rows) {
  switch (rule) {
    case SplitRule::given:
      return {in_order(train_rows), in_order(validation_rows), in_order(test_rows)};
    case SplitRule::glue_small: {
      const auto order = torch_randperm(validation_rows, kSplitSeed);
      const std::int64_t half = validation_rows / 2;
      return {in_order(train_rows), part(order, 0, half), part(order, half, validation_rows)};
    }
    case SplitRule::glue_large: {
      const auto order = torch_randperm(train_rows, kSplitSeed);
      const std::int64_t held_out =
          train_rows < 2 * kLargeValidation ? train_rows / 2 : kLargeValidation;
      return {part(order, held_out, train_rows), part(order, 0, held_out),
              in_order(validation_rows)};
    }
    case SplitRule::one_file: {
      const auto order = torch_randperm(train_rows, kSplitSeed);
      const std::int64_t held_out = std::min(kLargeValidation, train_rows / kOneFileFraction);
      return {part(order, 2 * held_out, train_rows), part(order, 0, held_out),
              part(order, held_out, 2 * held_out)};
    }
  }
  return {};
}

TaskData load_task_data(const TaskDeclaration& task, const sweeps::TaskFiles& files,
                        const sweeps::DataConfig& config) {
  const sweeps::TaskLayout& layout = task.layouts.at(files.layout);
  const File train = read_file(task, layout, files.train);
  const File validation = read_file(task, layout, files.validation);
  const File test = read_file(task, layout, files.test);
  const SplitRows rows = split_rows(task.split, train.size(), validation.size(), test.size());
  // The file that a split's row numbers refer to.
  const bool own_validation = task.split == SplitRule::given || task.split == SplitRule::glue_small;
  const File& validation_file = own_validation ? validation : train;
  const File& test_file = task.split == SplitRule::given      ? test
                          : task.split == SplitRule::one_file ? train
                                                              : validation;
  TaskData data;
  data.labels = task.classes;
  data.train = take(train, rows.train, config.max_train_examples, task, "training");
  data.validation =
      take(validation_file, rows.validation, config.max_validation_examples, task, "validation");
  data.test = take(test_file, rows.test, config.max_test_examples, task, "test");
  return data;
}

}  // namespace petlab::trainer
