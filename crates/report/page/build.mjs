// Bundles src/page.js and the d3 modules it uses into dist/page.js, with their licences in front.
import { build } from "esbuild";
import { readFileSync, readdirSync } from "node:fs";

const { metafile } = await build({
  entryPoints: ["src/page.js"],
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "ascii",
  legalComments: "none",
  metafile: true,
  write: false,
});
const used = Object.keys(metafile.inputs)
  .map((path) => /^node_modules\/([^/]+)\//.exec(path)?.[1])
  .filter(Boolean);
const packages = [...new Set(used)].sort();
const licences = new Map();
for (const name of packages) {
  const folder = `node_modules/${name}`;
  const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
  const text = readFileSync(`${folder}/${file}`, "utf8").trim();
  const { version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  licences.set(text, [...(licences.get(text) ?? []), `${name} ${version}`]);
}
const banner = [...licences].map(([text, names]) => `/*! ${names.join(", ")}\n\n${text}\n*/`).join("\n");
await build({
  entryPoints: ["src/page.js"],
  outfile: "dist/page.js",
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "ascii",
  legalComments: "none",
  banner: { js: banner },
});
