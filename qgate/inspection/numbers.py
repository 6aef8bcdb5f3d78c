"""Stored bytes in, numbers out; and what is counted over them. Pure.

Types are named as safetensors does. 8-bit floats are read through a table of their 256 values: E4M3 without infinities
(1 sign, 4 exponent, 3 mantissa bits, bias 7, NaN at all ones), E5M2 with (bias 15), both of OCP's 8-bit formats.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qgate.inspection.facts import Values

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
DIRECT: dict[str, type[np.generic]] = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32, "I16": np.int16,
    "I8": np.int8, "U8": np.uint8, "U16": np.uint16, "U32": np.uint32, "U64": np.uint64, "BOOL": np.bool_,
}  # fmt: skip
SMALLEST_NORMAL = {"F64": 2.0**-1022, "F32": 2.0**-126, "BF16": 2.0**-126, "F16": 2.0**-14}


def _table(exponent_bits: int, mantissa_bits: int, bias: int) -> Floats:
    """The 256 values of an 8-bit float, before its special ones are set."""
    codes = np.arange(256)
    sign = np.where(codes & 0x80, -1.0, 1.0)
    exponent = (codes >> mantissa_bits) & (2**exponent_bits - 1)
    mantissa = (codes & (2**mantissa_bits - 1)) / 2.0**mantissa_bits
    magnitude = np.where(exponent == 0, mantissa * 2.0 ** (1 - bias), (1 + mantissa) * 2.0 ** (exponent - bias))
    values: Floats = (sign * magnitude).astype(np.float32)
    return values


E4M3 = _table(4, 3, 7)
E4M3[[0x7F, 0xFF]] = np.nan
E5M2 = _table(5, 2, 15)
E5M2[[0x7C, 0xFC]] = np.inf, -np.inf
E5M2[[0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF]] = np.nan
TABLES = {"F8_E4M3": E4M3, "F8_E5M2": E5M2}


def decode(raw: Bytes, dtype: str, shape: tuple[int, ...]) -> NDArray[np.generic]:
    """The tensor as it is stored, without a copy where numpy has the type; else as float32. Raises ValueError."""
    if dtype in DIRECT:
        return raw.view(DIRECT[dtype]).reshape(shape)
    return floats(raw, dtype, shape)


def floats(raw: Bytes, dtype: str, shape: tuple[int, ...]) -> Floats:
    """The tensor as float32. Raises ValueError for types that are not known."""
    if dtype == "BF16":
        return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(shape)
    if dtype == "F16":
        return _halves(raw.view(np.int16)).reshape(shape)
    if dtype in TABLES:
        return TABLES[dtype].take(raw).reshape(shape)
    if dtype == "F8_E8M0":
        return np.exp2(raw.astype(np.float32) - 127).reshape(shape)
    if dtype not in DIRECT:
        raise ValueError(f"values of type {dtype} are not read")
    return raw.view(DIRECT[dtype]).reshape(shape).astype(np.float32)


def _halves(raw: NDArray[np.int16]) -> Floats:
    """float16 to float32 by moving bits and scaling by 2^112, five times as fast as numpy's own; exact.

    Infinities and NaN would come out as numbers from 65536 on, so arrays with any go numpy's way.
    """
    if raw.size and int((raw & 0x7FFF).max()) >= 0x7C00:
        return raw.view(np.float16).astype(np.float32)
    wide = raw.astype(np.int32)
    wide <<= 13
    wide &= np.int32(-0x70002000)
    values = wide.view(np.float32)
    values *= np.float32(2.0**112)
    return values


def count(raw: Bytes, dtype: str) -> Values:
    """What `Values` holds, over a whole tensor."""
    values = raw.view(np.float64) if dtype == "F64" else floats(raw, dtype, (-1,))
    finite = values[np.isfinite(values)]
    magnitude = np.abs(finite)
    return Values(
        num=values.size,
        num_nonfinite=values.size - finite.size,
        num_zero=int(np.count_nonzero(magnitude == 0)),
        num_negative=int(np.count_nonzero(finite < 0)),
        num_denormal=int(np.count_nonzero((magnitude > 0) & (magnitude < SMALLEST_NORMAL.get(dtype, 0.0)))),
        minimum=float(finite.min()) if finite.size else float("nan"),
        maximum=float(finite.max()) if finite.size else float("nan"),
    )


def count_packed(raw: Bytes, bits: int) -> dict[int, int]:
    """How many of each value there are in integers packed to 32 bits (4 or 8 bits each). Raises ValueError."""
    if bits not in {4, 8}:
        raise ValueError(f"integers of {bits} bits are not counted")
    bytewise = np.bincount(raw, minlength=256)
    if bits == 4:
        grid = bytewise.reshape(16, 16)
        bytewise = grid.sum(axis=0) + grid.sum(axis=1)
    return {value: int(num) for value, num in enumerate(bytewise) if num}
