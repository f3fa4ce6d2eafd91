#include "trainer/training/gang.h"

#include <algorithm>
#include <array>
#include <utility>

#include "trainer/modules/module.h"

namespace petlab::trainer {
namespace {

/// The numbers of rows of a gang's trials at a place.
std::vector<std::int64_t> sizes_at(const HookPlace& at) {
  std::vector<std::int64_t> sizes;
  for (std::size_t k = 0; k + 1 < at.trial_rows.size(); ++k) {
    sizes.push_back(at.trial_rows[k + 1] - at.trial_rows[k]);
  }
  return sizes;
}

/// Joins what each trial's hook makes of its rows: act(k, place), whose place covers these alone.
template <typename Act>
Tensor join(const HookPlace& at, Act act) {
  const std::vector<std::int64_t> sizes = sizes_at(at);
  std::vector<Tensor> parts;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const std::array<std::int64_t, 2> rows{0, sizes[k]};
    parts.push_back(act(k, HookPlace{at.site, at.layer, rows}));
  }
  return at::cat(parts);
}

}  // namespace

std::optional<std::string> why_not_in_one_gang(const sweeps::TrialConfig& one,
                                               const sweeps::TrialConfig& other) {
  for (const sweeps::TrialConfig* const trial : {&one, &other}) {
    if (module_kind(trial->module.kind).trains_backbone) {
      return "module.kind is " + trial->module.kind + ", which shares no backbone";
    }
  }
  if (one.backbone != other.backbone) {
    return "backbone is " + one.backbone + " and " + other.backbone;
  }
  if (one.training.compute != other.training.compute) {
    return "training.compute is " + std::string(sweeps::to_string(one.training.compute)) + " and " +
           std::string(sweeps::to_string(other.training.compute));
  }
  if (one.training.dropout != other.training.dropout) {
    return "training.dropout is " + std::to_string(one.training.dropout) + " and " +
           std::to_string(other.training.dropout);
  }
  const auto prefix = [](const sweeps::TrialConfig& trial) {
    return module_kind(trial.module.kind).has_prefix ? trial.module.prefix_length : 0;
  };
  if (prefix(one) != prefix(other)) {
    return "the length of the prefix is " + std::to_string(prefix(one)) + " and " +
           std::to_string(prefix(other));
  }
  return std::nullopt;
}

bool GangHooks::acts_on(Site site) const {
  return std::any_of(trials_.begin(), trials_.end(),
                     [site](const Hooks* trial) { return trial->acts_on(site); });
}

bool GangHooks::acts_after_dropout(Site site) const {
  return std::any_of(trials_.begin(), trials_.end(),
                     [site](const Hooks* trial) { return trial->acts_after_dropout(site); });
}

Tensor GangHooks::before_dropout(const SubLayerOutput& at) const {
  const std::vector<Tensor> outputs = split_rows(at.output, sizes_at(at.place));
  return join(at.place, [&](std::size_t k, const HookPlace& place) {
    if (!trials_[k]->acts_on(place.site)) return outputs[k];
    return trials_[k]->before_dropout({place, outputs[k]});
  });
}

Tensor GangHooks::after_dropout(const SubLayerOutput& at) const {
  const std::vector<std::int64_t> sizes = sizes_at(at.place);
  const std::vector<Tensor> outputs = split_rows(at.output, sizes);
  const std::vector<Tensor> sums = split_rows(at.sum, sizes);
  return join(at.place, [&](std::size_t k, const HookPlace& place) {
    if (!trials_[k]->acts_after_dropout(place.site)) return at::zeros_like(outputs[k]);
    return trials_[k]->after_dropout({place, outputs[k], sums[k]});
  });
}

Tensor GangHooks::projected(const ProjectionOutput& at) const {
  const std::vector<std::int64_t> sizes = sizes_at(at.place);
  const std::vector<Tensor> inputs = split_rows(at.input, sizes);
  const std::vector<Tensor> outputs = split_rows(at.output, sizes);
  return join(at.place, [&](std::size_t k, const HookPlace& place) {
    if (!trials_[k]->acts_on(place.site)) return outputs[k];
    return trials_[k]->projected({place, inputs[k], outputs[k]});
  });
}

std::optional<Prefix> GangHooks::prefix(const HookPlace& at) const {
  std::vector<Tensor> keys, values;
  for (const Hooks* const trial : trials_) {
    std::optional<Prefix> own = trial->prefix(at);
    if (!own) return std::nullopt;
    keys.push_back(std::move(own->keys));
    values.push_back(std::move(own->values));
  }
  return Prefix{at::cat(keys), at::cat(values)};
}

std::vector<Tensor> split_rows(const Tensor& x, std::span<const std::int64_t> sizes) {
  return x.split_with_sizes(at::IntArrayRef(sizes.data(), sizes.size()), 0);
}

}  // namespace petlab::trainer
