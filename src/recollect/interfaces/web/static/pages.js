// Live updates and keyboard shortcuts: listens for changes and reloads what shows them.
"use strict";

// Times are sent in UTC and shown as the clock of whoever reads them has them.
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const localise = (root) => {
  for (const each of root.querySelectorAll("time[datetime]")) {
    const at = new Date(each.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    each.title = exact.format(at);
    if (each.dataset.as === "moment") each.textContent = exact.format(at);
    if (each.dataset.as === "clock") each.textContent = clock.format(at);
    if (each.dataset.as === "day") each.textContent = day.format(at);
  }
  for (const each of root.querySelectorAll("[data-zone]")) {
    each.textContent = `Times are those of your clock (${Intl.DateTimeFormat().resolvedOptions().timeZone}).`;
  }
};
document.addEventListener("DOMContentLoaded", () => localise(document));
document.addEventListener("htmx:load", (event) => localise(event.detail.elt.parentNode ?? document));

// Nothing is reloaded while a menu is open or a form has been edited.
const isBusy = () => {
  const fields = document.querySelectorAll("main form[method=post] :is(input, textarea)");
  const isTouched = (each) => each.type !== "hidden" && each.value !== each.defaultValue;
  return document.querySelector("details.menu[open]") || [...fields].some(isTouched);
};
let isDue = false;
const renewed = () => {
  isDue = Boolean(window.htmx) && Boolean(isBusy());
  if (window.htmx && !isDue) htmx.trigger(document.body, "changed");
};
document.addEventListener("toggle", () => isDue && renewed(), true);

const live = document.body.dataset.live;
if (live && window.EventSource) {
  const POLL_MS = 30000;
  let source = null;
  let seen = null;
  let waiting = null;
  let polling = null;
  const leave = () => {
    if (source) source.close();
    clearInterval(polling);
    source = null;
  };
  // Only a page that is looked at listens: a browser has few connections for all its tabs.
  const listen = () => {
    if (source || document.hidden) return;
    source = new EventSource(live);
    source.addEventListener("status", (event) => {
      document.documentElement.dataset.live = "yes";
      if (seen !== null && event.data !== seen) {
        // Many changes at once are one renewal.
        clearTimeout(waiting);
        waiting = setTimeout(renewed, 150);
      }
      seen = event.data;
    });
    // Refused, since too many listen: then it asks now and again.
    source.addEventListener("error", () => {
      if (source && source.readyState === EventSource.CLOSED) {
        document.documentElement.dataset.live = "no";
        clearInterval(polling);
        polling = setInterval(renewed, POLL_MS);
      }
    });
  };
  listen();
  document.addEventListener("visibilitychange", () => (document.hidden ? leave() : listen()));
  window.addEventListener("pagehide", leave);
  window.addEventListener("pageshow", listen);
}

// A list that somebody has gone on in stays: renewed, it would be its first page again.
document.addEventListener("htmx:beforeRequest", (event) => {
  const { elt, requestConfig } = event.detail;
  const isRenewal = requestConfig.triggeringEvent?.type === "changed";
  if (isRenewal && elt.querySelectorAll(":scope > ul.stack").length > 1) event.preventDefault();
});

// A part that could not be renewed says why, instead of standing there as if it were current.
document.addEventListener("htmx:beforeSwap", (event) => {
  const { xhr } = event.detail;
  if (xhr.status >= 400 && xhr.status !== 401) {
    event.detail.shouldSwap = true;
    event.detail.isError = false;
  }
});

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const field = document.querySelector("[data-search]");
    if (field) {
      event.preventDefault();
      field.focus();
      field.select();
    }
  }
  if (event.key === "Escape") {
    document.querySelectorAll("details.menu[open]").forEach((each) => each.removeAttribute("open"));
  }
});
