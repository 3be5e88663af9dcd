// The subset of AscendC that csrc/ascend uses, on a CPU, with the checks that a chip of dav-2201 would make the hard way.
// Written from the public documentation; README.md says what is modelled and what is not.
#pragma once
#include "ascendc_on_host/language.h"
#include "ascendc_on_host/tensors.h"
#include "ascendc_on_host/queues.h"
#include "ascendc_on_host/copies.h"
#include "ascendc_on_host/elementwise.h"
#include "ascendc_on_host/select.h"
#include "ascendc_on_host/sort.h"
