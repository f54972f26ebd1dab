"use strict";
// With JavaScript off everything is there; this adds sorting, filtering and folding.
(function () {
  var root = document.querySelector(".sklearn-ethiclens");
  function make(tag, properties) { return Object.assign(document.createElement(tag), properties); }
  function text(row, column) { return row.cells[column].textContent.trim(); }

  // A cell as what it is sorted by: a number if it begins with one; an empty or undefined one comes last in either order.
  function key(words) {
    var found = /^[\[<|]?\s*(-?(?:inf|\d*\.?\d+(?:e[-+]?\d+)?))/i.exec(words);
    if (!words || /^(undefined|no labels)/.test(words)) { return null; }
    return found ? Number(found[1].replace(/inf/i, "Infinity")) - (words[0] === "<" ? 1e-12 : 0) : NaN;
  }
  function sort(table, column, down) {
    var body = table.tBodies[0];
    var rows = Array.from(body.rows).map(function (row) { return { row: row, words: text(row, column) }; });
    rows.forEach(function (entry) { entry.key = key(entry.words); });
    var numbers = rows.every(function (entry) { return entry.key === null || !Number.isNaN(entry.key); });
    rows.sort(function (a, b) {
      if (a.key === null || b.key === null) { return (a.key === null) - (b.key === null); }
      var order = numbers ? (a.key < b.key ? -1 : Number(a.key > b.key)) : a.words.localeCompare(b.words, "en", { numeric: true });
      return down ? -order : order;
    });
    body.append.apply(body, rows.map(function (entry) { return entry.row; }));
  }

  function toolbar(table) {
    var tools = make("div", { className: "tools" });
    table.closest(".scroll").before(tools);
    return tools;
  }
  root.querySelectorAll("table.sortable").forEach(function (table) {
    if (table.tBodies.length !== 1 || table.tBodies[0].rows.length < 2) { return; }
    var heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach(function (head, column) {
      var button = make("button", { type: "button", title: "Sort by this column" });
      button.append.apply(button, Array.from(head.childNodes));
      head.append(button);
      button.addEventListener("click", function () {
        var down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        sort(table, column, down);
      });
    });
  });

  root.querySelectorAll("table.filterable").forEach(function (table) {
    var rows = Array.from(table.tBodies[0].rows);
    if (rows.length < 2) { return; }
    var heads = Array.from(table.tHead.rows[0].cells).map(function (head) { return head.textContent.trim(); });
    var at = heads.indexOf("verdict");
    var tools = toolbar(table);
    var find = make("input", { type: "search", autocomplete: "off" });
    var state = make("select", {});
    var said = make("span", {});
    said.setAttribute("role", "status");
    var verdicts = new Set(rows.map(function (row) { return text(row, at); }));
    state.append(make("option", { value: "", textContent: "all" }));
    verdicts.forEach(function (verdict) { state.append(make("option", { value: verdict, textContent: verdict })); });
    [["Rows that contain ", find], ["Verdict ", state]].forEach(function (pair) {
      var caption = make("label", { textContent: pair[0] });
      caption.append(pair[1]);
      tools.append(caption);
    });
    tools.append(said);
    var contents = rows.map(function (row) { return row.textContent.toLowerCase(); });
    function filter() {
      var words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
      var n = 0;
      rows.forEach(function (row, i) {
        var shown = (!state.value || text(row, at) === state.value) && words.every(function (word) { return contents[i].includes(word); });
        row.hidden = !shown;
        n += shown;
      });
      said.textContent = n + " of " + rows.length + " rows";
    }
    find.addEventListener("input", filter);
    state.addEventListener("change", filter);
    if (rows.length > 20) { table.closest(".scroll").classList.add("tall"); }
    filter();
  });

  var folds = Array.from(root.querySelectorAll("details"));
  function foldAll(open) { folds.forEach(function (fold) { fold.open = open; }); }
  if (folds.length) {
    foldAll(false);
    var tools = make("div", { className: "tools" });
    [["Expand all", true], ["Collapse all", false]].forEach(function (pair) {
      var button = make("button", { type: "button", textContent: pair[0] });
      button.addEventListener("click", function () { foldAll(pair[1]); });
      tools.append(button);
    });
    root.querySelector("nav").append(tools);
    var before = [];
    window.addEventListener("beforeprint", function () { before = folds.map(function (fold) { return fold.open; }); foldAll(true); });
    window.addEventListener("afterprint", function () { folds.forEach(function (fold, i) { fold.open = before[i]; }); });
  }
})();
