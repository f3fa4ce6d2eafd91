#include "tests/fuzz/orchestrator_inputs.h"
#include "tests/fuzz/tampered.h"
#include "tests/support/catch.h"

using namespace petlab;

TEST_CASE("Tampered output of Slurm is refused, or read without inventing jobs", "[orchestrator]") {
  const std::vector<std::string> pieces = {"|", "_", "[", "]", "-", "%", ",", ":", "\n", "=", "+"};
  for (const char* text :
       {"12_[4-6,9%2]|PENDING|(null)|Resources|INVALID|petlab-a\n12_3|RUNNING|n1|None|1-02:03:04|"
        "b\n",
        "JobId=12 JobState=CANCELLED ExitCode=0:15 RunTime=00:01:02\n",
        "12_3|FAILED|1:0\n12|COMPLETED|0:0\n", "MaxArraySize = 1001\nMaxJobCount=10\n", "12;c\n"}) {
    fuzz::try_tampered(text, 2000, pieces, fuzz::slurm_text);
  }
}
