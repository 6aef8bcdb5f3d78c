"""Run in a tool's environment: how far a checkpoint's logits are from the baseline's, as a share of their norm.

python logits_check.py request.json result.json; request {workers, baseline, checkpoint}
"""

import json
import sys
from pathlib import Path

import torch

REQUEST = json.loads(Path(sys.argv[1]).read_text())
sys.path.insert(0, REQUEST["workers"])

import transformers_load  # noqa: E402

torch.set_grad_enabled(False)
ids = torch.arange(1, 65)[None] * 37 % 257
folders = (Path(REQUEST["checkpoint"]), Path(REQUEST["baseline"]))
mine, right = (transformers_load._load_model(folder, torch.float32)[0](ids).logits for folder in folders)
Path(sys.argv[2]).write_text(json.dumps({"departure": float((mine - right).norm() / right.norm())}))
