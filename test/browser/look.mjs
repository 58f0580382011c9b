// Looks at pages in Chromium: what is wrong with them in both colour schemes, at two widths, and for the keyboard alone.
// Each is printed as a line.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const patience = 300_000; // what ends a test that hangs: a loaded machine may take its time
let axe;

export const wrong = (...words) => console.log("wrong:", ...words);

// launch starts a browser. modules is the folder with axe-core and playwright-core.
export function launch(modules) {
  const require = createRequire(modules + "/");
  axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
  return require("playwright-core").chromium.launch({
    executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"], timeout: patience,
  });
}

// tab opens an empty one. A browser starts a process for each, so one shows many pages.
export async function tab(context) {
  context.setDefaultTimeout(patience);
  const page = await context.newPage();
  const at = () => page.url() + ":";
  page.on("console", (m) => { if (["error", "warning"].includes(m.type())) wrong(at(), "console:", m.text(), m.location().url); });
  page.on("pageerror", (e) => wrong(at(), e));
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (e) => console.error("policy: " + e.violatedDirective));
  });
  return page;
}

// each looks at a page. It makes pictures of it in a folder if that is given.
export async function each(page, name, url, pictures) {
  await page.goto(url);
  if (!await page.locator("main h1").count()) wrong(name, "has no heading");
  await page.evaluate(axe);
  for (const width of [1280, 320]) {
    await page.setViewportSize({ width, height: 860 });
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      const where = `${name}, ${colorScheme}, ${width}:`;
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (over > 0) wrong(where, "scrolls sideways by", over);
      // The other scheme differs in its colours alone.
      const runOnly = colorScheme === "dark" ? ["color-contrast"] : undefined;
      const options = { resultTypes: ["violations"], ...runOnly && { runOnly } };
      const { violations } = await page.evaluate((o) => axe.run(o), options);
      for (const v of violations) wrong(where, v.id, v.help, v.nodes.map((n) => n.html).slice(0, 3).join(" "));
      if (pictures) await page.screenshot({ path: `${pictures}/${name}-${colorScheme}-${width}.png`, fullPage: width < 600 });
    }
  }
  await page.setViewportSize({ width: 1280, height: 860 });
  await keyboard(page, name);
}

// keyboard goes through a page with the tab key, and compares what it reaches with what there is.
async function keyboard(page, name) {
  const what = await page.evaluate(() => {
    globalThis.reached = new Set();
    const all = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, summary")];
    return all.filter((e) => e.getClientRects().length).length;
  });
  for (let i = 0; i < what + 5; i++) {
    await page.keyboard.press("Tab");
    const { done, hidden } = await page.evaluate(() => {
      const e = document.activeElement;
      if (e === document.body || reached.has(e)) return { done: true };
      reached.add(e);
      return { hidden: getComputedStyle(e).outlineStyle === "none" ? e.outerHTML : "" };
    });
    if (done) break;
    if (hidden) wrong(name, "focus is not to be seen on", hidden);
  }
  const missed = await page.evaluate(() => [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, summary")]
    .filter((e) => e.getClientRects().length && !reached.has(e)).map((e) => e.outerHTML));
  if (missed.length) wrong(name, "the keyboard does not reach", missed.slice(0, 3).join(" "));
}

