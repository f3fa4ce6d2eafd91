#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "sweeps/trial_config.h"
#include "trainer/backbones/backbone.h"
#include "trainer/backbones/hooks.h"
#include "trainer/modules/masked_weight.h"

namespace petlab::trainer {

/// What a module is built from.
struct ModuleRequest {
  sweeps::ModuleConfig config;
  std::int64_t tasks = 1;            // more than 1: hybrid masks
  std::vector<std::uint64_t> seeds;  // (K) of its initialisation
  Placement placement = {};
};

/// What is trained in (or instead of) a frozen backbone, for K trials at once. A step is: merge,
/// forward passes with the module as hooks, backward, gather, then the optimizer on parameters().
class Module : public Hooks {
 public:
  /// The masked weights in a fixed order; empty where the module has none of its own.
  virtual std::vector<MaskedWeight*> weights() { return {}; }
  /// What an artifact holds of trial k: its weights(), unless the module says otherwise.
  virtual std::vector<StoredTensor> stored(std::int64_t trial);
  /// Makes the weights that the next forward passes use, for batches of `task`. With
  /// `frozen` the stored values and masks are taken as they are (a module read from an artifact).
  virtual void merge(std::int64_t task, bool frozen);
  void merge(std::int64_t task = 0) { merge(task, false); }
  /// Completes the gradients of parameters() after backward.
  virtual void gather();
  /// Everything that is trained, heads apart, in a fixed order.
  virtual std::vector<Parameter> parameters();
  /// Whether the trials compute with backbones of the module's own, in place of the frozen one.
  virtual bool has_backbones() const { return false; }
  /// The backbone that trial k computes with.
  virtual const Backbone& backbone(const Backbone& frozen, std::int64_t /*trial*/) const {
    return frozen;
  }
};

/// A row of the table of modules. The catalog (sweeps/catalog.h) has the same kinds.
struct ModuleKind {
  std::string_view kind;
  std::unique_ptr<Module> (*make)(const ModuleRequest& request, const Backbone& backbone);
};
std::span<const ModuleKind> module_kinds();

/// Makes the module that the configuration names, initialised from its seeds. Throws
/// std::invalid_argument for an unknown kind.
std::unique_ptr<Module> make_module(const ModuleRequest& request, const Backbone& backbone);

/// The carriers of one site, which one prototype can serve: all of one width.
struct CarrierRow {
  std::int64_t layers = 0;
  std::int64_t width_in = 0;
  std::int64_t width_out = 0;
};
/// Throws std::invalid_argument where the backbone has none, or some of other widths than others.
CarrierRow carrier_row(const ModuleRequest& request, const Backbone& backbone, Site site);

/// The plan of a masked weight of the module: its name and the shape of one layer's weight.
WeightPlan weight_plan(const ModuleRequest& request, std::string name, std::int64_t layers,
                       std::vector<std::int64_t> shape);
/// The same for a bias (size): never masked, never decayed.
WeightPlan bias_plan(const ModuleRequest& request, std::string name, std::int64_t layers,
                     std::int64_t size);

/// Splits x (rows, …) into the rows [trial_rows[k], trial_rows[k + 1]) of each trial k. They must
/// cover all rows.
std::vector<Tensor> split_trials(const Tensor& x, std::span<const std::int64_t> trial_rows);

/// x (rows, in) of each trial times its own weight (K, out, in), plus its bias (K, out) where there
/// is one.
Tensor trial_linear(const Tensor& x, const Tensor& weight, const Tensor& bias,
                    std::span<const std::int64_t> trial_rows);

/// Numbers of the weights' streams of initialisation: part of what a trial computes, append only.
enum class Init : std::uint64_t {
  adapter_down = 1,
  adapter_up = 2,
  lora_query_a = 3,
  lora_value_a = 4,
  prefix_embedding = 5,
  prefix_hidden = 6,
  prefix_output = 7,
  head_dense = 8,
  head_out = 9,
  lora_query_b = 10,
  lora_value_b = 11,
  prefix_p = 12,
  prefix_hidden_bias = 13,
  prefix_output_bias = 14,
  hyper_task_embedding = 15,
  // A stack's hypernetwork has those of its tensors that are random in their order: 10 of them.
  hyper_encoder = 16,
  hyper_decoder = 32,
};

/// Fills values[k] (whole, all layers) of each trial with N(0, std) or U(-bound, bound).
void init_normal(Tensor& values, std::span<const std::uint64_t> seeds, Init what, double std_dev);
void init_uniform(Tensor& values, std::span<const std::uint64_t> seeds, Init what, double bound);
/// Scores of learned masks from U(-bound, bound), and random masks, of each trial.
void init_masks(MaskedWeight& weight, std::span<const std::uint64_t> seeds, Init what,
                double bound);

std::unique_ptr<Module> make_adapter(const ModuleRequest& request, const Backbone& backbone);
std::unique_ptr<Module> make_lora(const ModuleRequest& request, const Backbone& backbone);
std::unique_ptr<Module> make_prefix(const ModuleRequest& request, const Backbone& backbone);
std::unique_ptr<Module> make_full_finetuning(const ModuleRequest& request,
                                             const Backbone& backbone);
std::unique_ptr<Module> make_head_only(const ModuleRequest& request, const Backbone& backbone);
std::unique_ptr<Module> make_hyperformer(const ModuleRequest& request, const Backbone& backbone);

}  // namespace petlab::trainer
