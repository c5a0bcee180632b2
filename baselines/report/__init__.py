"""Reports: one HTML page about runs, for a browser without a network.

sources    runs, comparisons and stored rollouts in folders
tables     finished runs side by side; what rollouts say about credit
charts     learning curves as SVG
layout     where the nodes of a rollout graph stand
replayed   actions played again, for observations and true distances
explorer   a task's graph with every number explained, as data
choice     which graphs a page takes, and what is left out
page       all of it as one HTML file: `templates/`, `static/`
"""
