#include "trainer/modules/module.h"

namespace petlab::trainer {
namespace {

/// Nothing but the task's head is trained.
class HeadOnly final : public Module {};

}  // namespace

std::unique_ptr<Module> make_head_only(const ModuleRequest&, const Backbone&) {
  return std::make_unique<HeadOnly>();
}

}  // namespace petlab::trainer
