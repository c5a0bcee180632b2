"""Multi-turn training on TRL's GRPOTrainer, one idea a file; `MultiTurnTrainer` is on top.

clock       the optimizer loop of transformers, used as a clock; what is logged
sampling    episodes of all processes
logprobs    log-probs of the sampling and of the reference policy
values      the critic, where an estimator needs one
updates     mini-batches, their exact mean, TRL's loss
credit      rows from episodes
resume      what a checkpoint holds beside transformers' own; stopping by signal
stopping    when a run ends before its time; saving and loading
multi_turn  an iteration from end to end; evaluation
"""

from milegpo_algo.trainer.credit import rows_of
from milegpo_algo.trainer.multi_turn import MultiTurnTrainer
from milegpo_algo.trainer.updates import Diverged

__all__ = ["Diverged", "MultiTurnTrainer", "rows_of"]
