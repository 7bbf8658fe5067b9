// What the tests of pages share: a headless Chromium that opens files, and what every page must be.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export const DESKTOP = { width: 1280, height: 900 };
export const PHONE = { width: 390, height: 844 };

/**
 * Starts a browser; `opened` opens a file and calls `use`, and fails on any request or console message meanwhile. A page of a
 * `url` may request its own server, and a response of this `status` is expected.
 */
export async function launched(executablePath) {
  // Containers have no user namespaces, and little shared memory.
  const args = ["--no-sandbox", "--disable-dev-shm-usage"];
  const browser = await puppeteer.launch({ executablePath, headless: true, args });
  async function opened(what, { file, url, status, viewport = DESKTOP, scheme = "light", script = true, fragment = "" }, use) {
    const address = url ?? pathToFileURL(file).href;
    const isOwn = (requested) => (url ? new URL(requested).origin === new URL(url).origin : requested.split("#")[0] === address);
    const page = await browser.newPage();
    const complaints = [];
    page.on("console", (message) => {
      const isExpected = status && message.text().includes(`status of ${status}`);
      if (["error", "warn"].includes(message.type()) && !isExpected) complaints.push(`console: ${message.text()}`);
    });
    page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
    page.on("request", (request) => {
      if (!isOwn(request.url())) complaints.push(`request: ${request.url()}`);
    });
    await page.setJavaScriptEnabled(script);
    await page.setViewport(viewport);
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await page.goto(address + fragment, { waitUntil: "load" });
    await use(page);
    assert.deepEqual(complaints, [], what);
    await page.close();
    console.log(`ok ${what}`);
  }
  return { browser, opened };
}

export const settled = (page) =>
  page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

/** Fails if the page is wider than its window. */
export async function noHorizontalScroll(page) {
  const [wide, seen] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  assert.ok(wide <= seen, `the page is ${wide} px wide in a window of ${seen} px`);
}

/** Fails if axe-core finds a violation. */
export async function accessible(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const found = violations.flatMap(({ id, help, nodes }) => nodes.map((node) => `${id}: ${help}: ${node.html.slice(0, 200)}`));
  assert.deepEqual(found, []);
}
