// node stop.mjs URL KEY PROMPT: shows that an answer that goes on is shown as it comes, then stops it.

import { openPage, withBrowser } from "./browser.mjs";

const [url, key, prompt] = process.argv.slice(2);

await withBrowser(async (browser) => {
  const page = await openPage(browser, url);
  await page.locator("#client-key").fill(key);
  await page.locator("#model").selectOption("scripted");
  await page.locator("#prompt").fill(prompt);
  await page.locator("#prompt").press("Control+Enter");
  await page.locator("#text", { hasText: "some words" }).waitFor();
  const during = await page.locator("#outcome .pill").innerText();
  const request = await page.locator("#outcome .id").innerText();
  // The page asks again every few seconds; of the four large numbers the first is that of streams.
  await page.locator(".plot .value").first().filter({ hasText: /^[1-9]\d*now/ }).waitFor();
  await page.locator("#stop").click();
  await page.locator("#send:enabled").waitFor();
  return { during, request, after: await page.locator("#outcome .pill").innerText() };
});
