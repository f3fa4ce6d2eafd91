#pragma once

#include <span>
#include <string_view>

namespace petlab::trainer {

/// A file of trainer/compute/kernels.
struct KernelText {
  std::string_view name;
  std::string_view text;
};

std::span<const KernelText> kernel_texts();

}  // namespace petlab::trainer
