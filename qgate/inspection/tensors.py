"""The tensors that each quantized layer must have: there, and of the right shape and type. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from qgate.inspection.codes import ERROR, WARNING, Code
from qgate.inspection.facts import Facts, Header
from qgate.inspection.layers import Layer, stored_modules
from qgate.inspection.packing import Expected, expected
from qgate.schemas.inspection import Finding

TENSOR_MISSING = Code(
    "tensor-missing",
    ERROR,
    breaks="the layer cannot be loaded, or starts from random weights",
    fix="quantize the model anew, or take the tensors from the run that made it",
)
TENSOR_UNEXPECTED = Code(
    "tensor-unexpected",
    WARNING,
    breaks="loaders drop it, or refuse the checkpoint",
    fix="remove it, if nothing needs it",
)
TENSOR_SHAPE = Code(
    "tensor-shape",
    ERROR,
    breaks="the tensor does not fit into its place in the model",
    fix="quantize the model anew, or take the tensors from the run that made it",
)
TENSOR_DTYPE = Code(
    "tensor-dtype",
    ERROR,
    breaks="kernels read its bytes as another type",
    fix="save it in the type that the format asks for",
)
PACKED_SHAPE = Code(
    "packed-shape",
    ERROR,
    breaks="packed weights are read at the wrong width",
    fix="quantize the model anew, or take the tensors from the run that made it",
)

CODES = (TENSOR_MISSING, TENSOR_UNEXPECTED, TENSOR_SHAPE, TENSOR_DTYPE, PACKED_SHAPE)
COMPANIONS = (
    "weight_scale", "weight_scale_inv", "weight_zero_point", "weight_shape", "weight_g_idx", "weight_global_scale",
    "scales", "qzeros", "g_idx",
)  # fmt: skip
"""Tensors that stand beside quantized weights and make no sense alone."""
OF_INPUTS = ("input_scale", "input_zero_point")
"""Beside weights whose inputs have a scale of their own, stored."""
OPTIONAL = frozenset({"weight_zero_point", "weight_global_scale"})
"""Stored by some versions where the scheme would not need them; loaders pass them by."""
Problem = tuple[Code, str]


def check(facts: Facts, layers: Iterable[Layer]) -> Iterator[Finding]:
    """One finding per kind and sort of tensor."""
    problems: dict[tuple[Code, str], list[tuple[str, str]]] = defaultdict(list)
    for layer in layers:
        for code, tensor, detail in _of_layer(facts, layer):
            problems[code, tensor].append((f"{layer.module}.{tensor}", detail))
    for module, tensor in _alone(facts):
        problems[TENSOR_MISSING, "weight"].append((f"{module}.*", f"{tensor} is there without the weights"))
    for (code, _), places in problems.items():
        yield code.at([place for place, _ in places], places[0][1])


def _of_layer(facts: Facts, layer: Layer) -> Iterator[tuple[Code, str, str]]:
    wanted = expected(layer)
    for each in wanted:
        if (stored := each.stored(layer.module, facts.headers)) is None:
            if each.is_required:
                yield TENSOR_MISSING, each.name, f"{layer.scheme.format} needs it, {list(each.shapes[0])}"
            continue
        if (problem := _problem(facts, layer, each, facts.headers[stored])) is not None:
            yield problem[0], each.name, problem[1]
    names = {name for each in wanted for name in each.names}
    for name in (*COMPANIONS, *OF_INPUTS):
        if wanted and name not in names | OPTIONAL and f"{layer.module}.{name}" in facts.headers:
            yield TENSOR_UNEXPECTED, name, f"{layer.scheme.format} as the config describes it has none"


def _problem(facts: Facts, layer: Layer, each: Expected, header: Header) -> Problem | None:
    if header.shape not in each.shapes:
        code = PACKED_SHAPE if each.is_packed else TENSOR_SHAPE
        return code, f"it is {list(header.shape)}, not {list(each.shapes[0])} ({_why(layer)})"
    if header.dtype not in each.dtypes:
        return TENSOR_DTYPE, f"it is {header.dtype}, not {' or '.join(sorted(each.dtypes))}"
    written = facts.integers.get(f"{layer.module}.{each.name}")
    if each.name == "weight_shape" and written is not None and written != (layer.rows, layer.columns):
        return PACKED_SHAPE, f"it says {list(written)}, and the packed weights are {layer.rows}×{layer.columns}"
    return None


def _why(layer: Layer) -> str:
    group = f", groups of {layer.scheme.group_size}" if layer.scheme.group_size else ""
    return f"{layer.rows}×{layer.columns} in {layer.scheme.bits} bits{group}"


def _alone(facts: Facts) -> Iterator[tuple[str, str]]:
    """Modules of which only scales and the like are stored, each once."""
    stored = stored_modules(facts.headers)
    seen = set()
    for name in facts.headers:
        module, _, tensor = name.rpartition(".")
        if tensor in COMPANIONS and module not in stored and module not in seen and not _has_weights(facts, module):
            seen.add(module)
            yield module, tensor


def _has_weights(facts: Facts, module: str) -> bool:
    """Embeddings and other modules that do not count as linear have weights too."""
    return any(f"{module}.{name}" in facts.headers for name in ("weight", "weight_packed", "qweight"))
