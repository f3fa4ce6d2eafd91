#pragma once

#include <cstdint>

#include "trainer/compute/torch.h"
#include "trainer/files/tensor_view.h"

namespace petlab::trainer {

/// A tensor on the file's memory, which it keeps alive, or a copy if the alignment requires one.
Tensor to_tensor(const TensorView& view);
/// If such a tensor is in a mapped file, releases its pages from this process's memory; later reads
/// load them from the file again. Otherwise does nothing.
void release_pages(const Tensor& tensor);
/// The same with the device and type of `options`. If that makes a copy, releases the file's pages:
/// widening a 16-bit backbone then takes no more memory than the wide one.
Tensor to_tensor(const TensorView& view, const at::TensorOptions& options);
/// A view of the tensor's values in order, in host memory, which the view keeps alive.
TensorView to_view(const Tensor& tensor);

/// Creates rows of `width`, as many as `of` has, with zeros from row `rows` on. The caller must
/// write the earlier rows.
Tensor with_zero_filling(const Tensor& of, std::int64_t width, std::int64_t rows);

/// Whether the inner loops of row_kernels.h can process it.
bool is_float_on_cpu(const Tensor& x);

/// The bits of a contiguous bfloat16 tensor on the host, as row_kernels.h expects them.
const std::uint16_t* short_numbers(const Tensor& of);
std::uint16_t* mutable_short_numbers(Tensor& of);

/// The same values on `device`. The copy uses page-locked memory and is not waited for, because
/// waiting would slow each step down to the pace of the host.
Tensor on_device(const Tensor& of_host, at::Device device);

}  // namespace petlab::trainer
