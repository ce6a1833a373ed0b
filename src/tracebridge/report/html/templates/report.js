"use strict";
(() => {
  const root = document.documentElement;
  const controls = document.getElementById("controls");
  const theme = document.getElementById("theme");
  const unfold = document.getElementById("unfold");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);
  const label = () => {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", `Switch to the ${isDark() ? "light" : "dark"} theme`);
  };
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    label();
  });
  prefersDark.addEventListener("change", label);
  label();

  const folds = [...document.querySelectorAll("details")];
  unfold.addEventListener("click", () => {
    const open = folds.some((each) => !each.open);
    folds.forEach((each) => { each.open = open; });
    unfold.textContent = open ? "Fold all" : "Unfold all";
  });
  controls.hidden = false;

  // A link into a folded block opens it; paper has nothing folded.
  const openTarget = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let each = target; each; each = each.parentElement) {
      if (each instanceof HTMLDetailsElement) each.open = true;
    }
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", openTarget);
  openTarget();
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = folds.filter((each) => !each.open);
    folded.forEach((each) => { each.open = true; });
  });
  addEventListener("afterprint", () => folded.forEach((each) => { each.open = false; }));

  const search = document.getElementById("search");
  if (search) {
    const found = document.getElementById("found");
    const rows = [...document.querySelectorAll("table.verdicts tbody tr")];
    const names = rows.map((row) => row.cells[0].textContent.toLowerCase());
    const blocks = rows.map((row) => document.getElementById(row.cells[0].querySelector("a").hash.slice(1)));
    const pick = () => {
      const wanted = search.value.trim().toLowerCase();
      const shown = document.querySelector("input[name=shown]:checked").value;
      let count = 0;
      names.forEach((name, k) => {
        const like = name.includes(wanted);
        for (const each of [rows[k], blocks[k]]) each.classList.toggle("unlike", !like);
        if (like && (!shown || rows[k].dataset.key === shown)) count += 1;
      });
      found.textContent = `${count} shown`;
    };
    search.addEventListener("input", pick);
    document.querySelectorAll("input[name=shown]").forEach((each) => each.addEventListener("change", pick));
    search.parentElement.hidden = false;
  }

  const key = (row, column, numeric) => {
    const cell = row.cells[column];
    if (!numeric) return cell.textContent.trim().toLowerCase();
    return cell.dataset.sort === undefined ? NaN : Number(cell.dataset.sort);
  };
  const compare = (a, b) => {
    if (typeof a === "string") return a.localeCompare(b, "en");
    if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
    return a - b;
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    const body = table.tBodies[0];
    if (body.rows.length < 3) continue;
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      const numeric = head.classList.contains("number");
      button.addEventListener("click", () => {
        const before = head.getAttribute("aria-sort");
        const up = before ? before === "descending" : !numeric;
        heads.forEach((each) => each.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = [...body.rows].map((row) => [key(row, column, numeric), row]);
        const missing = ([value]) => Number.isNaN(value);
        const known = rows.filter((each) => !missing(each)).sort((a, b) => compare(a[0], b[0]) * (up ? 1 : -1));
        body.append(...known.map(([, row]) => row), ...rows.filter(missing).map(([, row]) => row));
      });
    });
  }
})();
