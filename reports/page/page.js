"use strict";
(() => {
  const sortable = (table) => {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    const original = [...body.rows];

    // A value sorts by its number, a text by itself; what has neither comes last both ways.
    const keyOf = (row, column) => {
      const cell = row.cells[column];
      if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
      return cell.dataset.text !== undefined ? cell.dataset.text : null;
    };
    const compare = (a, b) => {
      if (typeof a === "number" && typeof b === "number") return a - b;
      return String(a).localeCompare(String(b), "en", { numeric: true });
    };
    const sortBy = (column, direction) => {
      heads.forEach((head, i) => {
        if (i === column && direction) head.setAttribute("aria-sort", direction);
        else head.removeAttribute("aria-sort");
      });
      const sign = direction === "descending" ? -1 : 1;
      const rows = [...original];
      if (direction) {
        rows.sort((x, y) => {
          const a = keyOf(x, column);
          const b = keyOf(y, column);
          if (a === null || b === null) return (a === null) - (b === null);
          return sign * compare(a, b);
        });
      }
      body.append(...rows);
    };
    heads.forEach((head, column) => {
      head.querySelector("button")?.addEventListener("click", () => {
        const cycle = head.classList.contains("label")
          ? { null: "ascending", ascending: "descending", descending: "" }
          : { null: "descending", descending: "ascending", ascending: "" };
        sortBy(column, cycle[head.getAttribute("aria-sort")]);
      });
    });
  };
  document.querySelectorAll("table").forEach(sortable);

  const tip = document.getElementById("tip");
  let shown = null;
  const hide = () => {
    if (!shown) return;
    shown.removeAttribute("aria-describedby");
    shown = null;
    tip.hidden = true;
  };
  const show = (cell) => {
    const details = cell.querySelector("template");
    if (!details || cell === shown) return;
    hide();
    shown = cell;
    tip.replaceChildren(details.content.cloneNode(true));
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
  document.addEventListener("mouseover", (event) => {
    const cell = event.target.closest?.("td");
    if (cell) show(cell);
    else hide();
  });
  document.addEventListener("focusin", (event) => {
    const cell = event.target.closest("td");
    if (cell) show(cell);
  });
  document.addEventListener("focusout", hide);
  document.addEventListener("scroll", hide, true);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const cell = document.activeElement?.closest?.("td");
    const move = moves[event.key];
    if (!cell || !move) return;
    const rows = cell.closest("tbody").rows;
    const row = [...rows].indexOf(cell.parentElement) + move[0];
    const next = rows[row]?.cells[cell.cellIndex + move[1]];
    if (next?.tagName === "TD") {
      event.preventDefault();
      next.focus();
      next.scrollIntoView({ block: "nearest", inline: "nearest" });
      show(next);
    }
  });
})();
