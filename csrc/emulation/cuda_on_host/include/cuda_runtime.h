// Stands in for the CUDA runtime header when device sources are compiled by a C++ compiler and run on a CPU.
// See ../README.md for what is modelled and what is not.
#pragma once
#include "cuda_on_host/atomics.h"
#include "cuda_on_host/intrinsics.h"
#include "cuda_on_host/language.h"
#include "cuda_on_host/launch.h"
#include "cuda_on_host/machine.h"
#include "cuda_on_host/warp.h"
