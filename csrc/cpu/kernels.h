// Every CPU operator: one function each, defined in csrc/cpu/<stem>.cpp.
#pragma once
#include "common/params.h"

namespace dspark::cpu {

// planning

// layout

// compressor
void max_safe_verify_len(const MaxSafeVerifyLenParams& p);

// acceptance
void accept_greedy(const AcceptParams& p);
void finalize_accept(const AcceptParams& p);
void update_offset(const UpdateOffsetParams& p);

}  // namespace dspark::cpu
