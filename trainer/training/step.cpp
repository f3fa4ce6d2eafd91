#include "trainer/training/step.h"

#include <algorithm>
#include <cmath>

#include "trainer/compute/dropout_draws.h"
#include "trainer/training/evaluation.h"

namespace petlab::trainer {
namespace {

Dropout dropout_of(std::span<const TrialProgress> trials, const Backbone& backbone) {
  const double configured = trials.front().config().training.dropout;
  const DropoutRates defaults = backbone.dropout_rates();
  Dropout dropout;
  dropout.hidden = configured < 0 ? defaults.hidden : configured;
  dropout.attention = configured < 0 ? defaults.attention : configured;
  dropout.step = static_cast<std::uint64_t>(trials.front().state().step);
  for (const TrialProgress& trial : trials) dropout.seeds.push_back(trial.config().seed.value);
  const at::Device device = backbone.placement().device;
  if (!device.is_cpu() && (dropout.hidden > 0 || dropout.attention > 0)) {
    const sweeps::BackboneShape shape = backbone.shape();
    dropout.round_keys =
        dropout_round_keys(dropout.seeds, shape.encoder_layers + shape.decoder_layers, device);
  }
  return dropout;
}

}  // namespace

std::vector<double> read_losses(std::span<const TrialProgress> trials, const Tensor& losses,
                                std::int64_t step) {
  const Tensor here = losses.to(at::kCPU);
  const double* const values = here.const_data_ptr<double>();
  for (std::size_t k = 0; k < trials.size(); ++k) {
    if (std::isfinite(values[k])) continue;
    const std::string whose =
        trials.size() == 1 ? "" : " of seed " + std::to_string(trials[k].config().seed.value);
    throw NotFinite("the loss" + whose + " is not finite at step " + std::to_string(step) +
                    ": a smaller training.learning_rate or training.max_grad_norm may help");
  }
  return {values, values + trials.size()};
}

Tensor take_step(std::span<TrialProgress> trials, const std::vector<TaskRun>& tasks,
                 TrialModel& model, AdamW& optimizer) {
  std::vector<StepExamples> drawn;
  for (TrialProgress& trial : trials) drawn.push_back(trial.order().at(trial.state().step));
  // Trials of several tasks train alone (why_not_in_one_gang), and others have a single task.
  const std::size_t task = drawn.front().task;
  const TokenisedSplit& train = tasks[task].train;
  const Dropout dropout = dropout_of(trials, model.backbone());

  optimizer.zero_gradients();
  model.merge(task);
  const auto size = static_cast<std::int64_t>(drawn.front().examples.size());
  const std::int64_t parts = std::min(size, trials.front().config().training.gradient_accumulation);
  std::vector<std::int64_t> terms;
  for (const StepExamples& all : drawn) {
    terms.push_back(model.objective(task).loss_terms(train, all.examples));
  }
  std::vector<Tensor> means(trials.size());
  for (std::int64_t part = 0; part < parts; ++part) {
    std::vector<std::vector<std::int64_t>> examples;
    for (const StepExamples& all : drawn) {
      examples.emplace_back(all.examples.begin() + part * size / parts,
                            all.examples.begin() + (part + 1) * size / parts);
      sort_by_length(train, examples.back());
    }
    const PackedBatch packed = pack_trials(train, examples);
    Tensor total;
    const std::vector<Tensor> sums = model.objective(task).losses(model.pass(&dropout), packed);
    for (std::size_t k = 0; k < sums.size(); ++k) {
      const Tensor mean = sums[k] / terms[k];
      const Tensor added = mean.detach().to(at::kDouble);
      means[k] = means[k].defined() ? means[k] + added : added;
      total = total.defined() ? total + mean : mean;
    }
    total.backward();
  }
  const Tensor losses = at::stack(means);
  if (losses.device().is_cpu()) read_losses(trials, losses, trials.front().state().step + 1);
  model.gather(task);
  std::vector<double> norms;
  std::vector<Rates> rates;
  for (const TrialProgress& trial : trials) {
    const sweeps::TrainingConfig& training = trial.config().training;
    const std::int64_t steps = trial.order().steps();
    const double factor = schedule_factor(trial.state().step, steps, warmup_of(training, steps));
    norms.push_back(training.max_grad_norm);
    rates.push_back({training.learning_rate * factor, training.mask_learning_rate * factor});
  }
  optimizer.clip(norms);
  optimizer.step(rates);
  return losses;
}

}  // namespace petlab::trainer
