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

// busy: nothing moves under a pointer, a selection, a form or an opened detail.
function busy(main) {
  return document.hidden || main.matches(":hover") || main.contains(document.activeElement) || main.querySelector("details[open]") ||
    String(document.getSelection()) !== "";
}

async function refresh() {
  const main = document.querySelector("main");
  if (!document.querySelector("#live").checked || busy(main)) return;
  let fresh;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (answer.redirected) { location.reload(); return; }
    fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  } catch {
    document.querySelector(".checked").textContent = "this server does not answer";
    return;
  }
  const next = fresh.querySelector("main");
  if (!next || busy(main)) return;
  document.title = fresh.title;
  localize(next);
  main.replaceWith(next);
  copying(next);
}

localize(document);
copying(document);
const live = document.querySelector(".live");
// The result of an act is not to be had again: what a refresh shows in its place is the act itself, for all there is.
if (live && !document.querySelector("form.act, .result")) {
  live.hidden = false;
  setInterval(refresh, 5000);
}
