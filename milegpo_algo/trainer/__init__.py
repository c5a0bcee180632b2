"""Multi-turn training on TRL's GRPOTrainer, one idea a file; `MultiTurnTrainer` is on top.

clock      the optimizer loop of transformers, used as a clock; what is logged
sampling   episodes of all processes
logprobs   log-probs of the sampling and of the reference policy
updates    mini-batches, their exact mean, TRL's loss
multi_turn an iteration from end to end; evaluation
"""

from milegpo_algo.trainer.multi_turn import MultiTurnTrainer, rows_of

__all__ = ["MultiTurnTrainer", "rows_of"]
