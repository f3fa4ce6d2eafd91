"use strict";
(() => {
  // Vega reads figures through its interpreter: the page's policy allows no eval. Its loader gets
  // nothing, wherever a specification may point.
  const loader = {
    load: () => Promise.reject(new Error("this page loads nothing")),
    sanitize: () => Promise.reject(new Error("this page has no links")),
  };
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const draw = async (place) => {
    const specification = JSON.parse(document.getElementById(place.dataset.figure).textContent);
    const ink = colour("--ink");
    const line = colour("--line");
    const room = place.clientWidth || 480;
    specification.width = Math.max(180, Math.min(720, room - 90));
    specification.height = Math.round(Math.min(380, Math.max(220, specification.width * 0.6)));
    if (room < 480) {
      for (const layer of specification.layer) layer.encoding.color.legend.columns = 1;
    }
    place.tabIndex = 0;  // what does not fit is scrolled to by keyboard
    await vegaEmbed(place, specification, {
      mode: "vega-lite",
      ast: true,
      actions: false,
      renderer: "svg",
      loader,
      config: {
        background: "transparent",
        title: { color: ink, subtitleColor: colour("--soft") },
        axis: { labelColor: ink, titleColor: ink, gridColor: line, domainColor: line, tickColor: line },
        legend: { labelColor: ink, titleColor: ink },
      },
    });
  };
  const places = [...document.querySelectorAll("[data-figure]")];
  const drawAll = () => {
    for (const place of places) {
      draw(place).catch((error) => { place.textContent = `This figure was not drawn: ${error.message}`; });
    }
  };
  drawAll();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    drawAll();
  });
})();
