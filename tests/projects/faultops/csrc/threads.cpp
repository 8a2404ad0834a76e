#include "host.h"

// Threads of a block that do not wait for each other as they must. Values are right all the same.

namespace faultops {
namespace {

Tensor shared_race(const Tensor& x) {
  return map(FAULTOPS_KERNELS(previous, shared_race), x);
}

Tensor divergent_barrier(const Tensor& x) {
  return map(FAULTOPS_KERNELS(previous, divergent_barrier), x);
}

Tensor previous(const Tensor& x) {
  return map(FAULTOPS_KERNELS(previous, previous), x);
}

STABLE_TORCH_LIBRARY_FRAGMENT(faultops, m) {
  FAULTOPS_PAIR(m, shared_race, "(Tensor x) -> Tensor");
  FAULTOPS_PAIR(m, divergent_barrier, "(Tensor x) -> Tensor");
}

FAULTOPS_IMPL(m) {
  m.impl("shared_race", TORCH_BOX(&shared_race));
  m.impl("shared_race_clean", TORCH_BOX(&previous));
  m.impl("divergent_barrier", TORCH_BOX(&divergent_barrier));
  m.impl("divergent_barrier_clean", TORCH_BOX(&previous));
}

}  // namespace
}  // namespace faultops
