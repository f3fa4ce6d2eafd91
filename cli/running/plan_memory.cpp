#include "cli/running/plan_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <utility>

#include "cli/output/row_printers.h"

namespace petlab::cli {
namespace {

using sweeps::MemoryDevice;
using sweeps::MemoryEstimate;
using sweeps::to_mib;

/// A part of the total: a column of the table and a key of the JSON object.
struct Part {
  const char* name;
  std::int64_t MemoryEstimate::*bytes;
};
constexpr Part kParts[] = {{"weights", &MemoryEstimate::weights},
                           {"optimizer", &MemoryEstimate::optimizer},
                           {"activations", &MemoryEstimate::activations},
                           {"workspace", &MemoryEstimate::workspace},
                           {"program", &MemoryEstimate::program}};

/// The trials of one row of the table.
struct Same {
  std::string variants;
  std::string kind;
  MemoryEstimate estimate;
  auto operator<=>(const Same&) const = default;
};

std::string tokens_text(const MemoryEstimate& estimate) {
  if (estimate.target_tokens == 0) return fmt::format("{}", estimate.tokens);
  return fmt::format("{} + {}", estimate.tokens, estimate.target_tokens);
}

}  // namespace

std::vector<MemoryEstimate> estimate_all(const sweeps::Sweep& sweep, MemoryDevice device) {
  std::vector<MemoryEstimate> estimates;
  estimates.reserve(sweep.trials.size());
  for (const sweeps::SweepTrial& trial : sweep.trials) {
    estimates.push_back(sweeps::estimate_memory(sweep, trial.config, device));
  }
  return estimates;
}

void print_memory(std::ostream& out, const sweeps::Sweep& sweep,
                  const std::vector<MemoryEstimate>& estimates, MemoryDevice device) {
  std::map<Same, std::size_t> known;
  std::vector<std::pair<Same, std::int64_t>> rows;
  for (std::size_t at = 0; at < estimates.size(); ++at) {
    const sweeps::SweepTrial& trial = sweep.trials[at];
    Same same{fmt::format("{}", fmt::join(trial.variants, ", ")), trial.config.module.kind,
              estimates[at]};
    const auto [row, is_new] = known.emplace(same, rows.size());
    if (is_new) rows.emplace_back(std::move(same), 0);
    ++rows[row->second].second;
  }
  out << fmt::format(
      "memory of petlab-trainer on a {} by formula, in MiB, if every text has data.max_tokens "
      "tokens:\n",
      device == MemoryDevice::cpu ? "CPU" : "GPU");
  const std::unique_ptr<RowPrinter> table = terminal_table_printer(out, 3);
  std::vector<std::string> names{"trials", "variant", "kind", "tokens", "peak"};
  for (const Part& part : kParts) names.emplace_back(part.name);
  names.emplace_back("total");
  table->columns(names);
  for (const auto& [same, trials] : rows) {
    std::vector<results::Value> values{trials, same.variants, same.kind, tokens_text(same.estimate),
                                       std::string(to_string(same.estimate.peak))};
    for (const Part& part : kParts) values.emplace_back(to_mib(same.estimate.*part.bytes));
    values.emplace_back(to_mib(same.estimate.total()));
    table->row(values);
  }
  table->end();
}

nlohmann::ordered_json memory_json(const MemoryEstimate& estimate, MemoryDevice device) {
  nlohmann::ordered_json result = {{"device", device == MemoryDevice::cpu ? "cpu" : "gpu"},
                                   {"peak", std::string(to_string(estimate.peak))},
                                   {"tokens", estimate.tokens}};
  if (estimate.target_tokens > 0) result["target_tokens"] = estimate.target_tokens;
  for (const Part& part : kParts) {
    result[fmt::format("{}_mib", part.name)] = to_mib(estimate.*part.bytes);
  }
  result["mapped_mib"] = to_mib(estimate.mapped);
  // What a gang needs (docs/reference/memory.md).
  result["backbone_mib"] = to_mib(estimate.backbone);
  result["at_step_mib"] = to_mib(estimate.at_step);
  result["at_update_mib"] = to_mib(estimate.at_update);
  result["at_evaluation_mib"] = to_mib(estimate.at_evaluation);
  result["total_mib"] = to_mib(estimate.total());
  return result;
}

}  // namespace petlab::cli
