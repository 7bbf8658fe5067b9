// Uses the live view as people do, in a headless Chromium, while clients list and watch.
//
// node live.mjs CHROMIUM PAGE SERVER SCREENSHOTS
// PAGE: URL of the live view with its token; SERVER: URL of the Kubernetes API.
// Prints each step; exits with 1 and the reason when a check fails.
import assert from "node:assert/strict";
import http from "node:http";
import { join } from "node:path";
import { DESKTOP, PHONE, accessible, launched, noHorizontalScroll } from "./pages.mjs";

const [, , executablePath, address, server, screenshots] = process.argv;
const { browser, opened: openedAt } = await launched(executablePath);
const opened = (what, options, use) => openedAt(what, { url: address, ...options }, use);
const MAPS = "/api/v1/namespaces/default/configmaps";

/** A request to the Kubernetes API. */
async function send(method, path, body, agent = "writer/1") {
  const headers = { "user-agent": agent, "content-type": "application/json" };
  const response = await fetch(server + path, { method, headers, body: body && JSON.stringify(body) });
  return response.json();
}

const write = (name, n) => send("PUT", `${MAPS}/${name}`, { metadata: { name }, data: { n: String(n) } });

/** A client that lists, watches, and lists again after a 410; one that is not `right` watches again instead. */
async function informer(agent, right = true) {
  let version;
  for (;;) {
    version ??= (await send("GET", `${MAPS}?limit=500`, undefined, agent)).metadata.resourceVersion;
    const path = `${MAPS}?watch=1&allowWatchBookmarks=true&resourceVersion=${version}`;
    await new Promise((done) => {
      const request = http.get(server + path, { headers: { "user-agent": agent } }, (response) => {
        let rest = "";
        response.on("data", (bytes) => {
          const lines = (rest + bytes).split("\n");
          rest = lines.pop();
          for (const { type, object } of lines.map((line) => JSON.parse(line))) {
            version = type === "ERROR" ? (right ? undefined : version) : object.metadata.resourceVersion;
          }
        });
        response.on("close", done);
      });
      request.on("error", done);
    });
    await new Promise((done) => setTimeout(done, 200));
  }
}

const sum = (page, name) => page.$eval(`#sum-${name} dd`, (sum) => sum.textContent);
const untilSum = (page, name, wanted) =>
  page.waitForFunction((name, wanted) => document.querySelector(`#sum-${name} dd`).textContent === wanted, {}, name, wanted);
const untilRecord = (page, part) =>
  page.waitForFunction((part) => [...document.querySelectorAll("#record-table tbody td:nth-child(3)")].some((cell) => cell.textContent.includes(part)), {}, part);
const press = (page, verb) => page.$eval(`[data-verb=${verb}]`, (button) => button.click());
const done = (page, words) => page.waitForFunction((words) => document.querySelector("#done").textContent.includes(words), {}, words);

try {
  for (const name of ["one", "two"]) await send("POST", MAPS, { metadata: { name } });
  informer("right-client/1");
  informer("other-client/1");

  await opened("watches, records and requests are shown as they happen", {}, async (page) => {
    await untilSum(page, "open", "2");
    await write("one", 1);
    await untilRecord(page, "MODIFIED default/one");
    const clients = await page.$$eval("#watch-table tbody button", (all) => all.map((one) => one.textContent));
    assert.deepEqual(clients.sort(), ["other-client/1", "right-client/1"]);
    assert.equal(await page.$eval("body", (body) => body.dataset.link), "live");
    assert.ok(await page.$("#timeline .request.watch"), "the timeline has the watch");
  });

  await opened("the token is neither in the address, nor in the history, nor in the page", {}, async (page) => {
    const token = address.split("token=")[1];
    assert.ok(!page.url().includes(token) && !(await page.content()).includes(token));
    await page.reload();
    await untilSum(page, "open", "2");
    assert.equal(await page.evaluate(() => document.cookie), "");
  });

  await opened("410 by the button: the client lists again, and the page shows both", {}, async (page) => {
    await untilSum(page, "open", "2");
    await page.type("#client", "right-client");
    await untilSum(page, "open", "1 of 2");
    await page.waitForFunction(() => document.querySelector("#on-watches").textContent === "On the 1 watch shown");
    const [watch] = await page.$$eval("#watch-table tbody tr:not(.pad)", (rows) => rows.map((row) => row.dataset.stream));
    await press(page, "expire");
    await done(page, `expire: done on watch #${watch}`);
    await untilRecord(page, "ERROR 410 Expired");
    await untilRecord(page, `LIST ${MAPS}`);
    await page.waitForFunction((old) => {
      const row = document.querySelector("#watch-table tbody tr:not(.pad)");
      return row && row.dataset.stream !== old;
    }, {}, watch);
    assert.equal(await sum(page, "broken"), "0", "the client is right");
  });

  await opened("lag and thaw: a watch is behind, and catches up", {}, async (page) => {
    await untilSum(page, "open", "2");
    await page.$eval("[data-verb=lag] + input", (input) => (input.value = "60s"));
    await press(page, "lag");
    await done(page, "lag: done");
    await write("one", 2);
    await untilSum(page, "late", "2");
    const [sign, late] = await page.$eval("#watch-table tr.behind", (row) => [row.cells[0].textContent, row.cells[4].textContent]);
    assert.match(sign, /behind/);
    assert.match(late, /^1 \u00b7 \d/);
    await press(page, "thaw");
    await untilSum(page, "late", "0");
  });

  await opened("the history of an object has versions and watches, and no content", {}, async (page) => {
    await untilRecord(page, "MODIFIED default/one");
    await page.$$eval("#record-table tbody button", (all) => all.find((one) => one.textContent === "default/one").click());
    await page.waitForSelector("#history-table:not([hidden])");
    const rows = await page.$$eval("#history-table tbody tr", (rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
    assert.ok(rows.length >= 3 && rows.some(([, write]) => /^create by #\d+$/.test(write)), JSON.stringify(rows));
    assert.ok(rows.some(([, , , sent, to]) => sent === "2" && /MODIFIED .*-client\/1/.test(to)), JSON.stringify(rows));
  });

  await opened("the keyboard alone", {}, async (page) => {
    const { keyboard } = page;
    await untilSum(page, "open", "2");
    await keyboard.press("?");
    assert.ok(await page.$("dialog[open]"));
    await keyboard.press("Escape");
    await keyboard.press("j");
    await page.waitForFunction(() => /^On watch #\d+ of /.test(document.querySelector("#on-watches").textContent));
    assert.equal(await page.$$eval("#watch-table tr.selected", (rows) => rows.length), 1);
    await keyboard.press("Escape");
    assert.equal(await page.$$eval("#watch-table tr.selected", (rows) => rows.length), 0);
    await keyboard.press("c");
    await keyboard.type("right");
    await untilSum(page, "open", "1 of 2");
    await keyboard.press("Escape");
    await keyboard.press("Space");
    assert.equal(await page.$eval("#pause", (pause) => pause.textContent), "Go on");
    await keyboard.press("n");
    assert.match(await page.$eval(".readout", (readout) => readout.textContent), /\d s/);
    // To the first button of the actions by Tab, and Enter.
    await page.focus("#keys");
    for (let tab = 0; tab < 30 && (await page.evaluate(() => document.activeElement.dataset.verb)) !== "bookmark"; tab++) await keyboard.press("Tab");
    await keyboard.press("Enter");
    await done(page, "bookmark: done");
  });

  await opened("a paused page stays, and the trace is a file", {}, async (page) => {
    await untilRecord(page, "MODIFIED default/one");
    await page.click("#pause");
    const before = await page.$eval("#records-note", (note) => note.textContent);
    await write("two", 7);
    await page.evaluate(() => {
      globalThis.saved = new Promise((done) => (URL.createObjectURL = (blob) => (blob.text().then(done), "#saved")));
    });
    await page.click("#download");
    const lines = (await page.evaluate(() => globalThis.saved)).trimEnd().split("\n").map((line) => JSON.parse(line));
    assert.ok(lines.length > 10 && lines.every(({ seq, at, what }) => seq >= 0 && at && what));
    assert.ok(!JSON.stringify(lines).includes('"data"'), "no content");
    assert.equal(await page.$eval("#records-note", (note) => note.textContent), before);
    await page.click("#pause");
    await untilRecord(page, "MODIFIED default/two");
  });

  informer("wrong-client/1", false);
  await opened("a violation is a red band", {}, async (page) => {
    await untilSum(page, "open", "3");
    // Else the version that it watches from is also that of another client's list. The proof has to be among the newest records,
    // which are drawn, when the page learns of the violation: on a busy machine that takes seconds.
    let n = 0;
    const writing = setInterval(() => write("two", n++), 200);
    await press(page, "expire");
    await page.waitForSelector("#violations:not([hidden])");
    clearInterval(writing);
    assert.match(await page.$eval("#found", (found) => found.textContent), /wrong-client\/1/);
    await page.waitForSelector("#timeline .bands rect");
    await page.waitForSelector("#watch-table tr.accused");
    const [colour, ground] = await page.$eval("#violations", (box) => [getComputedStyle(box).borderLeftColor, getComputedStyle(box).backgroundColor]);
    assert.notEqual(colour, ground);
    await page.screenshot({ path: join(screenshots, "violation.png") });
  });

  for (const [size, viewport] of Object.entries({ desktop: DESKTOP, phone: PHONE })) {
    await opened(`${size}: accessible, light and dark, without motion, and no wider than the window`, { viewport }, async (page) => {
      await untilSum(page, "open", "3");
      await page.waitForSelector("#timeline .request");
      for (const scheme of ["light", "dark"]) {
        await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }, { name: "prefers-reduced-motion", value: "reduce" }]);
        await noHorizontalScroll(page);
        await accessible(page);
        await page.screenshot({ path: join(screenshots, `${size}-${scheme}.png`) });
      }
      assert.equal(await page.evaluate(() => document.getAnimations().length), 0);
    });
  }

  await openedAt("a wrong token is reported, and nothing is shown", { url: `${address.split("#")[0]}#token=wrong`, status: 401 }, async (page) => {
    await page.waitForFunction(() => document.body.dataset.link === "locked");
    assert.match(await page.$eval("#link", (link) => link.textContent), /token is missing or wrong/);
    assert.equal(await page.$eval("main", (main) => getComputedStyle(main).display), "none");
  });
} finally {
  await browser.close();
}
process.exit(process.exitCode ?? 0);
