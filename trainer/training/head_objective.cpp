#include "trainer/training/head_objective.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "metrics/metric_table.h"
#include "trainer/backbones/packed_rows.h"
#include "trainer/compute/smoothed_loss.h"
#include "trainer/compute/tensors.h"

namespace petlab::trainer {
namespace {

std::int64_t outputs_of(const sweeps::TaskDeclaration& task) {
  return task.kind == sweeps::TaskKind::regression ? 1
                                                   : static_cast<std::int64_t>(task.classes.size());
}

Tensor targets_of(const PackedBatch& batch, at::ScalarType dtype) {
  if (batch.kind == sweeps::TaskKind::classification) return at::tensor(batch.classes, at::kLong);
  return at::tensor(batch.scores, at::kFloat).to(dtype);
}

}  // namespace

HeadObjective::HeadObjective(sweeps::TaskDeclaration task, std::uint64_t number,
                             double label_smoothing, const Backbone& backbone, std::uint64_t seed)
    : task_(std::move(task)),
      label_smoothing_(label_smoothing),
      head_(backbone.shape().d_model, outputs_of(task_), seed, number, backbone.placement()) {
  if (label_smoothing_ > 0 && is_regression()) {
    throw std::invalid_argument("training.label_smoothing is " + std::to_string(label_smoothing_) +
                                ", must be 0 for task " + task_.name + ", whose target is a score");
  }
}

Tensor HeadObjective::logits(const Tensor& states, const PackedBatch& batch,
                             const Dropout* dropout) const {
  PackedRows rows = first_token_rows(batch.input.sequences);
  prepare_dropout(rows, dropout, {head_.dropout_places()}, states.device());
  return head_.forward(states, rows, dropout);
}

Tensor HeadObjective::loss(const ModelPass& model, const Tensor& states,
                           const PackedBatch& batch) const {
  Tensor outputs = logits(states, batch, model.dropout);
  // 16-bit floats are too imprecise for a sum of exponentials.
  if (outputs.element_size() < 4) outputs = outputs.to(at::kFloat);
  const Tensor targets = on_device(targets_of(batch, outputs.scalar_type()), outputs.device());
  return label_smoothing_ > 0 ? smoothed_losses(outputs, targets, label_smoothing_).sum()
                              : summed_loss(task_.kind, outputs, targets);
}

Predictions HeadObjective::empty_predictions(std::int64_t examples) const {
  Predictions predictions;
  const auto n = static_cast<std::size_t>(examples);
  predictions.outputs = head_.outputs();
  predictions.logits.resize(n * static_cast<std::size_t>(predictions.outputs));
  if (is_regression()) {
    predictions.scores.resize(n);
  } else {
    predictions.classes.resize(n);
  }
  return predictions;
}

void HeadObjective::predict(const ModelPass& model, const PackedBatch& batch,
                            Predictions& predictions) const {
  const Tensor all = logits(states(model, batch), batch, nullptr);
  if (!at::isfinite(all).all().item<bool>()) throw NotFinite("a prediction is not finite");
  const Tensor outputs = all.to(at::kCPU, at::kFloat).contiguous();
  const Tensor answers =
      (is_regression() ? all.squeeze(1).to(at::kDouble) : all.argmax(1)).to(at::kCPU);
  for (std::int64_t s = 0; s < batch.size(); ++s) {
    const std::int64_t example = batch.input.sequences.examples[static_cast<std::size_t>(s)];
    std::copy_n(outputs.const_data_ptr<float>() + s * predictions.outputs, predictions.outputs,
                predictions.logits.begin() + example * predictions.outputs);
    if (is_regression()) {
      predictions.scores[static_cast<std::size_t>(example)] = answers.const_data_ptr<double>()[s];
    } else {
      predictions.classes[static_cast<std::size_t>(example)] =
          answers.const_data_ptr<std::int64_t>()[s];
    }
  }
}

Scores HeadObjective::score(const TokenisedSplit& split, const Predictions& predictions) const {
  Scores scores;
  const std::vector<std::int64_t> classes(split.classes.begin(), split.classes.end());
  const std::vector<double> targets(split.scores.begin(), split.scores.end());
  for (const std::string& name : task_.metrics) {
    const metrics::MetricRow& metric = metrics::metric_named(name);
    std::optional<double> value;
    if (metric.of_labels != nullptr) {
      value = metric.of_labels(metrics::Confusion(classes, predictions.classes,
                                                  static_cast<std::int64_t>(task_.classes.size())));
    } else if (metric.of_scores != nullptr) {
      value = metric.of_scores(targets, predictions.scores);
    } else {
      throw std::invalid_argument("task " + task_.name + ": metric " + name +
                                  " compares texts, which a classifier does not generate");
    }
    scores.metrics.emplace_back(name, value);
  }
  for (const std::string& name : task_.select_by) {
    for (const auto& [metric, value] : scores.metrics) {
      if (metric == name) scores.selected.push_back({name, value});
    }
  }
  return scores;
}

ScoredLines HeadObjective::lines(const TokenisedSplit& split,
                                 const Predictions& predictions) const {
  ScoredLines lines;
  const auto line = [](const auto& value) { return nlohmann::json(value).dump(); };
  for (const std::int32_t gold : split.classes) lines.gold.push_back(line(gold));
  for (const float gold : split.scores) lines.gold.push_back(line(static_cast<double>(gold)));
  for (const std::int64_t found : predictions.classes) lines.predicted.push_back(line(found));
  for (const double found : predictions.scores) lines.predicted.push_back(line(found));
  return lines;
}

}  // namespace petlab::trainer
