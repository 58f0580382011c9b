// Signs in at an issuer in Chromium, as TestSignInInABrowser asks.
//
//   node signin.mjs MODULES URL [PICTURES]
//
// It prints what is wrong, a line each.
import { argv } from "node:process";
import { each, launch, tab, wrong } from "./look.mjs";

const [modules, url, pictures] = argv.slice(2);
const browser = await launch(modules);

// signIn is at the issuer, and comes back to a page.
async function signIn(page, to) {
  await page.getByRole("button", { name: "Be ann" }).click();
  await page.waitForURL(url + to).catch(() => wrong("it comes back to", page.url()));
  if (!await page.getByText("ann@example.com").count()) wrong(to, "does not say who has signed in");
}

const context = await browser.newContext();
const page = await tab(context);
await page.goto(url + "lock?path=/jobs/report");
await signIn(page, "lock?path=/jobs/report");
await each(page, "signed in", url + "locks", pictures);
// Another page notices, and does not sign in by itself.
const other = await tab(context);
await other.goto(url + "waits");
other.removeAllListeners("console"); // its script is refused
await page.getByRole("button", { name: "Sign out" }).click();
await page.waitForURL(url);
await other.getByRole("heading", { name: "Signed out" }).waitFor();
await other.close();
await each(page, "signed out", url, pictures);
await page.getByRole("link", { name: "Sign in" }).click();
await signIn(page, "");
await context.close();

// The page was left open for longer than the sign-in lasts.
for (const javaScriptEnabled of [false, true]) {
  const context = await browser.newContext({ javaScriptEnabled });
  const page = await tab(context);
  await page.goto(url + "locks");
  await signIn(page, "locks");
  page.removeAllListeners("console"); // its script is refused from here on
  const filter = page.getByLabel("Filter");
  await filter.fill("report");
  if (javaScriptEnabled) await page.evaluate(() => sessionStorage.setItem("signin", Date.now())); // it is not to reload
  await context.clearCookies();
  await filter.press("Enter");
  await signIn(page, "locks?q=report&sort=wait&kind=");
  await context.close();
}
await browser.close();
process.exit(0);
