"""The vLLM kernel for each kind of layer on each kind of device, and the ones before it that refuse, with why. Pure.

Read in vLLM 0.26 and 0.32 (model_executor/kernels/linear, `can_implement` of each, in the order of `_POSSIBLE_KERNELS`;
AllSpark is gone in 0.32). Kernels that come in packages of their own (Conch, Humming) are left out. A GPU's compute
capability is written 80, 90; None is a CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from qgate.inspection.scheme import Scheme

DEVICES: tuple[int | None, ...] = (75, 80, 89, 90, None)
MARLIN_GROUPS = frozenset({None, 32, 64, 128})
MACHETE_GROUPS = frozenset({None, 64, 128})
TRITON_GROUPS = frozenset({None, 32, 64, 128, 256})
AWQ_KERNEL = "AutoAWQLinearMethod"
SLOW = frozenset({"ExllamaLinearKernel", "TritonW4A16LinearKernel", AWQ_KERNEL})


@dataclass(frozen=True)
class Shape:
    """A layer as one device holds it, fused with its siblings."""

    rows: int
    columns: int
    full_columns: int
    scheme: Scheme
    is_half: bool
    """Whether activations are float16; else bfloat16."""

    @property
    def weight_type(self) -> str:
        """As vLLM's scalar types are named."""
        bits = self.scheme.bits
        return f"uint{bits}b{2 ** (bits - 1)}" if self.scheme.is_symmetric else f"uint{bits}"

    @property
    def is_split(self) -> bool:
        """Whether the inputs are shared out over devices."""
        return self.columns != self.full_columns


@dataclass(frozen=True)
class Choice:
    """What vLLM takes for a layer."""

    kernel: str | None
    refused: dict[str, str]
    is_padded: bool = False


def choose(shape: Shape, device: int | None) -> Choice | None:
    """vLLM's choice; None for schemes whose kernels are not known here."""
    scheme = shape.scheme
    if scheme.is_packed and not scheme.is_float and scheme.input_bits is None:
        return _weight_only(shape, device)
    if scheme.format in {"int-quantized", "naive-quantized"} and not scheme.is_float and scheme.input_bits == 8:
        return Choice("CPUInt8ScaledMMLinearKernel" if device is None else "CutlassInt8ScaledMMLinearKernel", {})
    if scheme.format == "int-quantized" and not scheme.is_float and scheme.input_bits is None:
        return Choice(None, {"CompressedTensorsConfig": "takes weights alone as pack-quantized only"})
    if scheme.is_float and scheme.bits == 8:
        return _fp8(scheme, device)
    return None


def _fp8(scheme: Scheme, device: int | None) -> Choice:
    if device is None:
        return Choice("CPUFp8BlockScaledMMKernel" if scheme.block else "CPUFP8W8A8ScaledMMLinearKernel", {})
    marlin = {} if scheme.input_bits is None else {"CutlassFP8ScaledMMLinearKernel": "needs compute capability 89"}
    if scheme.input_bits is None or device < 89:
        return Choice("MarlinFP8ScaledMMLinearKernel", marlin)
    if scheme.block is not None:
        needs = {"DeepGemmFp8BlockScaledMMKernel": "needs compute capability 90"} if device < 90 else {}
        return Choice("TritonFp8BlockScaledMMKernel" if needs else "DeepGemmFp8BlockScaledMMKernel", needs)
    return Choice("CutlassFP8ScaledMMLinearKernel", {})


def _weight_only(shape: Shape, device: int | None) -> Choice:
    scheme = shape.scheme
    if scheme.method == "gptq" and (not scheme.is_symmetric or scheme.bits not in {4, 8}):
        return Choice(None, {"AutoGPTQConfig": "takes 4 or 8 bits with sym true"})
    if scheme.method == "awq" and scheme.bits != 4:
        return Choice(None, {"AutoAWQConfig": "takes 4 bits"})
    if device is None:
        why = _cpu(shape)
        return Choice(None, {"CPUWNA16LinearKernel": why}) if why else Choice("CPUWNA16LinearKernel", {})
    if scheme.method in {"gptq", "awq"} and (why := _marlin_type(shape)) is not None:
        return _unoptimised(shape, why)
    refused: dict[str, str] = {}
    for name, (least, asks) in KERNELS.items():
        why = f"needs compute capability {least}" if device < least else asks(shape, device)
        if why is None:
            return Choice(name, refused, name == "MarlinLinearKernel" and is_padded(shape))
        refused[name] = why
    return Choice(None, refused)


def _unoptimised(shape: Shape, why: str) -> Choice:
    """GPTQ stops where Marlin does not know the type; AWQ has a Triton kernel of its own."""
    refused = {"MarlinLinearKernel": why}
    group = shape.scheme.group_size or shape.full_columns
    if shape.scheme.method == "gptq" or shape.columns % group or shape.rows % shape.scheme.pack_factor:
        return Choice(None, refused)
    return Choice(AWQ_KERNEL, refused)


def is_padded(shape: Shape) -> bool:
    """Whether Marlin pads the weights: its tiles are 64×128 or 128×64 [out, in]."""
    fits = (shape.rows % 64 == 0 and shape.columns % 128 == 0) or (shape.rows % 128 == 0 and shape.columns % 64 == 0)
    return not fits


def _machete(shape: Shape, device: int) -> str | None:
    if device != 90:
        return "needs compute capability 90 exactly"
    if shape.scheme.order == "group" and shape.is_split:
        return "takes no act-order where inputs are split"
    if shape.weight_type not in {"uint4b8", "uint8b128", "uint4", "uint8"}:
        return f"takes no {shape.weight_type}"
    if shape.scheme.group_size not in MACHETE_GROUPS:
        return f"takes no groups of {shape.scheme.group_size}"
    if shape.columns % 64 or shape.rows % 128:
        return f"needs inputs in 64s and outputs in 128s, not {shape.columns} and {shape.rows}"
    return None


def _allspark(shape: Shape, device: int) -> str | None:
    if device >= 90:
        return "is for compute capability 80 to 89"
    if shape.scheme.order == "group" or shape.weight_type != "uint8b128" or shape.scheme.group_size is not None:
        return "takes 8-bit symmetric weights with a scale per channel only"
    return "needs inputs and outputs in 16s" if shape.columns % 16 or shape.rows % 16 else None


def _marlin_type(shape: Shape) -> str | None:
    if shape.weight_type not in {"uint4b8", "uint8b128", "uint4"}:
        return f"takes no {shape.weight_type}"
    if shape.scheme.method == "awq" and shape.scheme.is_symmetric:
        return "takes no AWQ without zero points"
    if shape.scheme.group_size not in MARLIN_GROUPS:
        return f"takes no groups of {shape.scheme.group_size}"
    return None


def _marlin(shape: Shape, device: int) -> str | None:
    group = shape.scheme.group_size
    if (why := _marlin_type(shape)) is not None:
        return why
    if shape.scheme.order == "group" and (shape.rows % 64 or shape.columns % 128):
        return f"needs inputs in 128s and outputs in 64s for act-order, not {shape.columns} and {shape.rows}"
    if group is not None and group < shape.full_columns and shape.columns % group:
        return f"{shape.columns} inputs are no whole number of groups of {group}"
    return None


def _exllama(shape: Shape, device: int) -> str | None:
    group = shape.scheme.group_size
    if not shape.is_half:
        return "takes float16 activations only"
    if shape.weight_type not in {"uint4b8", "uint8b128"}:
        return f"takes no {shape.weight_type}"
    if shape.scheme.order == "group" and shape.is_split:
        return "takes no act-order where inputs are split"
    if group is None or shape.full_columns % group:
        return "needs groups that divide the inputs"
    return f"needs outputs in {shape.scheme.pack_factor}s" if shape.rows % shape.scheme.pack_factor else None


def _triton(shape: Shape, device: int) -> str | None:
    group = shape.scheme.group_size
    if shape.weight_type not in {"uint4b8", "uint4"}:
        return f"takes no {shape.weight_type}"
    if shape.scheme.order == "group":
        return "takes no act-order"
    if group not in TRITON_GROUPS and group != shape.full_columns:
        return f"takes no groups of {group}"
    if shape.rows % 8 or shape.columns % (group or shape.columns):
        return "needs outputs in 8s and whole groups"
    return None


def _cpu(shape: Shape) -> str | None:
    if shape.weight_type not in {"uint4b8", "uint4"}:
        return f"takes no {shape.weight_type}"
    if shape.scheme.order == "group":
        return "takes no act-order"
    if (shape.scheme.group_size or 2) % 2 or shape.columns % 32 or shape.rows % 32:
        return f"needs inputs and outputs in 32s, not {shape.columns} and {shape.rows}"
    return None


KERNELS: dict[str, tuple[int, Callable[[Shape, int], str | None]]] = {
    "MacheteLinearKernel": (90, _machete),
    "AllSparkLinearKernel": (80, _allspark),
    "MarlinLinearKernel": (75, _marlin),
    "ExllamaLinearKernel": (60, _exllama),
    "TritonW4A16LinearKernel": (0, _triton),
}
"""In vLLM's order: least compute capability, and what else it asks."""
