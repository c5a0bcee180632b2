"use strict";
/* The drawn graph: elements and colours from a task's data. Knows nothing of the panel. */
const Graph = (() => {
  const MOST = 1000, ROW = 76, COLUMN = 130, BETWEEN = 1.8; /* states drawn at first; the last three as in layout.py */
  const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

  function colour(name) { /* a colour of the page as #rrggbb, whatever the theme */
    const mark = document.createElement("span");
    mark.style.color = `var(--${name})`;
    document.body.append(mark);
    probe.fillStyle = getComputedStyle(mark).color;
    mark.remove();
    return probe.fillStyle;
  }

  function mix(a, b, share) {
    const part = (text, at) => parseInt(text.slice(at, at + 2), 16);
    const join = (at) => Math.round(part(a, at) + (part(b, at) - part(a, at)) * share).toString(16).padStart(2, "0");
    return `#${join(1)}${join(3)}${join(5)}`;
  }

  function style(c) {
    return [
      { selector: "node", style: {
        "background-color": "data(fill)", "border-width": 1, "border-color": c.quiet, width: "data(size)", height: "data(size)",
        label: "data(label)", color: c.ink, "font-size": 15, "min-zoomed-font-size": 6, "text-valign": "bottom", "text-margin-y": 3,
        "text-outline-color": c.raised, "text-outline-width": 2 } },
      { selector: "node.start", style: { "border-width": 4, "border-color": c.accent } },
      { selector: "node.lost", style: { "border-width": 3, "border-style": "dashed", "border-color": c.negative } },
      { selector: "node.milestone", style: { shape: "star", "background-color": c.milestone } },
      { selector: "node.trap", style: { shape: "triangle", "background-color": c.trap } },
      { selector: "node.goal", style: { shape: "round-rectangle", "background-color": c.goal } },
      { selector: "node.rare", style: { display: "none" } },
      { selector: "node.heading", style: {
        shape: "rectangle", "background-opacity": 0, "border-width": 0, width: 1, height: 1, color: c.quiet, "font-size": 16,
        "min-zoomed-font-size": 5, "text-valign": "center", events: "no" } },
      { selector: "edge", style: {
        width: "data(width)", "line-color": "data(stroke)", "target-arrow-color": "data(stroke)", "target-arrow-shape": "triangle",
        "arrow-scale": 0.9, "curve-style": "bezier", "control-point-step-size": 28, "loop-direction": "-90deg", "loop-sweep": "50deg" } },
      { selector: "node:selected", style: { "overlay-color": c.accent, "overlay-opacity": 0.3, "overlay-padding": 6 } },
      { selector: "edge:selected", style: { "overlay-color": c.accent, "overlay-opacity": 0.3, "overlay-padding": 4 } },
      { selector: ".dim", style: { opacity: 0.15 } },
    ];
  }

  const NAMES = ["ink", "quiet", "raised", "accent", "negative", "positive", "neutral", "node", "node-strong", "milestone", "trap", "goal"];

  function palette() { return Object.fromEntries(NAMES.map((name) => [name, colour(name)])); }

  function rare(data) { /* places of the least visited states of a large graph; never a start nor success */
    const { nodes, starts, marks } = data, marked = (v) => marks[""].nodes[v].trap || marks[""].nodes[v].milestone_weight > 0;
    const order = nodes.map((_, v) => v).filter((v) => !nodes[v].goal && !starts.includes(v));
    order.sort((v, w) => nodes[w].visits - nodes[v].visits || marked(w) - marked(v) || v - w);
    return new Set(order.slice(MOST));
  }

  function places(data, hidden) { /* of nodes and headings; columns close up where states are hidden */
    const nodes = data.nodes.map(({ x, y }) => ({ x, y })), headings = data.headings.map(([, x, y]) => ({ x, y }));
    if (!hidden.size) return { nodes, headings };
    const shown = (column) => column.filter((v) => !hidden.has(v)).length;
    let top = 0;
    for (const lost of [false, true]) {
      const band = data.nodes.map((_, v) => v).filter((v) => (data.nodes[v].distance === "inf") === lost).sort((v, w) => data.nodes[v].y - data.nodes[w].y);
      if (!band.length) continue;
      const columns = [...new Set(band.map((v) => data.nodes[v].x))].map((x) => band.filter((v) => data.nodes[v].x === x));
      const tallest = Math.max(...columns.map(shown));
      const own = data.headings.map((_, h) => h).filter((h) => lost === data.headings[h][0].startsWith("no path"));
      for (const h of own) headings[h].y = top;
      for (const column of columns) {
        let rank = (tallest - shown(column)) / 2 + 0.25 * ((nodes[column[0]].x / COLUMN) % 2);
        for (const v of column) {
          rank += hidden.has(v) ? 0 : 1;
          nodes[v].y = top + ROW * (hidden.has(v) ? rank + 0.5 : rank);
        }
      }
      top += ROW * (tallest + 0.5 + BETWEEN);
    }
    return { nodes, headings };
  }

  function nodeData(data, marks, c, hidden) {
    const at = places(data, hidden).nodes;
    const most = Math.max(...data.nodes.map((node) => node.visits), 1);
    return data.nodes.map((node, v) => {
      const mark = marks.nodes[v];
      const star = mark.milestone_weight > 0 && !node.goal, trap = mark.trap;
      const kinds = [node.goal && "goal", star && "milestone", trap && "trap", node.lost && "lost", data.starts.includes(v) && "start", hidden.has(v) && "rare"];
      const label = node.goal ? "success" : star ? mark.milestone_weight.toFixed(2) : trap ? `-${mark.trap_score.toFixed(2)}` : "";
      const share = node.trajectories ? node.successes / node.trajectories : 0;
      return {
        data: { id: `n${v}`, label, fill: mix(c.node, c["node-strong"], share), size: 18 + 22 * Math.sqrt(node.visits / most) + (star ? 8 : 0) },
        position: at[v], classes: kinds.filter(Boolean).join(" "),
      };
    });
  }

  function means(data, values) { /* mean advantage of the steps on each edge */
    const sum = data.edges.map(() => 0), count = data.edges.map(() => 0);
    data.steps.forEach((step, at) => { sum[step.edge] += values[at] ?? 0; count[step.edge] += 1; });
    return sum.map((total, e) => (count[e] ? total / count[e] : 0));
  }

  function edgeData(data, values, marks, c) {
    const mean = means(data, values), top = Math.max(...mean.map(Math.abs), 1e-9);
    return data.edges.map(([a, b], e) => ({
      data: { id: `e${e}`, source: `n${a}`, target: `n${b}`, mean: mean[e],
        stroke: mix(c.neutral, mean[e] < 0 ? c.negative : c.positive, Math.pow(Math.abs(mean[e]) / top, 0.6)),
        width: 1.2 + 1.3 * Math.sqrt(marks.edges[e].trajectories) },
    }));
  }

  function headings(data, hidden) {
    const at = places(data, hidden).headings;
    return data.headings.map(([text], h) => ({ data: { id: `h${h}`, label: text, fill: "#000000", size: 1 },
      position: at[h], classes: "heading", selectable: false, grabbable: false }));
  }

  function draw(place, data, values, marks, hidden) {
    const c = palette();
    return cytoscape({
      container: place, style: style(c), layout: { name: "preset", fit: true, padding: 24 }, minZoom: 0.03, maxZoom: 4,
      elements: [...headings(data, hidden), ...nodeData(data, marks, c, hidden), ...edgeData(data, values, marks, c)],
      autoungrabify: true, boxSelectionEnabled: false, selectionType: "single", hideEdgesOnViewport: data.edges.length > 1500,
    });
  }

  function recolour(cy, data, values, marks, hidden) { /* another estimator or theme: same places */
    const c = palette();
    cy.batch(() => {
      for (const made of [...nodeData(data, marks, c, hidden), ...edgeData(data, values, marks, c)]) {
        const found = cy.getElementById(made.data.id);
        found.data(made.data);
        if (made.classes !== undefined) found.classes(made.classes);
      }
    });
    cy.style().fromJson(style(c)).update();
  }

  return { draw, recolour, means, rare };
})();
