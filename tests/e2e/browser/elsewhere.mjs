// node elsewhere.mjs URL KEY PROMPT: the page by a name that is not this machine's, as from another one: first without a key.

import { send, withBrowser } from "./browser.mjs";

const [url, key, prompt] = process.argv.slice(2);

await withBrowser(async (browser) => {
  const page = await browser.newPage();
  await page.goto(url.replace("127.0.0.1", "node.example"));
  const refused = await page.locator("#alert:visible").innerText();
  const before = await page.locator("#models tbody tr").count();
  await page.locator("#key").fill(key);
  await page.locator("#key").press("Enter");
  await page.locator("#models tbody tr").first().waitFor();
  await page.locator(".organization").first().waitFor();
  await send(page, { "client-key": key, model: "scripted", prompt });
  return {
    refused,
    before,
    alert: await page.locator("#alert").isVisible(),
    text: await page.locator("#text").textContent(),
  };
}, ["--host-resolver-rules=MAP node.example 127.0.0.1"]);
