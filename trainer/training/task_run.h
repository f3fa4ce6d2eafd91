#pragma once

#include "sweeps/task.h"
#include "trainer/data/batches.h"

namespace petlab::trainer {

/// One task of a trial with its tokenised data.
struct TaskRun {
  sweeps::TaskDeclaration declaration;
  TokenisedSplit train;
  TokenisedSplit validation;
  TokenisedSplit test;
};

}  // namespace petlab::trainer
