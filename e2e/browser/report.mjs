// Uses an HTML report as people do, in a headless Chromium: opens it, moves by keyboard, filters, zooms, follows links.
//
// node report.mjs CHROMIUM REPORT.html WIDE.html SCREENSHOTS
// WIDE.html has more columns than a window has room for.
// Prints each step; exits with 1 and the reason when a check fails.
import assert from "node:assert/strict";
import { join } from "node:path";
import { DESKTOP, PHONE, accessible, launched, noHorizontalScroll, settled } from "./pages.mjs";

const [, , executablePath, report, wide, screenshots] = process.argv;
const { browser, opened: openedFile } = await launched(executablePath);
const opened = (what, options, use) => openedFile(what, { file: report, ...options }, use);

/** Text about the selected event, or about the open timeline. */
const readout = (page) =>
  page.evaluate(() => (document.querySelector("details:has(tr.selected)") ?? document.querySelector("details.attempt[open]")).querySelector(".readout").textContent);
const hidden = (page) => page.$$eval("details.attempt[open] div.events tr[hidden]", (rows) => rows.length);
/** Width of the visible part in the overview. */
const part = (page) => page.$eval("details.attempt[open] .brush .selection", (part) => part.getBBox().width);

try {
  for (const [size, viewport] of Object.entries({ desktop: DESKTOP, phone: PHONE })) {
    for (const scheme of ["light", "dark"]) {
      await opened(`${size}, ${scheme}: accessible, and no wider than the window`, { viewport, scheme }, async (page) => {
        await noHorizontalScroll(page);
        await accessible(page);
        await page.screenshot({ path: join(screenshots, `${size}-${scheme}.png`) });
        await page.evaluate(() => document.querySelector("details[open] figure").scrollIntoView());
        await settled(page);
        await noHorizontalScroll(page);
        await page.screenshot({ path: join(screenshots, `${size}-${scheme}-timeline.png`) });
      });
    }
  }

  await opened("many columns scroll inside the page", { viewport: PHONE, file: wide }, async (page) => {
    await noHorizontalScroll(page);
    const [table, window] = await page.$eval("#matrix .wide", (region) => [region.scrollWidth, region.clientWidth]);
    assert.ok(table > window, "the table is wider than the window");
    await page.$eval("#matrix .wide", (region) => region.scrollTo(600, 0));
    await page.$eval("#matrix", (matrix) => matrix.scrollIntoView());
    await page.screenshot({ path: join(screenshots, "phone-wide.png") });
  });

  await opened("keys move between tests and events", {}, async (page) => {
    const { keyboard } = page;
    await keyboard.press("?");
    assert.ok(await page.$("dialog[open]"));
    await keyboard.press("Escape");
    assert.equal(await page.$("dialog[open]"), null);

    await keyboard.press("j");
    const first = await page.evaluate(() => document.activeElement.closest("details.attempt")?.id);
    await keyboard.press("j");
    const second = await page.evaluate(() => document.activeElement.closest("details.attempt")?.id);
    assert.ok(first && second && first !== second, `${first}, ${second}`);
    await keyboard.press("k");
    assert.equal(await page.evaluate(() => document.activeElement.closest("details.attempt").id), first);

    await keyboard.press("v");
    assert.match(await readout(page), /✗/, "the violation");
    assert.equal(await page.$$eval("details.attempt[open]", (all) => all.length), 1, "the keys close what they opened");
    const [row] = await page.$$eval("tr.selected", (rows) => rows.map((row) => `#${row.id} ${row.classList.contains("proof")}`));
    assert.match(row, / true$/);
    assert.equal(`${decodeURIComponent(await page.evaluate(() => location.hash))} true`, row, "the address is a link to the event");
    const proof = await readout(page);
    await keyboard.press("n");
    assert.notEqual(await readout(page), proof);
    await keyboard.press("p");
    assert.equal(await readout(page), proof);

    const whole = await part(page);
    await keyboard.press("+");
    await settled(page);
    assert.ok((await part(page)) < whole * 0.6, "zoomed in");
    const before = await page.$eval("details[open] .brush .selection", (part) => part.getBBox().x);
    await page.focus("details[open] .plot");
    await keyboard.press("ArrowLeft");
    await settled(page);
    const after = await page.$eval("details[open] .brush .selection", (part) => part.getBBox().x);
    assert.ok(after < before, `moved from ${before} to ${after}`);
    await keyboard.press("0");
    await settled(page);
    assert.ok(Math.abs((await part(page)) - whole) < 1, "all of it again");
  });

  await opened("the filter of the tests", {}, async (page) => {
    const { keyboard } = page;
    const shown = () => page.$$eval("table.matrix tr.test:not([hidden])", (rows) => rows.length);
    const all = await shown();
    await keyboard.press("/");
    await keyboard.type("older-bookmark");
    assert.equal(await shown(), 1);
    assert.equal(await page.$$eval("article.test:not([hidden])", (all) => all.length), 1);
    assert.equal(await page.$eval("#count", (count) => count.value), `1 of ${all} tests`);
    await keyboard.press("Escape");
    assert.equal(await shown(), all);
    await page.select("#show", "bad");
    assert.ok((await shown()) > 0 && (await shown()) < all, "failures alone");
  });

  await opened("the filter of the events, and the lanes", {}, async (page) => {
    const { keyboard } = page;
    assert.equal(await hidden(page), 0);
    await keyboard.press("e");
    await keyboard.type("watch");
    const some = await hidden(page);
    assert.ok(some > 0);
    assert.match(await readout(page), /^\d+ of \d+ events$/);
    assert.ok(await page.$("details[open] circle.sifted"), "marks fade");
    await keyboard.press("Escape");
    assert.equal(await hidden(page), 0);
    await page.click("details[open] .lane.client input");
    assert.equal(await hidden(page), await page.$$eval("details[open] tr[data-lane=client]", (rows) => rows.length));
  });

  await opened("brushing, clicking, linear time", {}, async (page) => {
    const { mouse } = page;
    await page.evaluate(() => document.querySelector("details[open] figure").scrollIntoView({ block: "center" }));
    const whole = await part(page);
    const marks = () => page.$$eval("details[open] .marks circle", (all) => all.length);
    const all = await marks();
    const box = await (await page.$("details[open] .overview .ground")).boundingBox();
    const y = box.y + box.height / 2;
    // From the handle at the right end to the middle.
    await mouse.move(box.x + box.width - 1, y);
    await mouse.down();
    await mouse.move(box.x + box.width * 0.7, y, { steps: 4 });
    await mouse.move(box.x + box.width * 0.5, y, { steps: 4 });
    await mouse.up();
    await settled(page);
    const half = await part(page);
    assert.ok(half < whole * 0.6 && half > whole * 0.4, `${half} of ${whole}`);
    assert.ok((await marks()) < all, "invisible marks are not drawn");
    await page.screenshot({ path: join(screenshots, "brushed.png") });
    const mark = await (await page.$("details[open] .marks circle.server")).boundingBox();
    await mouse.click(mark.x + mark.width / 2, mark.y + mark.height / 2);
    assert.match(await readout(page), /Server and store/);
    await page.evaluate(() => [...document.querySelectorAll("details[open] .controls label")].find((one) => /Linear/.test(one.textContent)).click());
    await settled(page);
    assert.ok(Math.abs((await part(page)) - whole) < 1);
    assert.ok(await page.$("details[open] .axis .tick"));
  });

  let event;
  await opened("every internal link has a target", {}, async (page) => {
    const lost = await page.evaluate(() =>
      [...document.querySelectorAll("a[href]")]
        .map((link) => link.getAttribute("href"))
        .filter((to) => !to.startsWith("#") || !document.getElementById(decodeURIComponent(to.slice(1)))),
    );
    assert.deepEqual(lost, []);
    // One in a test that is closed at first.
    event = await page.evaluate(() => [...document.querySelectorAll("details.attempt:not([open]) tr.proof")][0].id);
  });
  await opened("a link to an event opens its test", { fragment: `#${event}` }, async (page) => {
    await settled(page);
    assert.ok(await page.evaluate((id) => document.getElementById(id).closest("details").open, event));
    const top = await page.evaluate((id) => document.getElementById(id).getBoundingClientRect().top, event);
    assert.ok(top > 0 && top < DESKTOP.height, `at ${top} px`);
    assert.equal(await page.evaluate((id) => document.getElementById(id).classList.contains("selected"), event), true);
  });

  await opened("a truncated link has no effect", { fragment: "#kube-runtime/%E2%82" }, settled);

  await opened("without JavaScript all text is visible", { script: false, viewport: PHONE }, async (page) => {
    await noHorizontalScroll(page);
    assert.equal(await page.$eval("#toolbar", (bar) => getComputedStyle(bar).display), "none", "the toolbar is hidden");
    assert.equal(await page.$$eval("figure.timeline:not([hidden])", (all) => all.length), 0);
    const closed = await page.$("details.attempt:not([open]) > summary");
    await closed.click();
    const read = await page.$$eval("details.attempt[open] div.events tr", (rows) => rows.filter((row) => row.getClientRects().length > 0).length);
    assert.ok(read > 20, `${read} rows`);
    assert.ok(await page.$eval("details.attempt[open] .found .sentence", (sentence) => sentence.textContent.length > 20));
    await page.screenshot({ path: join(screenshots, "phone-without-javascript.png"), fullPage: false });
  });
} finally {
  await browser.close();
}
