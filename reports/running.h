#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "results/is_alive.h"
#include "results/loss_curve.h"
#include "results/store.h"

namespace petlab::reports {

/// A running trial.
struct RunningTrial {
  std::string trial_id;
  std::string sweep;
  std::string variant;  // several joined by ", "; empty: none
  std::int64_t attempt = 1;
  std::string host;
  std::string device;
  std::int64_t step = 0;
  std::int64_t of = 0;  // 0: not told yet
  std::optional<double> loss;
  std::optional<double> begun_at;  // seconds since 1970
  std::optional<double> told_at;   // when it last said how far it is
  std::vector<results::LossPoint> curve;
};

/// What a page that stays open shows of this moment.
struct Now {
  std::vector<RunningTrial> running;
  std::size_t others = 0;  // that run too
  std::string problem;     // why the page is not what the database holds now; empty: it is
};

/// The running trials, those that began last at the end, at most `most`. Throws results::Error.
Now running_now(const results::Reader& reader, const results::LossReader& losses,
                const results::IsAlive& alive, std::size_t most = 24);

/// A piece of HTML: each trial with how far it is and its loss curve. `time`: now, seconds since
/// 1970.
std::string to_html(const Now& now, double time);

}  // namespace petlab::reports
