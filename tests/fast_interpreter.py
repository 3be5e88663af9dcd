"""Triton's interpreter, with reductions by a combine function done on whole blocks.

As it comes, it calls the function once per element, and `tl.sort` is made of such reductions: 4096 keys take seconds.
A combine function of a reduction is associative, so halving the axis with whole blocks gives the same result.
"""

from __future__ import annotations

import numpy as np
from triton.runtime import interpreter

stock_reduce = interpreter.ReduceOps.generic_reduce


def _generic_reduce(self, input):
    axis_given = self.axis
    tensors, axis = self.unravel(input, self.axis)
    dtypes = [t.dtype for t in tensors]
    data = [np.moveaxis(t.handle.data, axis, 0) for t in tensors]
    while data[0].shape[0] > 1:
        left = [self.to_tensor(d[0::2], t) for d, t in zip(data, dtypes, strict=True)]
        right = [self.to_tensor(d[1::2], t) for d, t in zip(data, dtypes, strict=True)]
        result = self.combine_fn.fn(*left, *right)
        result = result if isinstance(result, tuple) else (result,)
        data = [r.handle.data for r in result]
    out = []
    for d, t in zip(data, dtypes, strict=True):
        if self.keep_dims:
            d = np.moveaxis(d, 0, axis) if axis_given is not None else d.reshape((1,) * len(input[0].shape))
        else:
            d = d[0] if axis_given is not None else d.reshape(-1)[0]
        out.append(self.to_tensor(d, t))
    return out


def install() -> None:
    interpreter.ReduceOps.generic_reduce = _generic_reduce
