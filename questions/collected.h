#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "results/scores.h"

namespace petlab::questions {

/// The trials selected by a question, stored compactly: a field's values are indices of its
/// distinct values.
class Collected {
 public:
  struct Row {
    std::int64_t trial = 0;
    std::uint32_t tasks = 0;          ///< index in tasks()
    std::uint32_t configuration = 0;  ///< equal for equal configurations, ignoring the seed
    bool has_result = false;
    bool stopped_early = false;
    std::size_t first_score = 0;  ///< index in scores()
    std::size_t end_score = 0;
  };
  struct Score {
    std::uint32_t series = 0;  ///< index in series()
    std::int64_t step = 0;
    std::optional<double> value;  ///< finite; absent if undefined
  };

  /// Reads everything selected by `question`.
  Collected(const results::ScoreReader& reader, const results::ScoreQuestion& question);

  /// The question's fields, then results::configuration_words().
  const std::vector<results::Word>& fields() const { return fields_; }
  std::size_t first_configuration_field() const { return question_fields_; }
  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<results::SeriesName>& series() const { return series_; }
  const std::vector<Score>& scores() const { return scores_; }
  /// The distinct task lists of the trials.
  const std::vector<std::vector<std::string>>& tasks() const { return tasks_; }
  const std::string& trial_id(std::size_t row) const { return ids_[row]; }
  /// The index of a field's value in a row. Equal values have equal indices.
  std::uint32_t code(std::size_t row, std::size_t field) const {
    return field < question_fields_
               ? codes_[row * question_fields_ + field]
               : configurations_[rows_[row].configuration * (fields_.size() - question_fields_) +
                                 field - question_fields_];
  }
  const results::Value& value(std::size_t row, std::size_t field) const {
    return columns_[field].values[code(row, field)];
  }
  /// True if the rows have several values of a field.
  bool differs(std::size_t field) const { return columns_[field].values.size() > 1; }
  /// The index of a field. Throws std::out_of_range if there is none of that name.
  std::size_t field(std::string_view name) const;

 private:
  struct Column {
    std::vector<results::Value> values;
    std::unordered_map<results::Value, std::uint32_t> codes;
    std::uint32_t last = 0;
  };

  static void note(Column& column, const results::Value& value, std::vector<std::uint32_t>& codes);

  std::size_t question_fields_;  // number of the question's fields
  std::vector<results::Word> fields_;
  std::vector<Column> columns_;
  std::vector<Row> rows_;
  std::vector<std::string> ids_;
  std::vector<std::uint32_t> codes_;           // (rows, own_)
  std::vector<std::uint32_t> configurations_;  // (configurations, other fields)
  std::vector<Score> scores_;
  std::vector<results::SeriesName> series_;
  std::vector<std::vector<std::string>> tasks_;
};

}  // namespace petlab::questions
