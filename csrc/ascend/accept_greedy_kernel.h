// Greedy acceptance, everything the step commits, and what the offsets learn from it, in one launch.
#pragma once
#include "ascend/accept.h"

namespace dspark::ascend {

__aicore__ inline void accept_greedy(const AcceptParams& p) { Acceptance(p).run(); }

}  // namespace dspark::ascend
