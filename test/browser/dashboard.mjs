// Looks at the pages of a dashboard in Chromium, as TestDashboardInABrowser asks.
//
//   node dashboard.mjs MODULES URL [PICTURES]
//
// It prints what is wrong, a line each, and asks on lines of their own for what the test then does: "do hold" for a lock
// /live/new, "do stop" for the end of the dashboard.
import { argv } from "node:process";
import { each, launch, tab, wrong } from "./look.mjs";

const [modules, url, pictures] = argv.slice(2);

const pages = {
  overview: "", day: "?span=day", locks: "locks", "locks, none": "locks?q=none", lock: "lock?path=/jobs/report",
  "lock, hostile": "lock?path=" + encodeURIComponent("/\u202e<b>&\"'/" + "long".repeat(60)),
  "lock, missing": "lock?path=/gone", waits: "waits", leaders: "leaders", queues: "queues",
  queue: "queue?path=/queues/mail", items: "items?path=/queues/mail",
  "items, delayed": "items?kind=delayed&path=/queues/mail", "items, none": "items?kind=waiting&path=/queues/mail",
  item: "", "item, missing": "item?path=/queues/mail&id=none", sessions: "sessions", servers: "servers", tree: "tree",
  "tree, node": "tree?path=/jobs/report", changes: "changes", revoke: "",
  "queue, resume": "changequeue?path=/queues/mail&do=resume", "queue, purge": "changequeue?path=/queues/mail&do=purge",
  "queue, missing": "changequeue?path=/gone&do=pause",
};

const browser = await launch(modules);

// follow clicks what leads to another page, and waits for all of that: a click alone returns before it is there.
async function follow(page, what) {
  const loaded = page.waitForEvent("load");
  await what.click();
  await loaded;
}

// reloaded reloads a page until there is what is looked for: it is being read.
async function reloaded(page, what) {
  for (let i = 0; !await what.count(); i++) {
    if (i === 200) throw new Error(`${page.url()}: there is no ${what}`);
    await page.reload();
  }
}

async function skips() {
  const context = await browser.newContext();
  const page = await tab(context);
  await page.goto(url + "locks");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.waitForURL(/#/);
  await page.keyboard.press("Tab");
  const at = await page.evaluate(() => document.activeElement.id);
  if (at !== "q") wrong("the link that skips leads to", at);
  await context.close();
}

async function withoutScripts() {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await tab(context);
  await page.goto(url + pages.lock);
  const revoke = page.getByRole("link", { name: /^Revoke/ });
  await reloaded(page, revoke);
  pages.revoke = await revoke.first().getAttribute("href");

  await page.goto(url);
  await follow(page, page.getByRole("navigation").getByRole("link", { name: "Locks" }));
  await page.getByLabel("Filter").fill("report");
  await follow(page, page.getByRole("button", { name: "Show" }));
  await reloaded(page, page.locator("tbody th a.path"));
  const paths = await page.locator("tbody th a.path").allTextContents();
  if (paths.join() !== "/jobs/report") wrong("without scripts the filter shows", paths.join());
  await follow(page, page.locator("tbody th a.path"));
  await reloaded(page, page.getByText("Holder", { exact: true }));

  await page.goto(url + "lock?path=/backup/eu-central-1/customers");
  await reloaded(page, revoke);
  await follow(page, revoke);
  await page.getByLabel("Reason").fill("a trial: it is on the page of changes");
  await follow(page, page.getByRole("button", { name: "Revoke" }));
  await follow(page, page.getByRole("link", { name: "Changes" }));
  if (!await page.getByText("a trial").count()) wrong("changes does not show a revocation");

  await page.goto(url + "queue?path=/queues/mail");
  const pause = page.getByRole("link", { name: "Pause" });
  await reloaded(page, pause);
  await follow(page, pause);
  await page.getByLabel("Reason").fill("mail is down");
  await follow(page, page.getByRole("button", { name: "Pause" }));
  const resume = page.getByRole("link", { name: "Resume" });
  await reloaded(page, resume);
  if (!await page.getByText("mail is down").count()) wrong("the page of a queue does not say why it is paused");

  await follow(page, page.getByRole("main").getByRole("link", { name: "Dead items", exact: true }));
  const dead = page.locator("tbody th a.path");
  await reloaded(page, dead);
  const id = await dead.textContent();
  await follow(page, page.getByRole("link", { name: "ready", exact: true }));
  await page.getByLabel("Id of an item").fill(id);
  await follow(page, page.getByRole("button", { name: "Find" }));
  await reloaded(page, page.getByText("no such mailbox"));
  pages.item = page.url().slice(url.length);
  await context.close();
}

// live has more tabs open than a browser has connections to a host. All of them show what is new, and keep their focus.
async function live() {
  const context = await browser.newContext();
  const tabs = await Promise.all(Array.from({ length: 7 }, () => tab(context)));
  await Promise.all(tabs.map((page, i) => page.goto(url + (i % 2 ? "locks" : ""))));
  await tabs[1].getByLabel("Filter").focus();
  await tabs[1].keyboard.type("ne");
  await tabs[3].locator("tbody a.path").first().focus();
  const focused = await tabs[3].evaluate(() => document.activeElement.textContent);
  console.log("do hold");
  await Promise.all(tabs.map((page, i) => page.getByText("/live/new").first().waitFor()
    .catch(() => wrong(`tab ${i} is not kept up to date`))));
  if (await tabs[1].getByLabel("Filter").inputValue() !== "ne") wrong("what is typed is lost");
  if (await tabs[3].evaluate(() => document.activeElement.textContent) !== focused) wrong("the focus is lost:", focused, await tabs[3].evaluate(() => document.activeElement.outerHTML.slice(0, 300)));
  const ages = () => tabs[0].locator(".about time").textContent();
  if (!/^\d+m?\d*s$/.test(await ages())) wrong("the age is", await ages());
  const page = tabs[0];
  page.removeAllListeners("console"); // requests fail from here on
  for (const other of tabs.slice(1)) await other.close();
  console.log("do stop");
  await page.getByRole("alert").waitFor().catch(() => wrong("it does not say that the dashboard has gone"));
  await context.close();
}

await withoutScripts();
const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
const names = Object.keys(pages);
await Promise.all([1, 2].map(async () => {
  const page = await tab(context);
  for (let n = names.shift(); n; n = names.shift()) await each(page, n, url + pages[n], pictures);
  await page.close();
}));
if (!pictures) {
  await skips();
  await live();
}
await browser.close();
process.exit(0);
