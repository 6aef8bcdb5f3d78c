"""Run in a tool's environment: the baseline with one projection's weights all positive, as no symmetric grid fits them.

python positive_weights.py request.json result.json; request {baseline, output}
"""

import json
import shutil
import sys
from pathlib import Path

from safetensors.torch import load_file, save_file

request = json.loads(Path(sys.argv[1]).read_text())
output = Path(request["output"])
shutil.copytree(request["baseline"], output)
state = load_file(output / "model.safetensors")
name = "model.layers.0.mlp.up_proj.weight"
state[name] = state[name].abs()
save_file(state, output / "model.safetensors", metadata={"format": "pt"})
Path(sys.argv[2]).write_text(json.dumps({"changed": name}))
