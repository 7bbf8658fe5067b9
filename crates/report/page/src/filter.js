// The filter of the tests: rows of the matrix and the sections of the tests.

const SHOWN = { all: ["ok", "bad", "new"], bad: ["bad", "new"], new: ["new"] };

export function filterTests() {
  const toolbar = document.getElementById("toolbar");
  // A page of one attempt has none.
  if (!toolbar) return;
  const filter = document.getElementById("filter");
  const show = document.getElementById("show");
  const count = document.getElementById("count");
  const rows = [...document.querySelectorAll("table.matrix tr.test")];
  const sections = new Map([...document.querySelectorAll("article.test")].map((one) => [one.dataset.id, one]));
  const groups = [...document.querySelectorAll("table.matrix tbody")];

  const apply = () => {
    const terms = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const { words, state, id } = row.dataset;
      const fits = (term) => (/^-./.test(term) ? !words.includes(term.slice(1)) : words.includes(term));
      row.hidden = !(SHOWN[show.value].includes(state) && terms.every(fits));
      shown += row.hidden ? 0 : 1;
      const section = sections.get(id);
      if (section) section.hidden = row.hidden;
    }
    for (const group of groups) group.hidden = !group.querySelector("tr.test:not([hidden])");
    count.value = shown === rows.length ? `${rows.length} tests` : `${shown} of ${rows.length} tests`;
  };

  toolbar.hidden = false;
  toolbar.addEventListener("submit", (event) => event.preventDefault());
  filter.addEventListener("input", apply);
  show.addEventListener("change", apply);
  apply();
}
