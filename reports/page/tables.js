// Tables: sort by a column, filter rows, hide columns, move between cells by keyboard.
(() => {
  const { element } = petlab;

  // Sort key: a cell's number, or its text; empty cells come last in both directions.
  const keyOf = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
    return cell.dataset.text !== undefined ? cell.dataset.text : null;
  };
  const compared = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  };
  const sortable = (table) => {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    const original = [...body.rows];
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
          return sign * compared(a, b);
        });
      }
      body.append(...rows);
      petlab.reachable(table);
    };
    heads.forEach((head, column) => {
      head.querySelector("button").addEventListener("click", () => {
        const next = head.classList.contains("label")
          ? { null: "ascending", ascending: "descending", descending: "" }
          : { null: "descending", descending: "ascending", ascending: "" };
        sortBy(column, next[head.getAttribute("aria-sort")]);
      });
    });
  };

  // Shows only rows that contain all the words in any column.
  const filter = (table, text, count) => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = [...table.tBodies[0].rows];
    let shown = 0;
    for (const row of rows) {
      const has = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => has.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = words.length === 0 ? "" : `${shown} of ${rows.length} rows`;
    petlab.reachable(table);
  };
  const showColumn = (table, column, shown) => {
    for (const row of table.rows) row.cells[column].hidden = !shown;
    petlab.reachable(table);
  };
  const tools = (table) => {
    const name = table.getAttribute("aria-label");
    const count = element("output", {});
    const toolbar = element("div", { class: "tools" });
    if (table.tBodies[0].rows.length > 1) {
      const input = element("input", { type: "search", placeholder: "filter rows",
        "aria-label": `Filter the rows of ${name}`, autocomplete: "off", spellcheck: "false",
        input: () => filter(table, input.value, count) });
      toolbar.append(input);
    }
    const heads = [...table.tHead.rows[0].cells];
    const columns = heads.filter((head) => !head.classList.contains("label"));
    if (columns.length > 1) {
      const choices = columns.map((head) => {
        const box = element("input", { type: "checkbox",
          change: () => showColumn(table, heads.indexOf(head), box.checked) });
        box.checked = true;
        return element("label", {}, box, ` ${head.textContent}`);
      });
      toolbar.append(element("details", { class: "columns" },
        element("summary", { "aria-label": `Columns of ${name}` }, "columns"),
        element("div", { role: "group", "aria-label": `Columns of ${name}` }, ...choices)));
    }
    toolbar.append(count);
    if (toolbar.childElementCount > 1) table.closest(".scroll").before(toolbar);
  };

  // Marks tables that extend to the right of the visible part.
  const showsMore = (scroll) => {
    const look = () => scroll.classList.toggle("more",
      scroll.scrollLeft + scroll.clientWidth < scroll.scrollWidth - 1);
    scroll.addEventListener("scroll", look, { passive: true });
    const observer = new ResizeObserver(look);
    observer.observe(scroll);
    observer.observe(scroll.querySelector("table"));
  };

  // Tab reaches one cell of a table; arrow keys move to the others.
  const visible = (cell) => !cell.hidden && !cell.parentElement.hidden;
  petlab.reachable = (table, wanted) => {
    const cells = [...table.tBodies[0].querySelectorAll("td")];
    const now = wanted ?? cells.find((cell) => cell.tabIndex === 0 && visible(cell)) ??
      cells.find(visible);
    for (const cell of cells) cell.tabIndex = cell === now ? 0 : -1;
  };
  const kMoves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  // The cell that a key moves to, or nothing at the edge.
  petlab.neighbour = (cell, key) => {
    const rows = [...cell.closest("table").rows].filter((row) => !row.hidden);
    const cells = [...cell.parentElement.cells].filter((other) => !other.hidden);
    if (key === "Home") return cells.find((other) => other.tagName === "TD");
    if (key === "End") return cells[cells.length - 1];
    const move = kMoves[key];
    if (!move) return undefined;
    if (move[0] === 0) {
      const next = cells[cells.indexOf(cell) + move[1]];
      return next?.tagName === "TD" ? next : undefined;
    }
    const row = rows[rows.indexOf(cell.parentElement) + move[0]];
    const next = row?.cells[cell.cellIndex];
    return next?.querySelector(":scope > button") ?? next;
  };

  petlab.tables = (root) => {
    for (const table of root.querySelectorAll("section table")) {
      if (!table.hasAttribute("role")) {
        table.setAttribute("role", "grid");
        sortable(table);
        tools(table);
        showsMore(table.closest(".scroll"));
      }
      const heads = table.tHead.rows[0].cells;
      for (const cell of table.tBodies[0].querySelectorAll("td")) {
        cell.hidden = heads[cell.cellIndex].hidden;
        if (cell.dataset.trials) cell.setAttribute("aria-haspopup", "dialog");
      }
      petlab.reachable(table);
    }
  };
})();
