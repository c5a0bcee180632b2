"use strict";
/* The drawn graph: elements and colours from a task's data. Knows nothing of the panel. */
const Graph = (() => {
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

  function nodeData(data, marks, c) {
    const most = Math.max(...data.nodes.map((node) => node.visits), 1);
    return data.nodes.map((node, v) => {
      const mark = marks.nodes[v];
      const star = mark.milestone_weight > 0 && !node.goal, trap = mark.trap;
      const kinds = [node.goal && "goal", star && "milestone", trap && "trap", node.lost && "lost", data.starts.includes(v) && "start"];
      const label = node.goal ? "success" : star ? mark.milestone_weight.toFixed(2) : trap ? `-${mark.trap_score.toFixed(2)}` : "";
      const share = node.trajectories ? node.successes / node.trajectories : 0;
      return {
        data: { id: `n${v}`, label, fill: mix(c.node, c["node-strong"], share), size: 18 + 22 * Math.sqrt(node.visits / most) + (star ? 8 : 0) },
        position: { x: node.x, y: node.y }, classes: kinds.filter(Boolean).join(" "),
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

  function headings(data) {
    return data.headings.map(([text, x, y], h) => ({ data: { id: `h${h}`, label: text, fill: "#000000", size: 1 },
      position: { x, y }, classes: "heading", selectable: false, grabbable: false }));
  }

  function draw(place, data, values, marks) {
    const c = palette();
    return cytoscape({
      container: place, style: style(c), layout: { name: "preset", fit: true, padding: 24 }, minZoom: 0.03, maxZoom: 4,
      elements: [...headings(data), ...nodeData(data, marks, c), ...edgeData(data, values, marks, c)],
      autoungrabify: true, boxSelectionEnabled: false, selectionType: "single", hideEdgesOnViewport: data.edges.length > 1500,
    });
  }

  function recolour(cy, data, values, marks) { /* another estimator or theme: same places */
    const c = palette();
    cy.batch(() => {
      for (const made of [...nodeData(data, marks, c), ...edgeData(data, values, marks, c)]) {
        const found = cy.getElementById(made.data.id);
        found.data(made.data);
        if (made.classes !== undefined) found.classes(made.classes);
      }
    });
    cy.style().fromJson(style(c)).update();
  }

  return { draw, recolour, means };
})();
