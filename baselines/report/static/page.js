"use strict";
/* Ties lists, graph and panel together; the theme. */
(() => {
  const { make, number, signed, sign, short, percent } = Panel;
  const get = (id) => document.getElementById(id);
  const theme = get("theme"), list = JSON.parse(get("graphs").textContent);
  const view = { cy: null, data: null, estimator: null, marks: null, values: null, hidden: new Set(), chosen: null, step: null, show };

  theme.addEventListener("change", () => {
    if (theme.value) document.documentElement.dataset.theme = theme.value;
    else delete document.documentElement.dataset.theme;
    repaint();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  if (!list.length) return;

  const fields = ["run", "iteration", "task"];
  const titles = { task: (item) => `${item.task} (${item.won} of ${item.of} won, ${item.states} states)` };

  function options(select, pairs) {
    const before = select.value;
    select.replaceChildren(...pairs.map(([value, text]) => make("option", { value }, text)));
    if (pairs.some(([value]) => value === before)) select.value = before;
  }

  function fill(from) { /* each list shows what there is under the choices before it */
    for (let depth = from; depth < fields.length; depth += 1) {
      const name = fields[depth], left = list.filter((item) => fields.slice(0, depth).every((field) => String(item[field]) === get(field).value));
      const pairs = new Map(left.map((item) => [String(item[name]), titles[name]?.(item) ?? String(item[name])]));
      options(get(name), [...pairs]);
    }
    load();
  }

  function load() {
    const at = list.findIndex((item) => fields.every((field) => String(item[field]) === get(field).value));
    view.data = JSON.parse(get(`graph-${at}`).textContent);
    options(get("estimator"), view.data.estimators.map((estimator) => [estimator.name, estimator.name]));
    view.chosen = view.step = null;
    judge();
    draw(Graph.rare(view.data));
    get("graph-note").textContent = view.data.note;
    get("lost-key").hidden = !view.data.nodes.some((node) => node.lost);
    tell();
  }

  function draw(hidden) {
    const count = view.data.nodes.length;
    view.hidden = hidden;
    view.cy?.destroy();
    view.cy = Graph.draw(get("graph"), view.data, view.values, view.marks, hidden);
    view.cy.on("tap", "node, edge", (event) => {
      const id = event.target.id();
      if (id[0] !== "h") show(id[0] === "n" ? "node" : "edge", Number(id.slice(1)));
    });
    get("thinned").hidden = !hidden.size;
    get("thinned").firstElementChild.textContent =
      `The ${(count - hidden.size).toLocaleString("en")} most visited of ${count.toLocaleString("en")} states are drawn, ${hidden.size.toLocaleString("en")} are hidden; those you choose in the lists appear. `;
  }

  function reveal(kind, index) { /* what was chosen in a list, where it is hidden */
    for (const v of kind === "node" ? [index] : view.data.edges[index]) {
      if (view.hidden.delete(v)) view.cy.getElementById(`n${v}`).removeClass("rare");
    }
  }

  function judge() {
    const { data } = view;
    view.estimator = data.estimators.find((estimator) => estimator.name === get("estimator").value);
    view.values = view.estimator.values;
    view.marks = data.marks[view.estimator.name] ?? data.marks[""];
  }

  function repaint() {
    if (view.cy) Graph.recolour(view.cy, view.data, view.values, view.marks, view.hidden);
  }

  function show(kind, index, step = null) {
    view.chosen = { kind, index };
    view.step = step;
    reveal(kind, index);
    view.cy.elements().unselect();
    view.cy.getElementById(`${kind[0]}${index}`).select();
    tell();
  }

  function tell() {
    const { chosen } = view;
    const parts = !chosen ? Panel.welcome() : chosen.kind === "node" ? Panel.node(view, chosen.index) : Panel.edge(view, chosen.index);
    get("panel").replaceChildren(...parts.filter(Boolean));
    get("panel").scrollTop = 0;
    const top = Math.max(...Graph.means(view.data, view.values).map(Math.abs), 0);
    get("legend").replaceChildren(`advantage ${signed(-top)}`, make("i", {}), signed(top));
    lists();
  }

  function lists() { /* a closed list need not be written */
    if (get("trajectories").parentElement.open) trajectories();
    if (get("states").parentElement.open) states();
  }

  function trajectories() {
    const rows = view.data.trajectories.map((trajectory) => {
      const row = make("div", { class: "path" }, make("b", {}, `rollout ${trajectory.id}: ${trajectory.success ? "success" : trajectory.stop ?? "failure"}`));
      for (let at = trajectory.begin; at < trajectory.end; at += 1) {
        const step = view.data.steps[at], value = view.values[at], on = view.step === at;
        const button = make("button", { type: "button", title: `advantage ${signed(value)}`, "aria-pressed": String(on), "data-step": at,
          on: () => { show("edge", step.edge, at); get("trajectories").querySelector(`[data-step="${at}"]`).focus(); } }, step.action || "(nothing)");
        button.style.borderLeftColor = value > 0 ? "var(--positive)" : value < 0 ? "var(--negative)" : "var(--neutral)";
        row.append(button);
      }
      return row;
    });
    get("trajectories").replaceChildren(...rows);
  }

  function states() {
    const facts = [...new Set(view.data.nodes.flatMap((node) => Object.keys(node.facts ?? {})))];
    const head = ["state", "distance", ...(facts.length ? ["true distance", "lost", ...facts] : []), "visits", "success", "milestone", "trap"];
    const rows = view.data.nodes.map((node, v) => {
      const mark = view.marks.nodes[v], truth = facts.map((name) => number(node.facts?.[name] ?? ""));
      const cells = [number(node.distance), ...(facts.length ? [node.goal ? "0" : number(node.trueDistance), node.lost ? "yes" : "no", ...truth] : []),
        node.visits, percent(node.successes, node.trajectories), mark.milestone_weight > 0 && !node.goal ? number(mark.milestone_weight) : "", mark.trap ? number(mark.trap_score) : ""];
      const on = view.chosen?.kind === "node" && view.chosen.index === v;
      return make("tr", { "aria-selected": String(on) }, make("th", { scope: "row" }, make("button", { type: "button", class: "link", on: () => show("node", v) }, short(node))),
        ...cells.map((text) => make("td", { class: "number" }, String(text))));
    });
    get("states").replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, ...head.map((name) => make("th", { scope: "col" }, name)))), make("tbody", {}, ...rows)));
  }

  function walk(key) { /* arrow keys */
    const { data, chosen } = view;
    if (!chosen) return show("node", data.starts[0] ?? 0);
    const ends = (e, side) => data.edges[e][side];
    if (key === "ArrowRight" || key === "ArrowLeft") {
      const side = key === "ArrowRight" ? 0 : 1;
      if (chosen.kind === "edge") return show("node", ends(chosen.index, 1 - side));
      const next = data.edges.findIndex((pair) => pair[side] === chosen.index && pair[0] !== pair[1]);
      return next < 0 ? undefined : show("edge", next);
    }
    const from = chosen.kind === "edge" ? ends(chosen.index, 0) : null;
    const pool = chosen.kind === "edge" ? data.edges.map((_, e) => e).filter((e) => ends(e, 0) === from)
      : data.nodes.map((_, v) => v).filter((v) => data.nodes[v].x === data.nodes[chosen.index].x).sort((v, w) => data.nodes[v].y - data.nodes[w].y);
    const at = pool.indexOf(chosen.index) + (key === "ArrowDown" ? 1 : -1);
    return show(chosen.kind, pool[(at + pool.length) % pool.length]);
  }

  function zoom(factor) {
    view.cy.zoom({ level: view.cy.zoom() * factor, renderedPosition: { x: view.cy.width() / 2, y: view.cy.height() / 2 } });
  }

  get("graph").addEventListener("keydown", (event) => {
    const keys = { "+": () => zoom(1.25), "-": () => zoom(0.8), 0: () => view.cy.fit(24), Enter: () => get("panel").focus() };
    if (event.key.startsWith("Arrow")) walk(event.key);
    else if (keys[event.key]) keys[event.key]();
    else return;
    event.preventDefault();
  });
  new ResizeObserver(() => { if (view.cy) { view.cy.resize(); view.cy.fit(24); } }).observe(get("graph"));
  for (const name of ["trajectories", "states"]) get(name).parentElement.addEventListener("toggle", lists);
  get("all").addEventListener("click", () => { draw(new Set()); view.chosen && show(view.chosen.kind, view.chosen.index, view.step); });
  get("fit").addEventListener("click", () => view.cy.fit(24));
  get("closer").addEventListener("click", () => zoom(1.25));
  get("farther").addEventListener("click", () => zoom(0.8));
  fields.forEach((field, depth) => get(field).addEventListener("change", () => (depth === 2 ? load() : fill(depth + 1))));
  get("estimator").addEventListener("change", () => { judge(); repaint(); tell(); });
  fill(0);
})();
