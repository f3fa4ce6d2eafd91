#include "trainer/training/text_objective.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/trimmed.h"
#include "metrics/metric_table.h"
#include "metrics/t5_labels.h"
#include "sweeps/text_to_text.h"
#include "trainer/compute/smoothed_loss.h"
#include "trainer/compute/tensors.h"

namespace petlab::trainer {
namespace {

/// The limit for texts if decoding.max_tokens is not set.
constexpr std::int64_t kMaxTokensOfTexts = 128;
/// The limit for scores such as "3.8"; longer texts are not scores.
constexpr std::int64_t kMaxTokensOfScores = 8;

const Tokenizer& required_tokenizer(const Pretrained& pretrained) {
  if (pretrained.tokenizer == nullptr) {
    throw std::invalid_argument("a T5 generates texts, which needs its tokenizer");
  }
  return *pretrained.tokenizer;
}

std::int64_t most_tokens(const sweeps::TaskDeclaration& task, const Tokenizer& tokenizer) {
  if (task.kind == sweeps::TaskKind::text) return kMaxTokensOfTexts;
  if (task.kind == sweeps::TaskKind::regression) return kMaxTokensOfScores;
  std::size_t longest = 0;
  for (std::size_t c = 0; c < task.classes.size(); ++c) {
    const std::string target = sweeps::target_text(task, static_cast<std::int64_t>(c));
    longest = std::max(longest, tokenizer.encode(target).ids.size());
  }
  // One token more than the longest target, so that a longer text is recognised as a mismatch.
  return static_cast<std::int64_t>(longest) + 1;
}

GenerationOptions generation_of(const sweeps::TaskDeclaration& task,
                                const sweeps::DecodingConfig& config, const Tokenizer& tokenizer) {
  GenerationOptions options;
  options.beams = config.beams;
  options.length_penalty = config.length_penalty;
  options.early_stopping = config.early_stopping;
  options.min_tokens = config.min_tokens;
  options.max_tokens = config.max_tokens > 0 ? config.max_tokens : most_tokens(task, tokenizer);
  options.no_repeat_ngrams = config.no_repeat_ngrams;
  return options;
}

const T5& t5_of(const ModelPass& model) { return dynamic_cast<const T5&>(model.backbone); }

/// The decoder's inputs: the start token, then each target without its last token.
PackedSequences shifted(const PackedSequences& targets, std::int64_t start) {
  PackedSequences inputs = targets;
  for (std::size_t s = 0; s + 1 < targets.offsets.size(); ++s) {
    const auto begin = static_cast<std::size_t>(targets.offsets[s]);
    const auto end = static_cast<std::size_t>(targets.offsets[s + 1]);
    for (std::size_t i = begin; i < end; ++i) {
      inputs.ids[i] = i == begin ? start : targets.ids[i - 1];
    }
  }
  return inputs;
}

}  // namespace

std::optional<std::int64_t> class_of_text(const sweeps::TaskDeclaration& task,
                                          const std::string& text) {
  const std::string_view found = base::trimmed(text);
  for (std::size_t c = 0; c < task.classes.size(); ++c) {
    const auto number = static_cast<std::int64_t>(c);
    if (found == sweeps::target_text(task, number)) return number;
  }
  return std::nullopt;
}

TextObjective::TextObjective(sweeps::TaskDeclaration task, const sweeps::TrialConfig& config,
                             const Pretrained& pretrained)
    : task_(std::move(task)),
      tokenizer_(required_tokenizer(pretrained)),
      label_smoothing_(config.training.label_smoothing),
      generation_(generation_of(task_, config.decoding, tokenizer_)) {}

std::int64_t TextObjective::loss_terms(const TokenisedSplit& split,
                                       std::span<const std::int64_t> examples) const {
  std::int64_t tokens = 0;
  for (const std::int64_t example : examples) {
    const auto index = static_cast<std::size_t>(example);
    tokens += split.target_offsets[index + 1] - split.target_offsets[index];
  }
  return tokens;
}

Tensor TextObjective::states(const ModelPass& model, const PackedBatch& batch) const {
  const T5& t5 = t5_of(model);
  const PackedSequences& sources = batch.input.sequences;
  const Tensor encoded = t5.encode_sources(sources, model.hooks, model.dropout);
  return t5.decode(shifted(batch.targets, t5.config().decoder_start_token_id), sources, encoded,
                   model.hooks, model.dropout);
}

Tensor TextObjective::loss(const ModelPass& model, const Tensor& states,
                           const PackedBatch& batch) const {
  const Tensor wanted = on_device(at::tensor(batch.targets.ids, at::kLong), states.device());
  return t5_of(model).smoothed_losses(states, wanted, label_smoothing_).sum();
}

Predictions TextObjective::empty_predictions(std::int64_t examples) const {
  Predictions predictions;
  predictions.texts.resize(static_cast<std::size_t>(examples));
  predictions.text_scores.resize(static_cast<std::size_t>(examples));
  return predictions;
}

void TextObjective::predict(const ModelPass& model, const PackedBatch& batch,
                            Predictions& predictions) const {
  const PackedSequences& sources = batch.input.sequences;
  const auto texts = generate(t5_of(model), sources, model.hooks, generation_);
  for (std::size_t s = 0; s < texts.size(); ++s) {
    if (texts[s].empty() || !std::isfinite(texts[s].front().score)) {
      throw NotFinite("a prediction is not finite");
    }
    const GeneratedText& best = texts[s].front();
    const std::vector<std::int32_t> ids(best.ids.begin(), best.ids.end());
    const auto example = static_cast<std::size_t>(sources.examples[s]);
    predictions.texts[example] = tokenizer_.decode(ids, /*skip_special=*/true);
    predictions.text_scores[example] = best.score;
  }
}

Scores TextObjective::score(const TokenisedSplit& split, const Predictions& predictions) const {
  std::optional<metrics::Confusion> confusion;
  std::vector<double> targets;
  std::vector<double> answers;
  if (task_.kind == sweeps::TaskKind::classification) {
    confusion.emplace(static_cast<std::int64_t>(task_.classes.size()));
    for (std::size_t i = 0; i < predictions.texts.size(); ++i) {
      const auto answer = class_of_text(task_, predictions.texts[i]);
      if (answer) {
        confusion->add(split.classes[i], *answer);
      } else {
        confusion->add_invalid(split.classes[i]);
      }
    }
  } else if (task_.kind == sweeps::TaskKind::regression) {
    targets.assign(split.scores.begin(), split.scores.end());
    for (const std::string& text : predictions.texts) {
      answers.push_back(metrics::parse_score_text(text).value_or(metrics::kInvalidScore));
    }
  }
  Scores scores;
  for (const std::string& name : task_.metrics) {
    const metrics::MetricRow& metric = metrics::metric_named(name);
    std::optional<double> value;
    if (metric.of_labels != nullptr && confusion) {
      value = metric.of_labels(*confusion);
    } else if (metric.of_scores != nullptr && task_.kind == sweeps::TaskKind::regression) {
      value = metric.of_scores(targets, answers);
    } else if (metric.text_metric != nullptr && task_.kind == sweeps::TaskKind::text) {
      value = metric.of_texts(split.references, predictions.texts);
    } else {
      throw std::invalid_argument("task " + task_.name + ": metric " + name +
                                  " does not fit the task");
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

ScoredLines TextObjective::lines(const TokenisedSplit& split,
                                 const Predictions& predictions) const {
  ScoredLines lines;
  lines.texts = task_.kind == sweeps::TaskKind::text;
  const auto line = [](const auto& value) { return nlohmann::json(value).dump(); };
  for (const std::int32_t gold : split.classes) lines.gold.push_back(line(gold));
  for (const float gold : split.scores) lines.gold.push_back(line(static_cast<double>(gold)));
  for (const std::string& gold : split.references) lines.gold.push_back(line(gold));
  for (const std::string& text : predictions.texts) {
    std::string found = "none";
    if (lines.texts) {
      found = line(text);
    } else if (task_.kind == sweeps::TaskKind::regression) {
      if (const auto answer = metrics::parse_score_text(text)) found = line(*answer);
    } else if (const auto answer = class_of_text(task_, text)) {
      found = line(*answer);
    }
    lines.predicted.push_back(std::move(found));
  }
  return lines;
}

}  // namespace petlab::trainer
