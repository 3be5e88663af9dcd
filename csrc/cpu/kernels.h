// Every CPU operator: one function each, defined in csrc/cpu/<stem>.cpp.
#pragma once
#include "common/params.h"

namespace dspark::cpu {

// planning

// layout

// compressor
void max_safe_verify_len(const MaxSafeVerifyLenParams& p);

// acceptance

}  // namespace dspark::cpu
