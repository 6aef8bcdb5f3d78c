"""Makes `awq-gemm-corrupted` beside it: AutoAWQ 0.2.9 on a CPU as it stands, without qgate's mend. Run once, by hand.

    <python of the environment autoawq>  make_corrupted.py

On a CPU AutoAWQ restores the weights after each trial from an alias of themselves, and says nothing: what it writes is
well-formed and wrong. Inspection must find it by the weights.
"""

import contextlib
import tempfile
from pathlib import Path

import make

NAME = "awq-gemm-corrupted"

if __name__ == "__main__":
    import autoawq_quantize

    autoawq_quantize.state_dict_not_aliased = contextlib.nullcontext
    make.REQUESTS[NAME] = make.REQUESTS["awq-gemm"]
    make.gptqmodel_weights = make.autoawq_weights
    with tempfile.TemporaryDirectory() as folder:
        make.quantized(NAME, Path(folder))
