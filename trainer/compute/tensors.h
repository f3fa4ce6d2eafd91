#pragma once

#include "trainer/compute/torch.h"
#include "trainer/files/tensor_view.h"

namespace petlab::trainer {

/// The tensor over the file's own memory (which it keeps alive), or a copy where the alignment asks
/// for one.
Tensor to_tensor(const TensorView& view);
/// A view of a contiguous tensor on the CPU, which it keeps alive.
TensorView to_view(const Tensor& tensor);

}  // namespace petlab::trainer
