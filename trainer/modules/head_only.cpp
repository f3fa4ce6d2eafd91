#include "trainer/modules/module.h"

namespace petlab::trainer {
namespace {

/// Trains only the task's head.
class HeadOnly final : public Module {};

}  // namespace

std::unique_ptr<Module> make_head_only(const ModuleRequest&, const Backbone&) {
  return std::make_unique<HeadOnly>();
}

}  // namespace petlab::trainer
