#include "tests/fuzz/orchestrator_inputs.h"

#include <stdexcept>
#include <string>

#include "orchestrator/host/error.h"
#include "orchestrator/slurm/text.h"

namespace petlab::fuzz {
namespace {

using namespace petlab::orchestrator;

void require(bool holds, const char* property) {
  if (!holds) throw std::logic_error(std::string("a property does not hold: ") + property);
}

template <typename Read>
void accept_refusal(const Read& read) {
  try {
    read();
  } catch (const Error&) {
  }
}

}  // namespace

void slurm_text(std::string_view input) {
  accept_refusal([&] {
    for (const JobRow& row : parse_squeue(input)) {
      require(!row.job.empty() && row.job.find_first_not_of("0123456789_") == std::string::npos,
              "a row has the number of a job");
      job_phase(row.state);
    }
  });
  accept_refusal([&] {
    const std::string job = parse_submission(input);
    require(!job.empty() && job.find_first_not_of("0123456789") == std::string::npos,
            "a submission has a number");
  });
  accept_refusal([&] { parse_config(input); });
  for (const std::optional<JobRecord>& record :
       {parse_show_job(input), parse_sacct(input, "12_3"), parse_sacct(input, "12")}) {
    if (record) worker_end("12", *record);
  }
  refusal_from(input);
  is_unknown_job(input);
  if (const auto time = parse_time(input)) require(time->count() >= 0, "no time is negative");
  is_slurm_time(input);
}

}  // namespace petlab::fuzz
