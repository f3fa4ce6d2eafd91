// A dialog with the trials of a cell, and learning curves.
(() => {
  const { element } = petlab;
  const all = petlab.parsed("trials");
  // Adds the trials that a live page receives.
  petlab.newTrials = () => Object.assign(all, petlab.parsed("trials"));
  const kColours = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F"];

  const ownFieldsOf = (trial) => ({ ...all.configurations[trial.configuration],
    ...trial.seed === undefined ? {} : { seed: trial.seed } });
  const fieldsOf = (trial) => ({ ...all.same, ...ownFieldsOf(trial) });
  const seriesOf = (curve) => `${curve.split} ${curve.task} ${curve.name}`;

  // One line per trial, coloured by the name that `colour`(id, trial) returns.
  const specification = (curves, series, colour) => {
    const values = [];
    const names = [];
    for (const { id, trial, curve } of curves) {
      const name = colour(id, trial);
      if (!names.includes(name)) names.push(name);
      for (let i = 0; i < curve.points.length; i += 2) {
        values.push({ trial: id, series: name, seed: fieldsOf(trial).seed ?? "—",
          step: curve.points[i], value: curve.points[i + 1] });
      }
    }
    const scale = names.length <= kColours.length
      ? { domain: names, range: kColours.slice(0, names.length) }
      : { domain: names, scheme: "tableau20" };
    const encoding = {
      x: { field: "step", type: "quantitative", title: "step", scale: { nice: false } },
      y: { field: "value", type: "quantitative", title: series, scale: { zero: false } },
      detail: { field: "trial", type: "nominal" },
      color: { field: "series", type: "nominal", title: null, scale,
        legend: { orient: "bottom", columns: 3, labelLimit: 260 } },
      opacity: { condition: { param: "pick", empty: true, value: 0.9 }, value: 0.08 },
      tooltip: [
        { field: "series", type: "nominal", title: "series" },
        { field: "trial", type: "nominal", title: "trial" },
        { field: "seed", type: "nominal", title: "seed" },
        { field: "step", type: "quantitative", title: "step", format: "~g" },
        { field: "value", type: "quantitative", title: "value", format: ".5~g" },
      ],
    };
    return {
      data: { values },
      layer: [
        { params: [{ name: "pick", select: { type: "point", fields: ["series"] }, bind: "legend" }],
          mark: { type: "line", strokeWidth: 1.5 }, encoding },
        { mark: { type: "point", filled: true, size: 18 }, encoding },
      ],
      config: { font: "Helvetica, Arial, sans-serif", view: { stroke: null },
        axis: { gridOpacity: 0.5, titleFontWeight: "normal", titlePadding: 8 } },
    };
  };
  // Curves of these trials with a choice of metrics; nothing if they have no curves.
  const curvesOf = (ids, label, colour) => {
    const bySeries = new Map();
    for (const id of ids) {
      const trial = all.trials[id];
      for (const curve of trial?.curves ?? []) {
        const series = seriesOf(curve);
        if (!bySeries.has(series)) bySeries.set(series, []);
        bySeries.get(series).push({ id, trial, curve });
      }
    }
    if (bySeries.size === 0 || !petlab.canPlot()) return null;
    const names = [...bySeries.keys()].sort((a, b) =>
      b.startsWith("validation") - a.startsWith("validation") || a.localeCompare(b, "en"));
    const place = element("div", { class: "plot", role: "group" });
    const show = (series) => {
      place.setAttribute("aria-label", `${label}: ${series} by step`);
      return petlab.plot(place, specification(bySeries.get(series), series, colour));
    };
    const choice = element("select", { change: () => show(choice.value) },
      ...names.map((name) => element("option", { value: name }, name)));
    return { element: element("div", { class: "curves" },
      element("p", {}, element("label", {}, "metric ", choice)), place),
    show: () => show(choice.value) };
  };

  const duration = (seconds) => {
    if (seconds === undefined) return "";
    if (seconds < 120) return `${Math.round(seconds * 10) / 10} s`;
    return seconds < 7200 ? `${Math.round(seconds / 6) / 10} min` : `${Math.round(seconds / 360) / 10} h`;
  };
  const time = (seconds) => seconds === undefined ? "" :
    new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ");
  const kColumns = [
    ["attempt", (attempt) => String(attempt.number)],
    ["outcome", (attempt) => attempt.outcome],
    ["reason", (attempt) => attempt.reason],
    ["begun (UTC)", (attempt) => time(attempt.begun)],
    ["took", (attempt) => duration(attempt.seconds)],
    ["where", (attempt) => [attempt.host, attempt.device].filter(Boolean).join(", ")],
    ["worker", (attempt) => attempt.worker],
  ];
  const attemptsTable = (attempts) => {
    const columns = kColumns.filter(([, shown]) => attempts.some(shown));
    return element("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "attempts" },
      element("table", { class: "plain" },
        element("thead", {}, element("tr", {},
          ...columns.map(([head]) => element("th", { scope: "col" }, head)))),
        element("tbody", {}, ...attempts.map((attempt) => element("tr", {},
          ...columns.map(([, shown]) => element("td", {}, shown(attempt) ?? "")))))));
  };
  const logsOf = (attempts) => attempts.filter((attempt) => attempt.log).flatMap((attempt) => [
    element("h4", {}, `Last lines of the log of attempt ${attempt.number}`),
    element("pre", { tabindex: 0 }, attempt.log.join("\n")),
  ]);
  const attemptsOf = (trial) => {
    const attempts = trial.attempts.map((attempt) => ({ ...all.attempt, ...attempt }));
    return [attemptsTable(attempts), ...logsOf(attempts)];
  };
  const configuration = (trial, differing) => {
    const fields = Object.entries(fieldsOf(trial)).sort(([a], [b]) =>
      differing.has(b) - differing.has(a) || a.localeCompare(b, "en"));
    return element("dl", { class: "fields" }, ...fields.map(([field, value]) => element("div", {},
      element("dt", differing.has(field) ? { class: "differs" } : {}, field),
      element("dd", {}, value))));
  };
  const trialBody = (id, trial, differing) => [
    element("p", { class: "soft" }, trial.members.join("; "), " · ",
      element("code", {}, `petlab show ${id}`)),
    ...trial.attempts ? attemptsOf(trial) : [element("p", {}, "never tried")],
    element("h4", {}, "Configuration"),
    configuration(trial, differing),
  ];
  const trialElement = (id, differing, open) => {
    const trial = all.trials[id];
    if (!trial) return element("p", {}, element("code", {}, `petlab show ${id}`));
    const details = element("details", { class: "trial" },
      element("summary", {}, element("code", {}, id), ` seed ${fieldsOf(trial).seed ?? "—"} · ` +
        `${trial.variant ? `${trial.variant} · ` : ""}${fieldsOf(trial).tasks ?? ""} · `,
      element("span", { class: `state ${trial.state}` }, trial.state)));
    const fill = () => {
      if (details.open && details.childElementCount === 1) details.append(...trialBody(id, trial, differing));
    };
    details.addEventListener("toggle", fill);
    details.open = open;
    fill();
    return details;
  };
  // The fields in which a cell's trials differ; each trial lists them first.
  const differingOf = (ids) => {
    const values = new Map();
    for (const id of ids) {
      for (const [field, value] of Object.entries(all.trials[id] ? ownFieldsOf(all.trials[id]) : {})) {
        if (!values.has(field)) values.set(field, new Map());
        values.get(field).set(value, (values.get(field).get(value) ?? 0) + 1);
      }
    }
    return new Set([...values].filter(([, counts]) =>
      counts.size > 1 || [...counts.values()][0] < ids.length).map(([field]) => field));
  };

  const dialog = element("dialog", { "aria-labelledby": "trials-title" });
  // A click outside the content has the dialog itself as target.
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  document.body.append(dialog);
  petlab.openTrials = (cell) => {
    const ids = (cell.dataset.trials ?? "").split(" ").filter(Boolean);
    if (ids.length === 0) return;
    petlab.hideTip();
    const differing = differingOf(ids);
    const curves = curvesOf(ids, petlab.titleOf(cell),
      (id, trial) => `${trial.variant} seed ${fieldsOf(trial).seed ?? "—"}`.trim());
    dialog.replaceChildren(element("div", { class: "content" },
      element("header", {}, element("h2", { id: "trials-title" }, petlab.titleOf(cell)),
        element("button", { type: "button", class: "close", "aria-label": "Close",
          click: () => dialog.close() }, "×")),
      petlab.detailsOf(cell),
      ...curves ? [curves.element] : [],
      element("h3", {}, ids.length === 1 ? "Its trial" : `Its ${ids.length} trials`),
      ...ids.map((id) => trialElement(id, differing, ids.length === 1))));
    dialog.showModal();
    dialog.scrollTop = 0;
    curves?.show();
  };

  petlab.learningCurves = () => {
    const place = document.getElementById("learning-curves");
    if (!place || place.querySelector(".curves")) return;
    const curves = curvesOf(Object.keys(all.trials), "Learning curves",
      (id, trial) => trial.variant || trial.members[0]);
    if (!curves) return;
    place.querySelector("h2").after(curves.element);
    curves.show();
  };
})();
