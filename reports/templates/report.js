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

  // What is not known is last in both directions.
  function compare(one, other, turn) {
    if (one.dataset.v === undefined) {
      return turn * one.textContent.localeCompare(other.textContent, "en", { numeric: true });
    }
    const known = (one.dataset.v !== "") - (other.dataset.v !== "");
    return known ? -known : turn * (Number(one.dataset.v) - Number(other.dataset.v));
  }

  function sort(table, heading) {
    const column = Array.from(heading.parentNode.children).indexOf(heading);
    const rows = Array.from(table.tBodies[0].rows);
    const [first, second] = rows[0].cells[column].dataset.v === undefined
      ? ["ascending", "descending"] : ["descending", "ascending"];
    const turned = heading.getAttribute("aria-sort") === first ? second : first;
    for (const other of heading.parentNode.children) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", turned);
    const turn = turned === "ascending" ? 1 : -1;
    rows.sort((one, other) => compare(one.cells[column], other.cells[column], turn));
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
