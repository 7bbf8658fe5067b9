// Opens pages of `cargo xtask site` as people do, in a headless Chromium: on a desktop and a phone, light and dark, and without
// JavaScript.
//
// node site.mjs CHROMIUM SITE SCREENSHOTS PAGE…
// The last page is a failure with evidence. Prints each step; exits with 1 and the reason when a check fails.
import assert from "node:assert/strict";
import { join } from "node:path";
import { DESKTOP, PHONE, accessible, launched, noHorizontalScroll, settled } from "./pages.mjs";

const [, , executablePath, site, screenshots, ...paths] = process.argv;
const { browser, opened } = await launched(executablePath);
const failure = join(site, paths.at(-1));

try {
  for (const path of paths) {
    for (const [size, viewport] of Object.entries({ desktop: DESKTOP, phone: PHONE })) {
      for (const scheme of ["light", "dark"]) {
        await opened(`${path}, ${size}, ${scheme}`, { file: join(site, path), viewport, scheme }, async (page) => {
          await noHorizontalScroll(page);
          await accessible(page);
          const name = `${path.replaceAll("/", "-")}-${size}-${scheme}.png`;
          await page.screenshot({ path: join(screenshots, name) });
        });
      }
    }
    await opened(`${path}, without JavaScript`, { file: join(site, path), viewport: PHONE, script: false }, async (page) => {
      await noHorizontalScroll(page);
      const read = await page.$eval("main", (main) => main.innerText.length);
      assert.ok(read > 100, `${read} characters`);
    });
  }

  await opened("a failure has a timeline, and keys move in it", { file: failure }, async (page) => {
    const marks = await page.$$eval("figure.timeline:not([hidden]) .marks circle", (all) => all.length);
    assert.ok(marks > 3, `${marks} marks`);
    await page.keyboard.press("v");
    await settled(page);
    assert.equal(await page.$$eval("tr.selected.proof", (rows) => rows.length), 1, "the violation");
    for (const key of ["/", "?", "m", "Escape"]) await page.keyboard.press(key);
  });

  await opened("without JavaScript a failure has all events as a table", { file: failure, script: false }, async (page) => {
    assert.equal(await page.$$eval("figure.timeline:not([hidden])", (all) => all.length), 0);
    const rows = await page.$$eval("div.events tr", (all) => all.filter((row) => row.getClientRects().length > 0).length);
    assert.ok(rows > 5, `${rows} rows`);
    assert.ok(await page.$eval(".found .sentence", (sentence) => sentence.textContent.length > 20));
    assert.ok(await page.$(".line.marked"), "the lines that are contradicted");
  });
} finally {
  await browser.close();
}
