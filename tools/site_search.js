// Print the first three pages that a built site's search finds for each question of standard input.
//
// The site's own scripts run, with its order of results: node tools/site_search.js docs/_build/html
const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");

const site = process.argv[2];
const scripts = ["sphinx_highlight", "language_data", "searchtools"]
  .map((name) => path.join(site, "_static", `${name}.js`))
  .concat(path.join(site, "searchindex.js"))
  .map((file) => new vm.Script(fs.readFileSync(file, "utf8"), { filename: file }));

const nothing = () => null;
const newPage = (question) => {
  const page = vm.createContext({
    location: { search: `?q=${encodeURIComponent(question)}` },
    addEventListener: nothing,
    document: { readyState: "loading", addEventListener: nothing, getElementById: nothing },
    localStorage: { setItem: nothing, removeItem: nothing },
    DOCUMENTATION_OPTIONS: {},
    URLSearchParams,
    _ready: nothing,
    _removeChildren: nothing,
    _: (text) => text,
  });
  page.window = page;
  scripts.forEach((script) => script.runInContext(page));
  return page;
};

const firstPages = (question) => {
  const parsed = `Search._parseQuery(${JSON.stringify(question)})`;
  const results = vm.runInContext(`Search._performSearch(...${parsed})`, newPage(question));
  return [...new Set(results.reverse().map(([document]) => document))].slice(0, 3);
};

console.log(JSON.stringify(JSON.parse(fs.readFileSync(0)).map(firstPages)));
