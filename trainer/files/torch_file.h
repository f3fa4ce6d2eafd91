#pragma once

#include <map>
#include <memory>
#include <string>

#include "trainer/files/file_bytes.h"
#include "trainer/files/tensor_view.h"

namespace petlab::trainer {

/// Reads the tensors of a file written by torch.save (`pytorch_model.bin`): a zip archive with a
/// pickle, or the format before torch 1.6. The pickle is read by a machine that only supports
/// tensors; no code in it runs. Contiguous tensors are views of the file, others are copied.
/// Entries of the saved dict that are not tensors are skipped. Throws Error, with the file and, if
/// applicable, the tensor or the global.
std::map<std::string, TensorView> read_torch_file(const std::shared_ptr<const FileBytes>& file);

}  // namespace petlab::trainer
