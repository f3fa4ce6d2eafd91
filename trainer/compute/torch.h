#pragma once

// The parts of LibTorch that the trainer uses, tensors and autograd: far less than torch/torch.h.
// Precompiled once for all targets that link `trainer`.
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
