"""Run in a process of its own: load a folder with alfworld's unmodified `AlfredTWEnv` and play it.

Arguments: the data folder, the split ("train" or "eval_in_distribution"), "dqn" or "dagger", and
how many games to load.
Prints JSON: per game of the split its id, first text, admissible commands, and what the first
command answers; "dagger" adds the package's expert.
"""

import json
import os
import sys
from contextlib import redirect_stdout

with redirect_stdout(sys.stderr):
    from alfworld.agents.environment.alfred_tw_env import AlfredTWEnv

    data, which, method, count = sys.argv[1:]
    os.environ["ALFWORLD_DATA"] = data
    base = "$ALFWORLD_DATA/json_2.1.1"
    config = {
        "dataset": {
            "data_path": f"{base}/train",
            "eval_id_data_path": f"{base}/valid_seen",
            "eval_ood_data_path": f"{base}/valid_unseen",
            "num_train_games": int(count),
            "num_eval_games": int(count),
        },
        "logic": {
            "domain": "$ALFWORLD_DATA/logic/alfred.pddl",
            "grammar": "$ALFWORLD_DATA/logic/alfred.twl2",
        },
        "env": {
            "goal_desc_human_anns_prob": 0,
            "task_types": [1, 2, 3, 4, 5, 6],
            "domain_randomization": False,
            "expert_type": "handcoded",
        },
        "general": {"training_method": method},
        "rl": {"training": {"max_nb_steps_per_episode": 50}},
        "dagger": {"training": {"max_nb_steps_per_episode": 50}},
    }
    loaded = AlfredTWEnv(config, train_eval=which)
    loaded.get_game_logic()
    env = loaded.init_env(batch_size=1)
    played = []
    for _ in range(loaded.num_games):
        texts, infos = env.reset()
        admissible = sorted(infos["admissible_commands"][0])
        expert = infos.get("extra.expert_plan", [[None]])[0][0]
        answers, _, dones, _ = env.step([admissible[0]])
        game = infos["extra.gamefile"][0]
        where = os.path.join(os.path.expandvars(base), "x", "..")
        played.append(
            {
                "id": os.path.relpath(os.path.dirname(game), where).split("/", 1)[1],
                "first": texts[0],
                "admissible": admissible,
                "answer": answers[0],
                "done": bool(dones[0]),
                "expert": expert,
            }
        )
    env.close()
print(json.dumps(played))
