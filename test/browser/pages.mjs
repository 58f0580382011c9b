// Looks at pages in Chromium.
//
//   node pages.mjs MODULES PICTURES URL...
//
// It prints what is wrong, a line each. PICTURES is a folder, or empty.
import { argv } from "node:process";
import { basename } from "node:path";
import { each, launch, tab } from "./look.mjs";

const [modules, pictures, ...urls] = argv.slice(2);

const browser = await launch(modules);
const page = await tab(await browser.newContext({ viewport: { width: 1280, height: 860 } }));
for (const url of urls) await each(page, basename(url), url, pictures);
await browser.close();
