// Bundles src/page.js (the report) and src/live.js (the live view) with the d3 modules they use into dist/, with the licences of
// these in front.
import { build } from "esbuild";
import { readFileSync, readdirSync } from "node:fs";

const options = {
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "ascii",
  legalComments: "none",
};

for (const script of ["page", "live"]) {
  const entryPoints = [`src/${script}.js`];
  const { metafile } = await build({ ...options, entryPoints, metafile: true, write: false });
  const banner = { js: licences(Object.keys(metafile.inputs)) };
  await build({ ...options, entryPoints, banner, outfile: `dist/${script}.js` });
}

/** The licences of the packages that a bundle has files of. */
function licences(files) {
  const used = files.map((path) => /^node_modules\/([^/]+)\//.exec(path)?.[1]).filter(Boolean);
  const licences = new Map();
  for (const name of [...new Set(used)].sort()) {
    const folder = `node_modules/${name}`;
    const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
    const text = readFileSync(`${folder}/${file}`, "utf8").trim();
    const { version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
    licences.set(text, [...(licences.get(text) ?? []), `${name} ${version}`]);
  }
  return [...licences].map(([text, names]) => `/*! ${names.join(", ")}\n\n${text}\n*/`).join("\n");
}
