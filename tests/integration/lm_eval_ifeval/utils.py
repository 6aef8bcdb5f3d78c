"""IFEval's own scoring, for prompts that are not the hub's. Runs in lm-eval's environment."""

from lm_eval.tasks.ifeval.utils import agg_inst_level_acc, process_results

__all__ = ["agg_inst_level_acc", "process_results"]
