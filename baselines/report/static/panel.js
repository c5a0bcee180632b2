"use strict";
/* What is told about a state or an edge. Texts of rollouts are only ever set as text. */
const Panel = (() => {
  function make(name, attributes, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes ?? {})) {
      if (key === "on") element.addEventListener("click", value);
      else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  }

  function number(value, digits = 3) {
    if (value === null || value === undefined) return "none";
    if (typeof value !== "number") return value === "inf" ? "no path" : String(value);
    return Number.isInteger(value) ? String(value) : value.toFixed(digits);
  }

  const signed = (value) => (typeof value === "number" ? `${value > 0 ? "+" : ""}${value.toFixed(3)}` : number(value));
  const sign = (value) => (value > 0 ? "positive" : value < 0 ? "negative" : "");
  const short = (node) => (node.goal ? "success" : node.id.slice(0, 8));
  const percent = (part, whole) => (whole ? `${((100 * part) / whole).toFixed(0)} %` : "none");

  function table(rows) {
    const body = rows.filter(Boolean).map(([name, formula, value, kind]) =>
      make("tr", { class: kind }, make("th", { scope: "row" }, name), make("td", { class: "formula" }, formula),
        make("td", { class: "number" }, value)));
    return make("table", {}, make("tbody", {}, ...body));
  }

  function folded(title, text, open) {
    return text ? make("details", { open: open ? "" : null }, make("summary", {}, title), make("pre", {}, text)) : null;
  }

  function badge(kind, text) { return make("span", { class: `badge ${kind}` }, text); }

  function node(view, v) {
    const { data, marks, values, show } = view, state = data.nodes[v], mark = marks.nodes[v];
    const out = [make("h3", {}, state.goal ? "Success" : `State ${short(state)}`)];
    const star = mark.milestone_weight > 0 && !state.goal;
    out.push(make("p", {},
      star ? badge("milestone", `milestone, weight ${number(mark.milestone_weight)}`) : null,
      mark.trap ? badge("trap", `trap, score ${number(mark.trap_score)}`) : null,
      state.lost ? badge("lost", "lost for certain") : null,
      data.starts.includes(v) ? badge("", "start") : null));
    if (state.text !== undefined) out.push(make("pre", { class: "observation" }, state.text));
    else if (state.prompt) out.push(make("p", { class: "note" }, "The prompt in which it was first seen:"), make("pre", { class: "observation" }, state.prompt));
    else if (!state.goal) out.push(make("p", { class: "note" }, "No observation of it is stored."));
    out.push(make("h3", {}, "Distance"), table([
      ["to success, in this graph", "d(v, g)", number(state.distance)],
      state.facts ? ["to success, in truth", "", state.trueDistance === null ? "none" : number(state.trueDistance)] : null,
      ...Object.entries(state.facts ?? {}).map(([name, value]) => [name, "", number(value)]),
    ]));
    out.push(make("h3", {}, "What rollouts did here"), actions(data, values, v, show));
    out.push(make("h3", {}, "Evidence"), table([
      ["trajectories that visit it", "|T(v)|", number(mark.trajectories)],
      ["successful ones", "|T+(v)|", number(mark.successes)],
      ["visits", "", number(mark.visits)],
      ["share of success", "p+(v)", number(mark.success_share)],
      ["share of success of the task", "p+", number(data.successShare)],
    ]));
    if (!state.goal) out.push(make("h3", {}, "Milestone"), table([
      ["candidate", "", mark.candidate ? "yes" : "no: no success visits it"],
      ["coverage of successes", "m(v)", number(mark.coverage)],
      ["score", "S0(v)", number(mark.score)],
      ["branch credit", "b(v)", number(mark.branch_credit)],
      ["progress", "psi_bar(v)", number(mark.progress)],
      ["retained because of", "", mark.kept_because.join(", ") || "not retained"],
      ["calibrated score", "S_pcc(v)", number(mark.calibrated)],
      ["weight at this stage", "", number(mark.milestone_weight), "part"],
      ["milestone potential", "Phi+(v)", number(mark.milestone_potential)],
    ]), make("h3", {}, "Trap"), table([
      ["kept as a trap", "", mark.trap ? "yes" : "no"],
      ["score", "S-(v)", number(mark.trap_score)],
      ["weight", "", number(mark.trap_weight), "part"],
      ["trap potential", "Phi-(v)", number(mark.trap_potential)],
    ]));
    out.push(folded(`Admissible actions (${(state.admissible ?? []).length})`, (state.admissible ?? []).join("\n"), false));
    out.push(folded("Canonical state", state.state, false), make("p", { class: "note" }, "Id ", make("code", {}, state.id)));
    return out;
  }

  function actions(data, values, v, show) {
    const groups = new Map();
    data.steps.forEach((step, at) => {
      if (data.edges[step.edge][0] !== v) return;
      const key = `${step.action}\u0000${step.edge}`;
      if (!groups.has(key)) groups.set(key, { step, all: [] });
      groups.get(key).all.push(values[at]);
    });
    if (!groups.size) return make("p", { class: "note" }, "Nothing: rollouts end here.");
    const rows = [...groups.values()].map(({ step, all }) => {
      const mean = all.reduce((sum, value) => sum + value, 0) / all.length, to = data.edges[step.edge][1];
      return { mean, row: make("tr", {},
        make("td", {}, make("button", { type: "button", class: "link", on: () => show("edge", step.edge) }, step.action || "(nothing)")),
        make("td", {}, to === v ? "stays" : short(data.nodes[to])), make("td", { class: "number" }, all.length === 1 ? "once" : `${all.length} times`),
        make("td", { class: `number ${sign(mean)}` }, signed(mean))) };
    });
    rows.sort((a, b) => b.mean - a.mean);
    return make("table", {}, make("thead", {}, make("tr", {}, ...["action", "to", "", "advantage"].map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, ...rows.map((made) => made.row)));
  }

  function edge(view, e) {
    const { data, marks, estimator, values, show } = view, [a, b] = data.edges[e], mark = marks.edges[e];
    const on = data.steps.map((step, at) => [step, at]).filter(([step]) => step.edge === e);
    const mean = on.reduce((sum, [, at]) => sum + (values[at] ?? 0), 0) / Math.max(on.length, 1);
    const end = (v) => make("button", { type: "button", class: "link", on: () => show("node", v) }, short(data.nodes[v]));
    const out = [make("h3", {}, "Edge ", end(a), " to ", end(b)),
      make("p", {}, `Mean advantage by ${estimator.name}: `, make("b", { class: sign(mean) }, signed(mean)), ` over ${on.length} steps.`)];
    out.push(make("h3", {}, "Branch"), table([
      ["trajectories that use it", "|T(e)|", number(mark.trajectories)],
      ["successful ones", "|T+(e)|", number(mark.successes)],
      ["share of success", "p+(e)", number(mark.success_share)],
      ["against the other edges from here", "c(e)", number(mark.contrast)],
      ["local progress", "psi(e)", number(mark.local_progress)],
      ["distance before and after", "d(u, g), d(v, g)", `${number(data.nodes[a].distance)}, ${number(data.nodes[b].distance)}`],
    ]));
    out.push(make("h3", {}, "Steps"));
    if (!estimator.terms.length) out.push(make("p", { class: "note" }, "These numbers were stored; choose an estimator for what its numbers are made of."));
    if (estimator.formula) out.push(make("p", { class: "note" }, estimator.formula));
    on.forEach(([step, at], place) => out.push(stepOf(view, step, at, place === 0 || at === view.step)));
    const from = data.nodes[a];
    out.push(folded("Observation before", from.text ?? from.prompt, false));
    if (b !== a) out.push(folded("Observation after", data.nodes[b].text ?? data.nodes[b].prompt, false));
    out.push(folded(`Settings of ${estimator.name}`, Object.entries(estimator.settings).map(([k, v]) => `${k}: ${JSON.stringify(v)}`).join("\n"), false));
    return out;
  }

  function stepOf({ data, estimator, values }, step, at, open) {
    const trajectory = data.trajectories[step.trajectory];
    const head = make("summary", {}, `rollout ${trajectory.id} (${trajectory.success ? "success" : "failure"}), step ${step.step}: `,
      make("code", {}, step.action || "(nothing)"), " ", make("b", { class: sign(values[at]) }, signed(values[at])));
    const rows = estimator.terms.map((term) => [term.name, term.formula, term.part ? signed(term.values[at]) : number(term.values[at]), term.part ? "part" : null]);
    rows.push(["advantage", estimator.terms.length ? "A = sum of the parts in bold" : "A", signed(values[at]), "sum"]);
    const told = make("details", { class: "step", open: open ? "" : null }, head);
    if (step.faults?.length) told.append(make("p", { class: "note" }, `Faults: ${step.faults.join("; ")}.`));
    if (step.reply) told.append(make("pre", {}, step.reply));
    told.append(table([["reward", "r_t", number(step.reward)], step.valid ? null : ["malformed", "", "yes"],
      step.value == null ? null : ["critic's value before the reply", "V(prompt)", number(step.value)], ...rows]));
    return told;
  }

  function welcome() {
    return [make("h3", {}, "Nothing chosen"), make("p", {}, "Click a state or an edge of the graph, or a step in the list below it.")];
  }

  return { node, edge, welcome, make, number, signed, sign, short, percent };
})();
