"use strict";
(() => {
  // Keeps a page current while a sweep runs. When the server announces changed reports, fetches
  // their new state and updates the page node by node, so that sorting, open parts and focus
  // survive. The list of running trials is replaced as a whole.
  const root = document.querySelector("main");
  const state = document.getElementById("live-state");
  const running = document.getElementById("live-now");
  const parts = "table, [data-figure]";

  // The server's last version of the page, kept apart from the displayed one, which other scripts
  // change, and the displayed node for each of its nodes.
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
  // True for nodes that may be replaced as a whole: a cell; anything without table and figure; and
  // as a last resort the section, whose scripts then start again.
  const isWhole = (old) =>
    ["TD", "SECTION", "MAIN"].includes(old.nodeName) ||
    (!old.closest("table") && !old.querySelector(parts));

  // Updates the displayed node of `old` to `fresh`; false if an enclosing element must be replaced.
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
    // Data for the whole page follows the main element.
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
      void cell.offsetWidth;  // forces a reflow, which restarts the animation
      cell.classList.add("fresh");
    }
    // Notify the other parts of the page.
    const page = globalThis.petlab;
    for (const data of changed.data) {
      if (data.id === "trials") page?.newTrials?.();
      const place = document.querySelector(`[data-figure="${CSS.escape(data.id)}"]`);
      if (place) page?.plot?.(place, JSON.parse(data.textContent));
    }
    const touched = new Set(changed.cells.map((cell) => cell.closest("section") ?? root));
    for (const section of [...changed.sections, ...touched]) page?.enhance?.(section);
    page?.learningCurves?.();  // in case there were none before
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
  let failed = 0;  // timer of the next attempt
  let stale = "";  // error message, shown until a fetch succeeds
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
        const announced = wanted;
        const answer = await fetch("/main", { cache: "no-store" });
        if (!answer.ok) throw new Error(await answer.text());
        const html = await answer.text();
        const tag = (answer.headers.get("ETag") ?? "").replaceAll('"', "");
        if (tag !== have) put(html);
        have = tag;
        // The answer is newer than the announcement, and its own will follow: stop. If another
        // announcement arrived during the fetch, repeat.
        if (have !== wanted && wanted === announced) break;
      }
      stale = "";
    } catch (error) {
      stale = `The reports could not be fetched (${error.message}); shown as of ${heard}.`;
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
      say("lost", `The server does not answer; shown as of ${heard}. Retrying.`);
      if (source.readyState !== EventSource.CLOSED) return;  // otherwise the browser retries
      source = null;
      again = setTimeout(listen, 5000);
    };
  };
  // Browsers limit the connections per server, so hidden pages close theirs.
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
