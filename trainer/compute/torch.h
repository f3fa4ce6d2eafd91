#pragma once

// What the trainer needs of LibTorch, in one place and far less than torch/torch.h: tensors and
// autograd. Precompiled once for every target that links `trainer`.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/generated/variable_factories.h>
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/csrc/autograd/variable.h>

namespace petlab::trainer {
using at::Tensor;
}  // namespace petlab::trainer
