// Each page works without this script. It shows times in the reader's zone, copies commands, and refreshes the page.
"use strict";

// localize adds the reader's own time to each moment; the server has written UTC.
function localize(root) {
  for (const t of root.querySelectorAll("time")) {
    t.title = new Date(t.dateTime).toLocaleString() + "\n" + t.title;
  }
}

// copying makes a click on a command copy it.
function copying(root) {
  if (!navigator.clipboard) return;
  for (const code of root.querySelectorAll("code.copy")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    });
    code.after(button);
  }
}

// charts draws what the server has drawn once more, with axes, and with the values under the pointer.
function charts(root) {
  if (typeof uPlot === "undefined") return;
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  for (const plot of root.querySelectorAll(".plot[data-chart]")) {
    const chart = JSON.parse(plot.dataset.chart);
    const at = plot.parentElement.querySelector(".at");
    const times = chart.lines[0].values.map((_, i) => chart.from + i * chart.step);
    const label = (t) => chart.step < 3600 ? new Date(t * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })
      : new Date(t * 1000).toLocaleDateString([], { day: "numeric", month: "short" });
    const axis = { stroke: color("quiet"), grid: { stroke: color("line"), width: 1 }, ticks: { show: false } };
    const drawn = new uPlot({
      width: plot.clientWidth, height: plot.clientHeight, legend: { show: false }, padding: [8, 26, 0, 0],
      cursor: { y: false, drag: { x: false, y: false } },
      scales: { y: { range: (_, low, high) => [0, Math.max(1, high)] } },
      axes: [{ ...axis, size: 24, space: 70, values: (_, at) => at.map(label) }, { ...axis, size: 58, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6, 1e7] }],
      series: [{}, ...chart.lines.map((l) => ({ label: l.name, stroke: color(l.class), width: 2, points: { show: false } }))],
      hooks: {
        setCursor: [(u) => {
          const i = u.cursor.idx;
          at.textContent = i == null ? "" : new Date(times[i] * 1000).toLocaleString() + " · " +
            chart.lines.map((l) => l.name + " " + (l.values[i] ?? "not known")).join(" · ");
        }],
      },
    }, [times, ...chart.lines.map((l) => l.values)]);
    plot.replaceChildren(drawn.root);
    new ResizeObserver(() => drawn.setSize({ width: plot.clientWidth, height: plot.clientHeight })).observe(plot);
  }
}

// busy: nothing moves under a pointer, a selection, a form or an opened detail.
function busy(main) {
  return document.hidden || main.matches(":hover") || main.contains(document.activeElement) || main.querySelector("details[open], input:checked") ||
    String(document.getSelection()) !== "";
}

// What the server says of changes is heard while the page is in front: in the background it would keep one of the few connections that
// the browser has for this server. Asking for the page costs a turn, which the timer gives, so a page that always changes is not asked for
// more often than the timer does. Where the server is not heard, such as behind a proxy that keeps messages back, the timer asks.
const every = 5000, silent = 25000, longest = 15000; // milliseconds; what time alone changes, no one tells
const live = document.querySelector("#live");
let stream = null, heard = 0, asked = Date.now(), turns = 2, asking = false;
let due = 1; // how often to ask: once after the page came, twice after a change, since counts in the head are a little older

function listen() {
  if (!live.checked || document.hidden) {
    stream?.close();
    stream = null;
  } else if (!stream && window.EventSource) {
    const own = stream = new EventSource(live.dataset.changes);
    const hear = () => { heard = Date.now(); };
    own.addEventListener("beat", hear);
    own.addEventListener("change", () => {
      hear();
      due = 2;
      if (turns > 0) refresh();
    });
    own.addEventListener("error", () => {
      heard = 0;
      if (own.readyState !== EventSource.CLOSED || stream !== own) return; // else the browser tries again by itself
      stream = null;
      setTimeout(listen, 60000);
    });
  }
}

function tick() {
  turns = Math.min(turns + 1, 2);
  if (due > 0 || !stream || Date.now() - heard > silent || Date.now() - asked >= longest) refresh();
}

async function refresh() {
  if (asking || !live.checked || busy(document.querySelector("main"))) return;
  asking = true;
  asked = Date.now();
  turns--;
  due = Math.max(due - 1, 0);
  let fresh;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (answer.redirected) { location.reload(); return; }
    fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  } catch {
    document.querySelector(".checked").textContent = "this server does not answer";
    return;
  } finally {
    asking = false;
  }
  const main = document.querySelector("main"), next = fresh.querySelector("main");
  if (!next || busy(main)) return;
  document.title = fresh.title;
  localize(next);
  // On a telephone no pointer says that someone reads at the right end of a table.
  const scrolled = [...main.querySelectorAll(".wide, pre")].map((e) => [e.scrollLeft, e.scrollTop]);
  main.replaceWith(next);
  next.querySelectorAll(".wide, pre").forEach((e, i) => scrolled[i] && e.scrollTo(...scrolled[i]));
  copying(next);
  charts(next);
}

localize(document);
copying(document);
document.addEventListener("DOMContentLoaded", () => charts(document)); // what it draws with is loaded by then
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts(document));
// The result of an act is not to be had again: what a refresh shows in its place is the act itself, for all there is.
if (live && !document.querySelector("form.act, .result")) {
  live.parentElement.hidden = false;
  setInterval(tick, every);
  const again = () => { listen(); if (!document.hidden) refresh(); };
  live.addEventListener("change", again);
  document.addEventListener("visibilitychange", again);
  listen();
}
