// node overview.mjs URL KEY: what the page shows of a node, and of organizations to who has a key; on every kind of screen.

import { openPage, withBrowser } from "./browser.mjs";

const [url, key] = process.argv.slice(2);

const rows = (page, id) => page.locator(`#${id} tbody tr`).allInnerTexts();
const wider = () => document.documentElement.scrollWidth - document.documentElement.clientWidth;
const ground = () => getComputedStyle(document.body).backgroundColor;

async function tabbed(page, times) {
  const found = [];
  for (let time = 0; time < times; time += 1) {
    await page.keyboard.press("Tab");
    found.push(await page.evaluate(() => document.activeElement.id || document.activeElement.textContent.trim()));
  }
  return found;
}

await withBrowser(async (browser) => {
  const page = await openPage(browser, url);
  const before = await page.locator("#organizations").innerText();
  const tabs = await tabbed(page, 9);
  const plot = page.locator(".plot svg").first();
  await plot.focus();
  await page.keyboard.press("End");
  const read = await page.locator(".plot .legend").first().innerText();
  await page.locator("#key").fill(`${key.slice(0, -1)}!`);
  await page.locator("#key").press("Enter");
  const refused = await page.locator("#organizations .alert").innerText();
  await page.locator("#key").fill(key);
  await page.locator("#key").press("Enter");
  await page.locator(".organization").first().waitFor();
  const row = await page.locator("#models tbody tr").first().elementHandle();
  await page.waitForResponse(/data\/node/);
  // The one before has been shown by now.
  await page.waitForResponse(/data\/node/);
  const stays = await row.evaluate((element) => element.isConnected);
  const kept = await page.evaluate(() => [location.href, document.cookie, { ...localStorage }, { ...sessionStorage }]);
  const seen = {
    title: await page.title(),
    summary: await page.locator("#summary").innerText(),
    plots: await page.locator(".plot h3").allInnerTexts(),
    drawn: await page.locator(".plot path.line").count(),
    models: await rows(page, "models"),
    failures: await rows(page, "failures"),
    before,
    refused,
    organizations: await page.locator(".organization").allInnerTexts(),
    tabs,
    read,
    kept,
    stays,
    faults: page.faults,
    light: { wider: await page.evaluate(wider), ground: await page.evaluate(ground) },
  };
  const phone = await openPage(browser, url, { viewport: { width: 360, height: 740 }, colorScheme: "dark" });
  seen.phone = { wider: await phone.evaluate(wider), ground: await phone.evaluate(ground) };
  return seen;
});
