"use strict";
(() => {
  // The page stays open while a sweep runs. The server tells when the reports have changed: their
  // new state is fetched and put in place node by node, so that what a reader has sorted, opened
  // or focused stays. What runs now comes whole.
  const root = document.querySelector("main");
  const state = document.getElementById("live-state");
  const running = document.getElementById("live-now");
  const parts = "table, [data-figure]";

  // What the server sent last, apart from what is shown, which other scripts change; and for each
  // of its nodes the one that is shown.
  const shown = new WeakMap();
  const bind = (sent, node) => {
    shown.set(sent, node);
    sent.childNodes.forEach((child, i) => bind(child, node.childNodes[i]));
  };
  const rebind = (old, fresh) => {
    shown.set(fresh, shown.get(old));
    fresh.childNodes.forEach((child, i) => rebind(old.childNodes[i], child));
  };
  const copyOf = (sent) => {
    const node = document.importNode(sent, true);
    bind(sent, node);
    return node;
  };
  let known = root.cloneNode(true);
  bind(known, root);

  const written = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.outerHTML : node.nodeValue);
  const setAttributes = (old, fresh, node) => {
    for (const { name, value } of fresh.attributes) {
      if (old.getAttribute(name) !== value) node.setAttribute(name, value);
    }
    for (const { name } of old.attributes) {
      if (!fresh.hasAttribute(name)) node.removeAttribute(name);
    }
  };
  // What can be made anew as a whole: a cell, what holds neither table nor figure, and, where that
  // is not enough, the section, whose scripts then start again.
  const isWhole = (old) =>
    ["TD", "SECTION", "MAIN"].includes(old.nodeName) ||
    (!old.closest("table") && !old.querySelector(parts));

  // Makes what is shown of `old` what `fresh` is; false where an element around it must.
  const update = (old, fresh, changed) => {
    if (old.nodeName !== fresh.nodeName) return false;
    if (written(old) === written(fresh)) {
      rebind(old, fresh);
      return true;
    }
    const node = shown.get(old);
    shown.set(fresh, node);
    if (old.nodeType !== Node.ELEMENT_NODE) {
      node.nodeValue = fresh.nodeValue;
      return true;
    }
    if (old.nodeName === "TEMPLATE") {
      node.innerHTML = fresh.innerHTML;
      setAttributes(old, fresh, node);
      return true;
    }
    const before = [...old.childNodes];
    const after = [...fresh.childNodes];
    const fits =
      before.length === after.length && before.every((child, i) => update(child, after[i], changed));
    if (!fits && !isWhole(old)) return false;
    setAttributes(old, fresh, node);
    if (!fits) {
      node.replaceChildren(...after.map(copyOf));
      if (node.querySelector(parts)) changed.sections.push(node);
    }
    if (node.nodeName === "TD") changed.cells.push(node);
    if (node.nodeName === "SCRIPT") changed.data.push(node);
    return true;
  };

  const put = (html) => {
    const sent = new DOMParser().parseFromString(html, "text/html");
    const fresh = sent.querySelector("main");
    const changed = { cells: [], data: [], sections: [] };
    // Data of the page as a whole stand behind it.
    for (const data of sent.querySelectorAll("body > script[type='application/json'][id]")) {
      const node = document.getElementById(data.id);
      if (node && node.textContent !== data.textContent) {
        node.textContent = data.textContent;
        changed.data.push(node);
      }
    }
    update(known, fresh, changed);
    known = fresh;
    for (const cell of changed.cells) {
      cell.classList.remove("fresh");
      void cell.offsetWidth;  // so that the animation begins again
      cell.classList.add("fresh");
    }
    // The other parts of the page see to what is new.
    const page = globalThis.petlab;
    for (const data of changed.data) {
      if (data.id === "trials") page?.newTrials?.();
      const place = document.querySelector(`[data-figure="${CSS.escape(data.id)}"]`);
      if (place) page?.plot?.(place, JSON.parse(data.textContent));
    }
    const touched = new Set(changed.cells.map((cell) => cell.closest("section") ?? root));
    for (const section of [...changed.sections, ...touched]) page?.enhance?.(section);
    page?.learningCurves?.();  // where there were none before
  };

  const say = (kind, words) => {
    state.dataset.kind = kind;
    state.textContent = words;
  };
  const time = () => new Date().toLocaleTimeString();
  let heard = time();
  let wanted = "";
  let have = "";
  let fetching = false;
  let failed = 0;  // the timer of the next try
  let stale = "";  // what is wrong; said until the reports are there again
  const sayLive = () => {
    if (stale) say("lost", stale);
    else say("live", `live, as of ${time()}`);
  };
  const fetchReports = async () => {
    if (fetching) return;
    fetching = true;
    clearTimeout(failed);
    try {
      while (have !== wanted) {
        const told = wanted;
        const answer = await fetch("/main", { cache: "no-store" });
        if (!answer.ok) throw new Error(await answer.text());
        const html = await answer.text();
        const tag = (answer.headers.get("ETag") ?? "").replaceAll('"', "");
        if (tag !== have) put(html);
        have = tag;
        // Newer than what was told, which will be told too. Else it was told meanwhile: once more.
        if (have !== wanted && wanted === told) break;
      }
      stale = "";
    } catch (error) {
      stale = `The reports could not be fetched (${error.message}); this is what there was at ${heard}.`;
      failed = setTimeout(fetchReports, 5000);
    }
    sayLive();
    fetching = false;
  };

  let source = null;
  let again = 0;
  const listen = () => {
    clearTimeout(again);
    if (source || document.hidden) return;
    source = new EventSource("/events");
    source.onopen = sayLive;
    source.addEventListener("page", (event) => {
      heard = time();
      wanted = event.data;
      fetchReports();
    });
    source.addEventListener("now", (event) => {
      heard = time();
      const page = new DOMParser().parseFromString(JSON.parse(event.data), "text/html");
      running.replaceChildren(...page.body.childNodes);
      sayLive();
    });
    source.onerror = () => {
      say("lost", `The server does not answer; this is what there was at ${heard}. It is asked again.`);
      if (source.readyState !== EventSource.CLOSED) return;  // else the browser tries again
      source = null;
      again = setTimeout(listen, 5000);
    };
  };
  // A browser has few connections for one server: pages that nobody sees leave theirs to others.
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) {
      listen();
    } else if (source) {
      source.close();
      source = null;
    }
  });
  listen();
})();
