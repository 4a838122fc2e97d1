// node playground.mjs URL KEY REQUESTS: sends each of the requests (a JSON array of the form's values) by the playground.

import { openPage, send, withBrowser } from "./browser.mjs";

const [url, key, requests] = process.argv.slice(2);

async function shown(page) {
  const text = (id) => page.locator(`#${id}`).textContent();
  return {
    outcome: await page.locator("#outcome > *").allInnerTexts(),
    reasoning: await text("reasoning"),
    text: await text("text"),
    calls: await page.locator("#calls li").allTextContents(),
    types: await page.locator("#events .type").allTextContents(),
    data: await page.locator("#events pre").allTextContents(),
    elements: await page.locator(".answer :is(img, script, b i)").count(),
  };
}

await withBrowser(async (browser) => {
  const page = await openPage(browser, url);
  const answers = [];
  for (const values of JSON.parse(requests)) {
    await send(page, { "client-key": key, further: "", ...values });
    answers.push(await shown(page));
  }
  return { answers, faults: page.faults };
});
