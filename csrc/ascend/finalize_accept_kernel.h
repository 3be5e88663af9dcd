// The same for a length that another acceptance rule gave.
#pragma once
#include "ascend/accept.h"

namespace dspark::ascend {

__aicore__ inline void finalize_accept(const AcceptParams& p) { Acceptance(p).run(); }

}  // namespace dspark::ascend
