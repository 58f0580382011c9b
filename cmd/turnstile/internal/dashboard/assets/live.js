// Keeps a page up to date: asks for it again every two seconds while it is visible, and puts in what has changed.
// Ages are counted here, so that a page on which nothing has happened is the same as before.
"use strict";

const every = 2000;
let tag = "", ahead = Number(document.body.dataset.now) - Date.now(), seen = Date.now(), moved = 0, busy = false;
let leaving = false;

function ago(ms) {
  const s = Math.max(0, Math.floor(ms / 1000)), two = (n) => String(n).padStart(2, "0");
  if (s < 60) return s + "s";
  if (s < 3600) return Math.floor(s / 60) + "m" + two(s % 60) + "s";
  if (s < 86400) return Math.floor(s / 3600) + "h" + two(Math.floor(s / 60) % 60) + "m";
  const days = Math.floor(s / 86400);
  return days < 100 ? days + "d" + two(Math.floor(s / 3600) % 24) + "h" : days + "d";
}

function tick() {
  const now = Date.now() + ahead;
  for (const t of document.querySelectorAll("time[data-at]")) {
    const text = ago(now - Number(t.dataset.at));
    if (t.textContent !== text) t.textContent = text;
  }
}

// morph makes one element like another, and keeps what is the same: the focus, what is selected, what is open.
function morph(from, to) {
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && name !== "open") from.removeAttribute(name);
  }
  for (const { name, value } of [...to.attributes]) {
    if (from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
  if (from.localName === "time") return; // tick writes it
  const key = (n) => n.nodeType + n.nodeName + (n.dataset?.key ?? n.id ?? "");
  const known = new Map();
  for (const n of from.childNodes) {
    if (!known.has(key(n))) known.set(key(n), []);
    known.get(key(n)).push(n);
  }
  const pairs = [...to.childNodes].map((n) => [n, known.get(key(n))?.shift()]);
  for (const rest of known.values()) for (const n of rest) n.remove();
  let at = from.firstChild;
  for (const [n, same] of pairs) {
    if (!same) {
      from.insertBefore(n, at);
      continue;
    }
    if (same === at) at = at.nextSibling;
    else from.insertBefore(same, at);
    if (n.nodeType !== Node.ELEMENT_NODE) {
      if (same.data !== n.data) same.data = n.data;
    } else if (!same.isEqualNode(n)) morph(same, n);
  }
}

async function load() {
  const lost = document.getElementById("lost");
  if (busy || leaving || document.hidden || "still" in document.body.dataset || Date.now() - moved < 1000) return;
  busy = true;
  try {
    const answer = await fetch(location.href, {
      headers: { "Turnstile-Part": "1", "If-None-Match": tag }, cache: "no-store", signal: AbortSignal.timeout(20000),
    });
    // To sign in again; not again and again, if that does not help.
    if (answer.status === 401 && Date.now() - Number(sessionStorage.getItem("signin")) > 60000) {
      leaving = true;
      sessionStorage.setItem("signin", Date.now());
      return location.reload();
    }
    if (answer.status !== 304) {
      if (!answer.headers.get("ETag")) throw new Error("not a page");
      const part = new DOMParser().parseFromString(await answer.text(), "text/html").body;
      part.id = "part";
      const focused = document.activeElement;
      morph(document.getElementById("part"), part);
      if (focused.isConnected) focused.focus({ preventScroll: true }); // an element that is moved loses it
      tag = answer.headers.get("ETag");
    }
    const off = Date.parse(answer.headers.get("Date")) - Date.now(); // whole seconds
    if (Math.abs(off - ahead) > 2000) ahead = off;
    seen = Date.now();
    lost.hidden = true;
  } catch {
    lost.querySelector("time").dataset.at = seen + ahead;
    lost.hidden = Date.now() - seen < 3 * every;
  } finally {
    busy = false;
  }
  tick();
}

// What is about to be clicked keeps its place.
addEventListener("pointerdown", () => { moved = Date.now(); });
addEventListener("pointermove", (e) => { if (e.target.closest?.("tbody, ol, .tree")) moved = Date.now(); });
addEventListener("visibilitychange", load);
addEventListener("pageshow", (e) => { if (e.persisted) leaving = false; });
for (const select of document.querySelectorAll("form.filter select")) {
  select.addEventListener("change", () => select.form.requestSubmit());
}
setInterval(tick, 1000);
setInterval(load, every);
tick();
