// node screenshots.mjs URL KEY DIRECTORY: the pictures of docs/status.md, of the page at URL. See ../screenshots.py.

import { openPage, withBrowser } from "./browser.mjs";

const [url, key, directory] = process.argv.slice(2);
const PROMPT = 'script:["<think>The question is about the weather. ", "There is a function for that.</think>", '
  + '"Let me look.", "<tool_call>{\\"name\\": \\"get_weather\\", \\"arguments\\": {\\"city\\": \\"Paris\\"}}</tool_call>"]';

const shots = {
  "status.png": { viewport: { width: 1200, height: 900 } },
  "status-dark.png": { viewport: { width: 1000, height: 840 }, colorScheme: "dark" },
  "status-narrow.png": { viewport: { width: 390, height: 840 } },
};

await withBrowser(async (browser) => {
  for (const [name, settings] of Object.entries(shots)) {
    const page = await openPage(browser, url, settings);
    await page.locator("#key").fill(key);
    await page.locator("#key-form button").click();
    await page.locator(".organization").first().waitFor();
    await page.locator("#model").selectOption("scripted-thinking");
    await page.locator("#client-key").fill(key);
    await page.locator("#prompt").fill(PROMPT);
    await page.locator("#further-box summary").click();
    await page.locator("#example").click();
    await page.locator("#send").click();
    await page.locator("#outcome .pill.good").waitFor();
    await page.locator("#events").evaluate((list) => list.scrollTo(0, 0));
    await page.evaluate(() => document.activeElement.blur());
    // The dark one is of the playground, where the page has just been.
    if (name !== "status-dark.png") await page.evaluate(() => scrollTo(0, 0));
    await page.screenshot({ path: `${directory}/${name}`, fullPage: name === "status.png" });
  }
  return Object.keys(shots);
});
