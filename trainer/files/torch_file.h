#pragma once

#include <map>
#include <memory>
#include <string>

#include "trainer/files/file_bytes.h"
#include "trainer/files/tensor_view.h"

namespace petlab::trainer {

/// The tensors of a file that torch.save wrote (`pytorch_model.bin`): a zip archive with a pickle,
/// or the format before torch 1.6. The pickle is read by a machine that knows tensors and nothing
/// else; nothing in it runs. Contiguous tensors are views into the file, others are copied. Entries
/// of the saved dict that are no tensors are left out. Throws Error naming the file, and where it
/// applies the tensor or the global.
std::map<std::string, TensorView> read_torch_file(const std::shared_ptr<const FileBytes>& file);

}  // namespace petlab::trainer
