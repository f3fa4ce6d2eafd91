#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "sweeps/task.h"
#include "trainer/data/batches.h"

namespace petlab::trainer {

/// A task of a trial, with its tokenised data.
struct TaskRun {
  sweeps::TaskDeclaration declaration;
  TokenisedSplit train;
  TokenisedSplit validation;
  TokenisedSplit test;
};

/// Immutable tasks that several owners may share.
class SharedTasks {
 public:
  SharedTasks(std::vector<TaskRun> tasks)  // NOLINT(google-explicit-constructor)
      : all_(std::make_shared<const std::vector<TaskRun>>(std::move(tasks))) {}
  SharedTasks(
      std::shared_ptr<const std::vector<TaskRun>> all)  // NOLINT(google-explicit-constructor)
      : all_(std::move(all)) {}
  const std::vector<TaskRun>& operator*() const { return *all_; }
  const std::vector<TaskRun>* operator->() const { return all_.get(); }

 private:
  std::shared_ptr<const std::vector<TaskRun>> all_;
};

}  // namespace petlab::trainer
