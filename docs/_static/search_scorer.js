// How the results of a search are ordered: Sphinx puts this before its own script.
//
// The name in the query comes first, however it is written (`xstack.grad`, `grad`);
// of other names those with short paths, then pages, by what Sphinx makes of them, and by how
// much of the question stands in their titles; those for readers before those about the code.
const queryText = (new URLSearchParams(window.location.search).get("q") || "")
  .trim().toLowerCase().replace(/\(\)$/, "");

const stemsOf = (text) => {
  const stemmer = new Stemmer();
  const words = text.toLowerCase().split(/\W+/).filter((word) => word && !stopwords.has(word));
  return new Set(words.map((word) => stemmer.stemWord(word)));
};
const isAboutCode = (page) => /^(reference\/api|_modules|design|decisions|benchmarks)\//.test(page);
const pageScore = (page, title, score) => {
  const wanted = stemsOf(queryText);
  const inTitle = [...stemsOf(title)].filter((stem) => wanted.has(stem)).length;
  return score + 5 * inTitle - (isAboutCode(page) ? 10 : 0);
};

var Scorer = {
  score: ([page, title, , , score, , kind]) => {
    if (kind !== "object") return pageScore(page, title, score);
    const name = title.toLowerCase();
    const isName = name === queryText || name === `xstack.${queryText}`;
    return score + (isName ? 100 : 0) - title.split(".").length / 100;
  },
  // Sphinx's own numbers: of names, of the priority of objects, of titles, of words in the text.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
