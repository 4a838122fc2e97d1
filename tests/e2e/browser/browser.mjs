// The headless Chromium that unpack.mjs has unpacked, with the fonts and libraries beside it.

import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const unpacked = fileURLToPath(new URL("../../../.local/browser/", import.meta.url));

/** A browser, with further `options`, that `use` has until it returns; what it returns is printed as JSON. */
export async function withBrowser(use, options = []) {
  const browser = await chromium.launch({
    executablePath: `${unpacked}chromium`,
    // It has no sandbox of its own for root, and sees nothing but pages of ours.
    args: ["--no-sandbox", ...options],
    env: { ...process.env, LD_LIBRARY_PATH: `${unpacked}al2023/lib`, FONTCONFIG_FILE: `${unpacked}fonts.conf` },
  });
  try {
    console.log(JSON.stringify(await use(browser)));
  } finally {
    await browser.close();
  }
}

/** The status page at `url`, once it shows the node; `settings` are those of a browser's context. */
export async function openPage(browser, url, settings = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...settings });
  const page = await context.newPage();
  page.faults = [];
  page.on("console", (message) => message.type() === "error" && page.faults.push(message.text()));
  page.on("pageerror", (error) => page.faults.push(error.message));
  await page.goto(url);
  await page.locator("#models tbody tr").first().waitFor();
  return page;
}

/** Send what is in the playground's form, which `values` have been put into, and wait until the answer has ended. */
export async function send(page, values) {
  await page.locator("#further-box").evaluate((box) => { box.open = true; });
  for (const [name, value] of Object.entries(values)) {
    const field = page.locator(`#${name}`);
    if (name === "model" || name === "surface") await field.selectOption(value);
    else await field.fill(value);
  }
  await page.locator("#send").click();
  await page.locator("#send:enabled").waitFor();
}
