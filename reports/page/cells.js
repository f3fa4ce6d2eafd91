// Shows the details of the cell under the mouse or with the keyboard focus.
(() => {
  const tip = document.getElementById("tip");
  let shown = null;

  petlab.titleOf = (cell) => {
    const table = cell.closest("table");
    const row = cell.parentElement.querySelector("th[scope=row]").dataset.text;
    return `${row} · ${table.tHead.rows[0].cells[cell.cellIndex].textContent}`;
  };
  petlab.detailsOf = (cell) => cell.querySelector("template").content.cloneNode(true);

  const hide = () => {
    if (!shown) return;
    shown.removeAttribute("aria-describedby");
    shown = null;
    tip.hidden = true;
  };
  const show = (cell) => {
    if (cell === shown || !cell.querySelector("template")) return;
    hide();
    shown = cell;
    tip.replaceChildren(petlab.element("strong", {}, petlab.titleOf(cell)), petlab.detailsOf(cell));
    if (cell.dataset.trials) {
      tip.append(petlab.element("p", {}, "click or Enter: its trials"));
    }
    tip.hidden = false;
    cell.setAttribute("aria-describedby", "tip");
    const at = cell.getBoundingClientRect();
    const size = tip.getBoundingClientRect();
    const left = Math.min(at.left, document.documentElement.clientWidth - size.width - 8);
    const below = at.bottom + 6;
    const above = at.top - size.height - 6;
    const fits = below + size.height <= document.documentElement.clientHeight || above < 8;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${fits ? below : above}px`;
  };
  petlab.hideTip = hide;

  const cellAt = (target) => target?.closest?.("section td");
  document.addEventListener("mouseover", (event) => {
    const cell = cellAt(event.target);
    if (cell) show(cell);
    else hide();
  });
  document.addEventListener("focusin", (event) => {
    const cell = cellAt(event.target);
    if (!cell) return;
    petlab.reachable(cell.closest("table"), cell);
    if (cell.matches(":focus-visible")) show(cell);
  });
  document.addEventListener("focusout", hide);
  document.addEventListener("scroll", hide, true);
  document.addEventListener("click", (event) => {
    const cell = cellAt(event.target);
    if (cell && getSelection().isCollapsed) petlab.openTrials(cell);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const head = document.activeElement?.closest?.("section thead th");
    const cell = cellAt(document.activeElement) ?? (event.key === "ArrowDown" ? head : null);
    if (!cell) return;
    if (cell !== head && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      petlab.openTrials(cell);
      return;
    }
    const next = petlab.neighbour(cell, event.key);
    if (!next || next.tagName === "TH") return;
    event.preventDefault();
    next.focus();
    next.scrollIntoView({ block: "nearest", inline: "nearest" });
    if (next.tagName === "TD") show(next);
  });
})();
