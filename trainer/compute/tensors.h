#pragma once

#include <cstdint>

#include "trainer/compute/torch.h"
#include "trainer/files/tensor_view.h"

namespace petlab::trainer {

/// The tensor over the file's own memory (which it keeps alive), or a copy where the alignment asks
/// for one.
Tensor to_tensor(const TensorView& view);
/// Where such a tensor lies in a mapped file, its pages no longer count as this process's memory:
/// whoever reads them has them from the file again. Else nothing.
void release_pages(const Tensor& tensor);
/// The same where and as `options` say. Where that makes a copy, the file's pages that it was made
/// of are let go: a backbone of 16 bits that is widened takes no more memory than the wide one.
Tensor to_tensor(const TensorView& view, const at::TensorOptions& options);
/// A view of the tensor's values in their order, on the host, which it keeps alive.
TensorView to_view(const Tensor& tensor);

/// An empty tensor like `of` (rows, …), zero from row `rows` on: the caller writes the rows before.
Tensor with_zero_filling(const Tensor& of, std::int64_t rows);

/// Whether the inner loops of row_kernels.h know it.
bool is_float_on_cpu(const Tensor& x);

/// The bits of a contiguous bfloat16 tensor on the host, as row_kernels.h takes them.
const std::uint16_t* short_numbers(const Tensor& of);
std::uint16_t* mutable_short_numbers(Tensor& of);

/// The same values where `device` computes. The copy is made from page-locked memory and not waited
/// for: a step that did would run at the pace of the host.
Tensor on_device(const Tensor& of_host, at::Device device);

}  // namespace petlab::trainer
