#include "tests/trainer/device/emulated_kernels.h"

#include <atomic>
#include <mutex>
#include <string>

#include "tests/trainer/device/emulated_gpu.h"
#include "tests/trainer/device/pretend_device.h"
#include "trainer/compute/kernels/arguments.h"

using std::exp;
using std::log;
using std::sqrt;

namespace drawing {
#include "trainer/compute/kernels/prelude.cu"
// These need the prelude above.
#include "trainer/compute/kernels/dropout.cu"
}  // namespace drawing

// The text of masks, rows and attention, for each type and head width in the tests.
#define NUMBER_FLOAT
namespace float_masks {
#include "trainer/compute/kernels/prelude.cu"
// It needs the prelude above.
#include "trainer/compute/kernels/masks.cu"
}  // namespace float_masks
namespace float_rows_1 {
#define SIZE 1
#include "tests/trainer/device/rows_text.inc"
}  // namespace float_rows_1
namespace float_rows_2 {
#define SIZE 2
#include "tests/trainer/device/rows_text.inc"
}  // namespace float_rows_2
namespace float_2 {
#define SIZE 2
#include "tests/trainer/device/attention_text.inc"
}  // namespace float_2
namespace float_6 {
#define SIZE 6
#include "tests/trainer/device/attention_text.inc"
}  // namespace float_6
namespace float_8 {
#define SIZE 8
#include "tests/trainer/device/attention_text.inc"
}  // namespace float_8
namespace float_40 {
#define SIZE 40
#include "tests/trainer/device/attention_text.inc"
}  // namespace float_40
#undef NUMBER_FLOAT
#define NUMBER_DOUBLE
namespace double_masks {
#include "trainer/compute/kernels/prelude.cu"
// It needs the prelude above.
#include "trainer/compute/kernels/masks.cu"
}  // namespace double_masks
namespace double_rows_1 {
#define SIZE 1
#include "tests/trainer/device/rows_text.inc"
}  // namespace double_rows_1
namespace double_rows_2 {
#define SIZE 2
#include "tests/trainer/device/rows_text.inc"
}  // namespace double_rows_2
namespace double_2 {
#define SIZE 2
#include "tests/trainer/device/attention_text.inc"
}  // namespace double_2
namespace double_6 {
#define SIZE 6
#include "tests/trainer/device/attention_text.inc"
}  // namespace double_6
namespace double_8 {
#define SIZE 8
#include "tests/trainer/device/attention_text.inc"
}  // namespace double_8
namespace double_40 {
#define SIZE 40
#include "tests/trainer/device/attention_text.inc"
}  // namespace double_40
#undef NUMBER_DOUBLE
#define NUMBER_BFLOAT16
namespace bfloat16_rows_1 {
#define SIZE 1
#include "tests/trainer/device/rows_text.inc"
}  // namespace bfloat16_rows_1
namespace bfloat16_rows_2 {
#define SIZE 2
#include "tests/trainer/device/rows_text.inc"
}  // namespace bfloat16_rows_2
namespace bfloat16_2 {
#define SIZE 2
#include "tests/trainer/device/attention_text.inc"
}  // namespace bfloat16_2
namespace bfloat16_6 {
#define SIZE 6
#include "tests/trainer/device/attention_text.inc"
}  // namespace bfloat16_6
namespace bfloat16_8 {
#define SIZE 8
#include "tests/trainer/device/attention_text.inc"
}  // namespace bfloat16_8
#undef NUMBER_BFLOAT16

namespace petlab::testing {
namespace {

using trainer::KernelForm;
using trainer::KernelGrid;

std::atomic<std::int64_t> launches{0};

/// Replaces an address of the pretend device by one that the host can read.
template <typename T>
void open(T*& place) {
  place = static_cast<T*>(opened(const_cast<std::remove_const_t<T>*>(place)));
}

DropoutArguments opened_arguments(DropoutArguments a) {
  open(a.round_keys), open(a.trial), open(a.example), open(a.position), open(a.kept);
  return a;
}
RowArguments opened_arguments(RowArguments a) {
  open(a.dropout.round_keys), open(a.dropout.trial), open(a.dropout.example);
  open(a.dropout.position), open(a.x), open(a.y), open(a.z), open(a.output), open(a.weight);
  open(a.bias);
  open(a.dropped), open(a.normalised), open(a.inverse), open(a.output_gradient);
  open(a.dropped_gradient), open(a.x_gradient), open(a.y_gradient);
  return a;
}
MaskArguments opened_arguments(MaskArguments a) {
  open(a.scores), open(a.masks);
  return a;
}
AttentionArguments opened_arguments(AttentionArguments a) {
  open(a.query), open(a.key), open(a.value), open(a.prefix_key), open(a.prefix_value);
  open(a.bias), open(a.query_starts), open(a.key_starts), open(a.trial), open(a.example);
  open(a.round_keys), open(a.output), open(a.log_sums), open(a.output_gradient), open(a.deltas);
  open(a.query_gradient), open(a.key_gradient), open(a.value_gradient);
  open(a.prefix_key_gradient), open(a.prefix_value_gradient);
  return a;
}

template <typename Arguments>
void run(void (*kernel)(Arguments), const KernelGrid& grid, const void* given) {
  static std::mutex one;
  const std::lock_guard lock(one);
  const Arguments arguments = opened_arguments(*static_cast<const Arguments*>(given));
  EmulatedBlock block(grid.threads);
  running_block = &block;
  block.size_.x = static_cast<unsigned>(grid.threads);
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        block.block_ = {x, y, z};
        block.run([&] { kernel(arguments); });
      }
    }
  }
  running_block = nullptr;
}

using Attention = void (*)(AttentionArguments);
using Rows = void (*)(RowArguments);

class EmulatedKernels : public trainer::DeviceKernels {
 public:
  void launch(std::string_view file, const char* kernel, const KernelForm& form,
              const KernelGrid& grid, const void* arguments) override {
    ++launches;
    if (file == "dropout") return run(&drawing::dropout_kept, grid, arguments);
    if (file == "masks") {
      return run(
          form.number == at::kDouble ? &double_masks::masks_selected : &float_masks::masks_selected,
          grid, arguments);
    }
    if (file == "rows") return run(rows(kernel, form), grid, arguments);
    run(attention(kernel, form), grid, arguments);
  }

 private:
  static Rows rows(const std::string& kernel, const KernelForm& form) {
    const auto of = [&](Rows dropped, Rows normed, Rows backward) {
      return kernel == "rows_dropped" ? dropped : kernel == "rows_normed" ? normed : backward;
    };
#define FORM(type, name, eights)                                                       \
  if (form.number == (type) && form.size == (eights)) {                                \
    return of(&name##_rows_##eights::rows_dropped, &name##_rows_##eights::rows_normed, \
              &name##_rows_##eights::rows_normed_backward);                            \
  }
    FORM(at::kFloat, float, 1)
    FORM(at::kFloat, float, 2)
    FORM(at::kDouble, double, 1)
    FORM(at::kDouble, double, 2)
    FORM(at::kBFloat16, bfloat16, 1)
    FORM(at::kBFloat16, bfloat16, 2)
#undef FORM
    throw std::logic_error("the emulated GPU has no kernel for rows of " +
                           std::to_string(form.size) + " times 256");
  }
  static Attention attention(const std::string& kernel, const KernelForm& form) {
    const auto of = [&](Attention forward, Attention to_query, Attention to_keys) {
      return kernel == "attention_forward"    ? forward
             : kernel == "attention_to_query" ? to_query
                                              : to_keys;
    };
#define FORM(type, name, width)                                                        \
  if (form.number == (type) && form.size == (width)) {                                 \
    return of(&name##_##width::attention_forward, &name##_##width::attention_to_query, \
              &name##_##width::attention_to_keys);                                     \
  }
    FORM(at::kFloat, float, 2)
    FORM(at::kFloat, float, 6)
    FORM(at::kFloat, float, 8)
    FORM(at::kFloat, float, 40)
    FORM(at::kDouble, double, 2)
    FORM(at::kDouble, double, 6)
    FORM(at::kDouble, double, 8)
    FORM(at::kDouble, double, 40)
    FORM(at::kBFloat16, bfloat16, 2)
    FORM(at::kBFloat16, bfloat16, 6)
    FORM(at::kBFloat16, bfloat16, 8)
#undef FORM
    throw std::logic_error("the emulated GPU has no kernel for heads of " +
                           std::to_string(form.size));
  }
};

}  // namespace

trainer::DeviceKernels& emulated_kernels() {
  static EmulatedKernels kernels;
  return kernels;
}

std::int64_t emulated_launches() { return launches; }

}  // namespace petlab::testing
