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
  std::string variant;  // several are joined by ", "; may be empty
  std::int64_t attempt = 1;
  std::string host;
  std::string device;
  std::int64_t step = 0;
  std::int64_t of = 0;  // 0: not reported yet
  std::optional<double> loss;
  std::optional<double> begun_at;     // seconds since 1970
  std::optional<double> reported_at;  // time of its last progress report
  std::vector<results::LossPoint> curve;
};

/// The current state, shown by live pages.
struct Now {
  std::vector<RunningTrial> running;
  std::size_t others = 0;  // running trials beyond `running`
  std::string problem;     // why the page is out of date; empty: it is current
};

/// The running trials, most recently started last, at most `most`. Throws results::Error.
Now running_now(const results::Reader& reader, const results::LossReader& losses,
                const results::IsAlive& alive, std::size_t most = 24);

/// An HTML fragment: each trial with its progress and loss curve. `time` is the current time in
/// seconds since 1970.
std::string to_html(const Now& now, double time);

}  // namespace petlab::reports
