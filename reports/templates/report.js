"use strict";
// Finds pairs, sorts tables and copies commands. All that it shows is in the file already: without it, nothing is missing.
(() => {
  const find = document.getElementById("find");
  const pairs = Array.from(document.querySelectorAll("details.pair"), (element) => ({
    element, kinds: new Set(element.dataset.kinds.split(" ")), text: null,
  }));

  function shows(pair, wanted, words) {
    if (!wanted.every((kind) => pair.kinds.has(kind))) return false;
    if (!words.length) return true;
    pair.text ??= pair.element.textContent.toLowerCase();
    return words.every((word) => pair.text.includes(word));
  }

  function refresh() {
    const wanted = Array.from(find.querySelectorAll("select"), (select) => select.value).filter(Boolean);
    const words = find.querySelector("input").value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const pair of pairs) {
      const shown = shows(pair, wanted, words);
      pair.element.hidden = !shown;
      count += shown;
    }
    find.querySelector("output").textContent = `${count} of ${pairs.length} pairs`;
  }

  function reset() {
    for (const field of find.querySelectorAll("input, select")) field.value = "";
    refresh();
  }

  function number(cell) {
    return cell.dataset.v === "" ? NaN : Number(cell.dataset.v);
  }

  function compare(one, other) {
    if (one.dataset.v === undefined) return one.textContent.localeCompare(other.textContent, "en", { numeric: true });
    const [a, b] = [number(one), number(other)];
    return Number.isNaN(a) ? (Number.isNaN(b) ? 0 : 1) : Number.isNaN(b) ? -1 : b - a;
  }

  function sort(table, heading) {
    const column = Array.from(heading.parentNode.children).indexOf(heading);
    const turned = heading.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
    for (const other of heading.parentNode.children) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", turned);
    const rows = Array.from(table.tBodies[0].rows);
    rows.sort((a, b) => compare(a.cells[column], b.cells[column]) * (turned === "ascending" ? 1 : -1));
    table.tBodies[0].append(...rows);
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    for (const heading of table.tHead.rows[0].cells) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      button.addEventListener("click", () => sort(table, heading));
      heading.append(button);
    }
  }

  for (const command of document.querySelectorAll("details.curl pre")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(command.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(command);
        button.textContent = "Selected: copy it with the keyboard";
      }
    });
    command.before(button);
  }

  if (!find) return;
  find.hidden = false;
  find.addEventListener("input", refresh);
  find.querySelector("button").addEventListener("click", reset);
  for (const link of document.querySelectorAll("a[data-kind]")) {
    link.addEventListener("click", () => {
      reset();
      const option = find.querySelector(`option[value="${link.dataset.kind}"]`);
      option.closest("select").value = option.value;
      refresh();
    });
  }
  addEventListener("hashchange", open);
  function open() {
    const target = document.getElementById(location.hash.slice(1));
    const pair = target && target.closest("details.pair");
    if (!pair) return;
    if (pair.hidden) reset();
    pair.open = true;
    pair.scrollIntoView();
  }
  open();
  refresh();
})();
