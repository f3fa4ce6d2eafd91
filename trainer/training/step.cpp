#include "trainer/training/step.h"

#include <algorithm>
#include <cmath>

#include "trainer/compute/dropout_draws.h"
#include "trainer/training/evaluation.h"
#include "trainer/training/gang.h"

namespace petlab::trainer {
namespace {

/// A trial's share of a step.
struct Share {
  TrainingTrial* trial;
  StepExamples drawn;
  std::int64_t parts = 1;  // passes over parts of the examples (gradient accumulation)
  std::int64_t terms = 0;  // in the mean loss
  Tensor mean = {};        // the mean loss, as far as it is computed

  const TokenisedSplit& examples() const { return trial->tasks()[drawn.task].train; }
  const Objective& objective() const { return trial->model().objective(drawn.task); }

  PackedBatch part(std::int64_t number) const {
    const auto size = static_cast<std::int64_t>(drawn.examples.size());
    std::vector<std::int64_t> numbers(drawn.examples.begin() + number * size / parts,
                                      drawn.examples.begin() + (number + 1) * size / parts);
    sort_by_length(examples(), numbers);
    return pack(examples(), numbers);
  }
};

Share share_of(TrainingTrial& trial) {
  Share share{&trial, trial.order().at(trial.state().step)};
  share.parts = std::min(static_cast<std::int64_t>(share.drawn.examples.size()),
                         trial.config().training.gradient_accumulation);
  share.terms = share.objective().loss_terms(share.examples(), share.drawn.examples);
  return share;
}

Dropout dropout_of(std::span<Share* const> shares) {
  const TrainingTrial& first = *shares.front()->trial;
  const Backbone& backbone = first.model().backbone();
  const double configured = first.config().training.dropout;
  const DropoutRates defaults = backbone.dropout_rates();
  Dropout dropout;
  dropout.hidden = configured < 0 ? defaults.hidden : configured;
  dropout.attention = configured < 0 ? defaults.attention : configured;
  dropout.step = static_cast<std::uint64_t>(first.state().step);
  for (const Share* share : shares) dropout.seeds.push_back(share->trial->config().seed.value);
  const at::Device device = backbone.placement().device;
  if (!device.is_cpu() && (dropout.hidden > 0 || dropout.attention > 0)) {
    const sweeps::BackboneShape shape = backbone.shape();
    dropout.round_keys =
        dropout_round_keys(dropout.seeds, shape.encoder_layers + shape.decoder_layers, device);
  }
  return dropout;
}

/// Runs the backbone on the trials' batches, and returns each trial's states.
std::vector<Tensor> states_of(std::span<Share* const> shares, std::span<const PackedBatch> batches,
                              const Dropout& dropout) {
  const Share& first = *shares.front();
  if (shares.size() == 1) {
    return {first.objective().states(first.trial->model().pass(&dropout), batches.front())};
  }
  std::vector<const Hooks*> modules;
  std::vector<std::int64_t> rows;
  for (std::size_t k = 0; k < shares.size(); ++k) {
    modules.push_back(&shares[k]->trial->model().module());
    rows.push_back(first.objective().state_rows(batches[k]));
  }
  const GangHooks hooks(std::move(modules));
  return split_rows(
      first.objective().states({first.trial->model().backbone(), hooks, &dropout}, joined(batches)),
      rows);
}

/// Adds the gradients of the trials' next parts, in one pass of the backbone.
void run_part(std::span<Share* const> shares, std::int64_t part, const Dropout& dropout) {
  std::vector<PackedBatch> batches;
  for (const Share* share : shares) batches.push_back(share->part(part));
  const std::vector<Tensor> states = states_of(shares, batches, dropout);
  Tensor total;
  for (std::size_t k = 0; k < shares.size(); ++k) {
    Share& share = *shares[k];
    const Dropout own =
        shares.size() == 1 ? dropout : dropout.of_trial(static_cast<std::int64_t>(k));
    const Tensor mean =
        share.objective().loss(share.trial->model().pass(&own), states[k], batches[k]) /
        share.terms;
    const Tensor added = mean.detach().to(at::kDouble);
    share.mean = share.mean.defined() ? share.mean + added : added;
    total = total.defined() ? total + mean : mean;
  }
  total.backward();
}

}  // namespace

Tensor take_step(std::span<TrainingTrial* const> trials) {
  std::vector<Share> all;
  std::vector<Share*> running;
  for (TrainingTrial* trial : trials) {
    all.push_back(share_of(*trial));
    trial->zero_gradients();
    trial->model().merge(all.back().drawn.task);
  }
  for (Share& share : all) running.push_back(&share);
  Dropout dropout = dropout_of(running);
  for (std::int64_t part = 0; !running.empty(); ++part) {
    run_part(running, part, dropout);
    const std::size_t before = running.size();
    std::erase_if(running, [part](const Share* share) { return share->parts == part + 1; });
    if (running.size() != before && !running.empty()) dropout = dropout_of(running);
  }
  std::vector<Tensor> means;
  for (Share& share : all) {
    means.push_back(share.mean);
    if (share.mean.device().is_cpu() && !std::isfinite(share.mean.item<double>())) continue;
    share.trial->model().gather(share.drawn.task);
    share.trial->move_parameters();
  }
  return at::stack(means);
}

}  // namespace petlab::trainer
