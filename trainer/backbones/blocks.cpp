#include "trainer/backbones/blocks.h"

#include <stdexcept>
#include <utility>

#include "trainer/compute/operations.h"

namespace petlab::trainer {

Linear::Linear(Tensor weight, Tensor bias, const Placement& placement)
    : weight_(std::move(weight), placement.short_products), bias_(std::move(bias)) {}

Tensor Linear::operator()(const Tensor& x) const { return apply_linear(x, weight_, bias_); }

Tensor activate(const Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return apply_gelu(x);
    case Activation::gelu_tanh:
      return at::gelu(x, "tanh");
    case Activation::relu:
      return at::relu(x);
  }
  throw std::logic_error("an activation without a function");
}

Tensor Pass::drop(const Tensor& x, Purpose purpose, std::int64_t layer,
                  const PackedRows& rows) const {
  return drops() ? trainer::drop(x, place(purpose, layer, rows)) : x;
}

bool Pass::drops() const { return dropout != nullptr && dropout->hidden > 0; }

DropoutPlace Pass::place(Purpose purpose, std::int64_t layer, const PackedRows& rows) const {
  return {*dropout, dropout->hidden, purpose, layer, rows.keys, rows.draws.get()};
}

Tensor Pass::changed_projection(Site site, std::int64_t layer, const Tensor& x,
                                const Tensor& projected, const PackedRows& rows) const {
  if (!hooks.acts_on(site)) return projected;
  return hooks.projected({{site, layer, rows.trial_rows}, x, projected});
}

Tensor join_weights(Backbone::Weights& weights, const std::vector<std::string>& names) {
  std::vector<Tensor> parts;
  for (const std::string& name : names) {
    parts.push_back(weights.at(name));
    if (parts.back().device().is_cpu() || parts.back().requires_grad()) return {};
  }
  const Tensor joined = at::cat(parts);
  const std::vector<Tensor> replaced = joined.split(parts.front().size(0));
  for (std::size_t i = 0; i < names.size(); ++i) weights.at(names[i]) = replaced[i];
  return joined;
}

Tensor AttentionBlock::operator()(const Pass& pass, const AttentionInput& in) const {
  const std::int64_t layer = in.shape.layer;
  std::optional<Prefix> prefix;
  if (pass.hooks.acts_on(in.sites.prefix)) {
    prefix = pass.hooks.prefix({in.sites.prefix, layer, in.key_rows.trial_rows});
  }
  // Keep this order: backward sums the gradients of the input in the same order.
  Tensor q, k, v;
  if (joined && in.queries.is_same(in.keys)) {
    const Tensor projections = (*joined)(in.keys);
    if (!pass.hooks.acts_on(in.sites.query) && !pass.hooks.acts_on(in.sites.value) &&
        in.key_rotary == nullptr) {
      return output(attention(projections, prefix, in.shape, pass.dropout));
    }
    const std::vector<Tensor> parts = projections.chunk(3, 1);
    q = parts[0];
    k = parts[1];
    v = parts[2];
  } else if (!key.layer().weight.is_short()) {
    q = query(in.queries);
    v = value(in.keys);
  } else if (in.queries.is_same(in.keys)) {
    const auto projections = apply_linears(in.keys, {query.layer(), value.layer(), key.layer()});
    q = projections[0];
    v = projections[1];
    k = projections[2];
  } else {
    q = query(in.queries);
    const auto projections = apply_linears(in.keys, {value.layer(), key.layer()});
    v = projections[0];
    k = projections[1];
  }
  q = pass.changed_projection(in.sites.query, layer, in.queries, q, in.query_rows);
  v = pass.changed_projection(in.sites.value, layer, in.keys, v, in.key_rows);
  if (!k.defined()) k = key(in.keys);
  if (in.query_rotary != nullptr) q = rotate(q, *in.query_rotary);
  if (in.key_rotary != nullptr) k = rotate(k, *in.key_rotary);
  return output(attention(q, k, v, prefix, in.shape, pass.dropout));
}

Tensor FeedForwardBlock::operator()(const Pass& pass, std::int64_t layer, const Tensor& x,
                                    const PackedRows& rows) const {
  if (activation == Activation::gelu && !gate && !inner_dropout) {
    return apply_gelu_between(x, inner.layer(), output.layer());
  }
  const Tensor projected = inner(x);
  constexpr Purpose purpose = Purpose::feed_forward_inner_dropout;
  if (inner_dropout && pass.drops() && !gate && activation == Activation::relu) {
    return output(drop_positive(projected, pass.place(purpose, layer, rows)));
  }
  Tensor activated = activate(projected, activation);
  if (gate) activated = activated * (*gate)(x);
  if (inner_dropout) activated = pass.drop(activated, purpose, layer, rows);
  return output(activated);
}

Tensor close_sub_layer(const Pass& pass, const SubLayerEnd& end, const Tensor& sub_layer_output,
                       const Tensor& residual, const PackedRows& rows) {
  const HookPlace place{end.site, end.layer, rows.trial_rows};
  // Trials of one gang may act before the dropout and after it.
  const bool acts = pass.hooks.acts_on(end.site);
  const Tensor output =
      acts ? pass.hooks.before_dropout({place, sub_layer_output}) : sub_layer_output;
  std::optional<DropoutPlace> dropped;
  if (pass.drops()) dropped.emplace(pass.place(end.dropout, end.layer, rows));
  const auto drop_hidden = [&](const Tensor& x) { return dropped ? drop(x, *dropped) : x; };
  if (pass.hooks.acts_after_dropout(end.site)) {
    if (end.norm == nullptr) {
      const Tensor dropped_output = drop_hidden(output);
      const Tensor change =
          pass.hooks.after_dropout({place, dropped_output, dropped_output + residual});
      return residual + (change + dropped_output);
    }
    const DroppedAndNormed both =
        dropped_and_normed(output, residual, *end.norm, dropped ? &*dropped : nullptr);
    const Tensor change = pass.hooks.after_dropout({place, both.dropped, both.normed});
    return add_norm(change, both.dropped, residual, *end.norm);
  }
  if (dropped && !acts) {
    return end.norm == nullptr ? add_dropped(output, residual, *dropped)
                               : add_dropped_norm(output, residual, *end.norm, *dropped);
  }
  const Tensor added = drop_hidden(output);
  return end.norm == nullptr ? residual + added : add_norm(added, residual, *end.norm);
}

}  // namespace petlab::trainer
