"""Run in AutoAWQ's environment: quantizes as the package stands, without qgate's mend of its fault on CPUs.

python autoawq_unmended.py request.json <folder of qgate's workers>
"""

import contextlib
import json
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, sys.argv[2])
    import autoawq_quantize

    autoawq_quantize.state_dict_not_aliased = contextlib.nullcontext
    autoawq_quantize.quantize(json.loads(Path(sys.argv[1]).read_text()))
