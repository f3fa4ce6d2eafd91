#pragma once

#include <cstdint>

namespace petlab::trainer {

// Inner loops over rows of activations on a CPU, without LibTorch. Each call is one thread's share.
// They are compiled for several instruction sets; the best is chosen at run time.

/// LayerNorm of the sums a + b of `rows` rows of `width`: output = normalised · weight + bias.
/// `normalised` and `inverse_deviation` (rows) are kept for backward; nullptr: not needed.
void add_norm_forward(std::int64_t rows, std::int64_t width, const float* a, const float* b,
                      const float* weight, const float* bias, float eps, float* output,
                      float* normalised, float* inverse_deviation);
/// The gradient of a, which equals that of b.
void add_norm_backward(std::int64_t rows, std::int64_t width, const float* output_gradient,
                       const float* weight, const float* normalised, const float* inverse_deviation,
                       float* gradient);

/// RMS norm of `rows` rows of `width`: output = x · inverse · weight with inverse = 1 /
/// sqrt(mean(x²) + eps). `inverse_root` (rows) is kept for backward; nullptr: not needed.
void rms_norm_forward(std::int64_t rows, std::int64_t width, const float* x, const float* weight,
                      float eps, float* output, float* inverse_root);
/// The gradient of x.
void rms_norm_backward(std::int64_t rows, std::int64_t width, const float* output_gradient,
                       const float* weight, const float* x, const float* inverse_root,
                       float* gradient);

/// What dropout is applied to: x, or x with negative numbers set to 0.
enum class Dropped : std::uint8_t { itself, positive };
/// output = x · multiplier, plus `residual` unless it is nullptr, for n numbers. `kept` receives 1
/// where the gradient passes, else 0; nullptr: not needed.
void drop_forward(Dropped dropped, std::int64_t n, const float* x, const float* multiplier,
                  const float* residual, float* output, std::uint8_t* kept);
/// gradient = output_gradient · scale where kept, else 0.
void drop_backward(std::int64_t n, const float* output_gradient, const std::uint8_t* kept,
                   float scale, float* gradient);

/// log Σ exp(x) of n numbers; NaN if one of them is NaN.
float log_sum_exp(std::int64_t n, const float* x);
/// Finds the k largest of n numbers (k <= n, no NaN), in descending order; of equal numbers, the
/// first comes first. values and places are (k).
void largest_of_row(std::int64_t n, std::int64_t k, const float* x, float* values,
                    std::int64_t* places);

/// Converts `rows` rows of `width` bfloat16 numbers to float and adds `bias` (width), or nullptr.
void widen_rows(std::int64_t rows, std::int64_t width, const std::uint16_t* x, const float* bias,
                float* output);

/// Adds n bfloat16 numbers to `output`.
void add_widened(std::int64_t n, const std::uint16_t* x, float* output);

/// gelu in its erf form and its derivative, for n numbers; the error is below 2e-7. `output` may be
/// x; `derivative` may be nullptr.
void gelu_forward(std::int64_t n, const float* x, float* output, float* derivative);

/// The same for `rows` rows of `width` bfloat16 numbers plus `bias` (width), rounded to bfloat16.
void gelu_short_forward(std::int64_t rows, std::int64_t width, const std::uint16_t* x,
                        const float* bias, std::uint16_t* output, std::uint16_t* derivative);
/// Multiplies n bfloat16 numbers in place by `factor`, rounded to bfloat16.
void multiply_short(std::int64_t n, const std::uint16_t* factor, std::uint16_t* x);

}  // namespace petlab::trainer
