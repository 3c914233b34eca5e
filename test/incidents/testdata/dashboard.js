// Draws a dashboard of deploy/grafana: board is its file, answers are those of Prometheus, by panel and query. It knows what our dashboards
// use of Grafana's model, no more.
const colors = {green: "#73BF69", red: "#E02F44", orange: "#FF9830", yellow: "#F2CC0C", blue: "#5794F2", purple: "#B877D9"};
const palette = ["#73BF69", "#F2CC0C", "#8AB8FF", "#FF780A", "#F2495C", "#5794F2", "#B877D9", "#705DA0", "#37872D", "#FADE2A"];
const row = 30, gap = 8;

const element = (parent, tag, name, text) => {
  const e = document.createElement(tag);
  if (name) e.className = name;
  if (text !== undefined) e.textContent = text;
  parent.append(e);
  return e;
};

// format writes a value in a unit of Grafana's.
const format = (value, unit) => {
  const short = (v) => {
    const steps = [[1e9, " Bil"], [1e6, " Mil"], [1e3, " K"]].find(([size]) => Math.abs(v) >= size) ?? [1, ""];
    return Number((v / steps[0]).toPrecision(3)) + steps[1];
  };
  if (unit === "s") {
    const steps = [[86400, " day"], [3600, " hour"], [60, " min"], [1, " s"], [1e-3, " ms"], [1e-6, " µs"]].find(([size]) => Math.abs(value) >= size) ?? [1, " s"];
    return Number((value / steps[0]).toPrecision(3)) + steps[1];
  }
  return unit === "ops" ? short(value) + " ops/s" : short(value);
};

const mapped = (field, value) => (field.mappings ?? []).map((m) => m.options[String(value)]).find((found) => found);
const step = (field, value) => (field.thresholds?.steps ?? []).findLast((s) => s.value === null || s.value === undefined || value >= s.value)?.color;

// fieldOf are the settings of a column: the defaults, and what is overridden by its name.
const fieldOf = (panel, name) => {
  const field = structuredClone(panel.fieldConfig.defaults);
  for (const o of panel.fieldConfig.overrides ?? []) {
    if (o.matcher.options !== name) continue;
    for (const p of o.properties) p.id.split(".").reduce((to, key, n, all) => n < all.length - 1 ? (to[key] ??= {}) : (to[key] = p.value), field);
  }
  return field;
};

const legend = (target, labels) => target.legendFormat
  ? target.legendFormat.replace(/{{\s*(\w+)\s*}}/g, (_, name) => labels[name] ?? "")
  : JSON.stringify(labels);

const drawStat = (panel, body, answers) => {
  const field = panel.fieldConfig.defaults;
  const results = answers.flat();
  for (const value of results.length ? results.map((r) => Number(r.value[1])) : [null]) {
    const found = value === null ? undefined : mapped(field, value);
    const tile = element(body, "div", "stat", value === null ? field.noValue ?? "No data" : found?.text ?? format(value, field.unit));
    const color = value === null ? (field.noValue ? step(field, -Infinity) : undefined) : found?.color ?? step(field, value);
    if (color) tile.style.background = colors[color];
    tile.classList.toggle("plain", !color);
  }
};

const drawTable = (panel, body, answers) => {
  const organize = (panel.transformations ?? []).find((t) => t.id === "organize")?.options ?? {};
  const rows = answers.flat().map((r) => ({Time: "", ...r.metric, Value: Number(r.value[1])}));
  const names = [...new Set(rows.flatMap((r) => Object.keys(r)))].filter((name) => !organize.excludeByName?.[name]);
  const place = (name) => organize.indexByName?.[name] ?? (name === "Value" ? 1000 : 500);
  names.sort((a, b) => place(a) - place(b) || a.localeCompare(b));
  const shown = (name) => organize.renameByName?.[name] ?? name;
  for (const sort of (panel.options.sortBy ?? []).toReversed()) {
    const name = names.find((n) => shown(n) === sort.displayName);
    rows.sort((a, b) => (a[name] > b[name] ? 1 : a[name] < b[name] ? -1 : 0) * (sort.desc ? -1 : 1));
  }
  if (!rows.length) return element(body, "div", "none", panel.fieldConfig.defaults.noValue ?? "No data");
  const table = element(body, "table");
  const head = element(table, "tr");
  for (const name of names) {
    const th = element(head, "th", "", shown(name));
    const width = fieldOf(panel, shown(name)).custom?.width;
    if (width) th.style.width = width + "px";
  }
  for (const r of rows) {
    const tr = element(table, "tr");
    for (const name of names) {
      const field = fieldOf(panel, shown(name));
      const found = mapped(field, r[name]);
      const td = element(tr, "td", field.links ? "link" : "", found?.text ?? (typeof r[name] === "number" ? format(r[name], field.unit) : r[name] ?? ""));
      if (found?.color && field.custom?.cellOptions?.type === "color-background") Object.assign(td.style, {background: colors[found.color], color: "#fff"});
    }
  }
};

const drawSeries = (panel, body, answers) => {
  const field = panel.fieldConfig.defaults, custom = field.custom ?? {};
  const lines = answers.flatMap((results, n) => results.map((r) => ({name: legend(panel.targets[n], r.metric), values: new Map(r.values.map(([at, v]) => [at, v === "NaN" ? null : Number(v)]))})));
  if (!lines.length) return element(body, "div", "none", field.noValue ?? "No data");
  const times = [];
  for (let at = from; at <= to; at += every) times.push(at);
  const colorOf = (l, n) => colors[fieldOf(panel, l.name).color?.fixedColor] ?? palette[n % palette.length];
  const keys = element(body, "div", "legend");
  lines.forEach((l, n) => {
    const key = element(keys, "span", "key");
    element(key, "i").style.background = colorOf(l, n);
    element(key, "span", "", l.name);
  });
  const stacked = custom.stacking?.mode === "normal", below = times.map(() => 0);
  const values = lines.map((l) => times.map((at, n) => {
    const value = l.values.get(at) ?? null;
    return stacked ? (below[n] += value) : value;
  }));
  const steps = custom.thresholdsStyle?.mode && custom.thresholdsStyle.mode !== "off" ? (field.thresholds?.steps ?? []).filter((s) => s.value !== null && s.value !== undefined) : [];
  const thresholds = (u) => {
    for (const s of steps) {
      const y = u.valToPos(s.value, "y", true);
      if (y < u.bbox.top || y > u.bbox.top + u.bbox.height) continue;
      u.ctx.save();
      u.ctx.strokeStyle = colors[s.color];
      u.ctx.setLineDash(custom.thresholdsStyle.mode.startsWith("dashed") ? [8, 6] : []);
      u.ctx.beginPath();
      u.ctx.moveTo(u.bbox.left, y);
      u.ctx.lineTo(u.bbox.left + u.bbox.width, y);
      u.ctx.stroke();
      u.ctx.restore();
    }
  };
  const font = "11px Inter, Helvetica, Arial, sans-serif";
  const axis = {stroke: "#6b7078", font, grid: {stroke: "#e8e9ec", width: 1}, ticks: {show: false}};
  const clock = (at) => new Date(at * 1000).toISOString().slice(11, 16);
  new uPlot({
    width: body.clientWidth - 8, height: body.clientHeight - keys.offsetHeight - 10, legend: {show: false}, cursor: {show: false}, hooks: {draw: [thresholds]},
    scales: {x: {time: true}, y: {range: (_, least, most) => {
      const low = Math.min(field.min ?? least ?? 0, least ?? 0), high = Math.max(most ?? 1, field.max ?? -Infinity);
      return [low, high > low ? high + (high - low) * (field.max === undefined ? 0.08 : 0) : low + 1];
    }}},
    axes: [{...axis, values: (_, at) => at.map(clock), space: 60, incrs: [60, 120, 300, 600, 1800, 3600, 21600]}, {...axis, size: 62, values: (_, v) => v.map((value) => format(value, field.unit))}],
    series: [{}, ...lines.map((l, n) => ({
      stroke: colorOf(l, n), width: custom.lineWidth ?? 1, fill: colorOf(l, n) + Math.round((custom.fillOpacity ?? 0) * 2.55).toString(16).padStart(2, "0"),
      points: {show: false}, paths: custom.lineInterpolation === "stepAfter" ? uPlot.paths.stepped({align: 1}) : undefined, spanGaps: custom.spanNulls === true,
    }))],
    bands: stacked ? lines.slice(1).map((_, n) => ({series: [n + 2, n + 1]})) : [],
  }, [times, ...values], body);
};

const draw = {stat: drawStat, table: drawTable, timeseries: drawSeries};
const width = document.body.clientWidth / 24;
element(document.body, "h1", "", board.title);
const grid = element(document.body, "div", "grid");
for (const [n, panel] of board.panels.entries()) {
  const {x, y, w, h} = panel.gridPos;
  const box = element(grid, "section");
  Object.assign(box.style, {left: x * width + gap / 2 + "px", top: y * (row + gap) + "px", width: w * width - gap + "px", height: h * (row + gap) - gap + "px"});
  element(box, "h2", "", panel.title);
  draw[panel.type](panel, element(box, "div", "body"), answers[n]);
}
grid.style.height = Math.max(...board.panels.map(({gridPos: {y, h}}) => y + h)) * (row + gap) + "px";
document.body.dataset.drawn = board.panels.length;
