// Draws figures with Vega from the data in the page.
(() => {
  // The page's policy forbids eval, so Vega uses its interpreter. Its loader rejects all addresses
  // that a specification may contain.
  const loader = {
    load: () => Promise.reject(new Error("this page loads nothing")),
    sanitize: () => Promise.reject(new Error("this page has no links")),
  };
  const drawn = new Map();  // place -> specification

  const draw = async (place) => {
    const specification = structuredClone(drawn.get(place));
    const room = place.clientWidth || 480;
    // A diagram of ranks needs room for names left and right, keeps its height, and has its caption
    // below.
    const nameRoom = specification.usermeta?.nameRoom;
    specification.width = Math.max(180, Math.min(720, room - (nameRoom ?? 90)));
    if (nameRoom === undefined) {
      specification.height = Math.round(Math.min(380, Math.max(220, specification.width * 0.6)));
    }
    // The section's heading replaces the title; the subtitle is kept.
    const subtitle = nameRoom === undefined ? specification.title?.subtitle : undefined;
    delete specification.title;
    if (subtitle) {
      specification.title = { text: subtitle, anchor: "start", fontSize: 11, fontWeight: "normal" };
    }
    for (const layer of room < 480 ? specification.layer : []) {
      if (layer.encoding.color) layer.encoding.color.legend.columns = 1;
    }
    await vegaEmbed(place, specification, {
      mode: "vega-lite",
      ast: true,
      actions: false,
      renderer: "svg",
      loader,
      config: { background: "transparent" },
    });
    place.dataset.drawn = "";
  };
  // Replaces the contents of `place` by a Vega-Lite specification's drawing.
  petlab.plot = (place, specification) => {
    drawn.set(place, specification);
    place.tabIndex = 0;  // lets the keyboard scroll wide content
    if (!place.hasAttribute("role")) place.setAttribute("role", "group");
    return draw(place).catch((error) => {
      place.textContent = `This figure was not drawn: ${error.message}`;
    });
  };
  petlab.canPlot = () => typeof vegaEmbed === "function";
  petlab.figures = (root) => {
    for (const place of root.querySelectorAll("[data-figure]")) {
      if (drawn.has(place)) continue;
      place.setAttribute("aria-label", place.closest("figure").getAttribute("aria-label"));
      petlab.plot(place, petlab.parsed(place.dataset.figure));
    }
  };
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    for (const [place, specification] of drawn) {
      if (place.isConnected) petlab.plot(place, specification);
      else drawn.delete(place);
    }
  });
})();
