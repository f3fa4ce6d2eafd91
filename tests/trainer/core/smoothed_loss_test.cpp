// The loss of an output projection, computed in chunks of rows.
#include "trainer/compute/smoothed_loss.h"

#include "tests/trainer/core/golden_tensors.h"

using namespace petlab;
using namespace petlab::trainer;

TEST_CASE("the chunked loss and its gradients equal those of all logits at once", "[trainer]") {
  const std::int64_t rows = 7, width = 5, words = 11;
  at::manual_seed(3);
  const Tensor targets = at::tensor({0, 3, 10, 3, 7, 1, 9}, at::kLong);
  const Tensor states = at::randn({rows, width}, at::kDouble);
  const Tensor weight = at::randn({words, width}, at::kDouble);
  const Tensor outer = at::randn({rows}, at::kDouble);
  for (const double smoothing : {0.0, 0.1}) {
    for (const bool trained : {false, true}) {
      for (const std::int64_t chunk : {1, 25, 44, 1000}) {
        INFO(smoothing << " trained " << trained << " chunk " << chunk);
        const auto leaf = [](const Tensor& of, bool wanted) {
          return of.clone().requires_grad_(wanted);
        };
        const Tensor own_states = leaf(states, true), own_weight = leaf(weight, trained);
        const Tensor all_states = leaf(states, true), all_weight = leaf(weight, trained);
        const Tensor found = projected_smoothed_losses(own_states, ProductWeight(own_weight, false),
                                                       targets, smoothing, chunk);
        const Tensor wanted =
            smoothed_losses(at::mm(all_states, all_weight.t()), targets, smoothing);
        CHECK((found - wanted).abs().max().item<double>() < 1e-12);
        (found * outer).sum().backward();
        (wanted * outer).sum().backward();
        CHECK((own_states.grad() - all_states.grad()).abs().max().item<double>() < 1e-12);
        if (!trained) continue;
        CHECK((own_weight.grad() - all_weight.grad()).abs().max().item<double>() < 1e-12);
      }
    }
  }
}
