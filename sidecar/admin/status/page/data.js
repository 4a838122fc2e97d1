// Asks the admin interface. The key lives in this module for as long as the page is open, and nowhere else.

let key = "";

export const hasKey = () => key !== "";
export const useKey = (text) => { key = text; };

/** Headers that show the key, where there is one. */
export const credentials = () => (key ? { authorization: `Bearer ${key}` } : {});

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The JSON at `path`; throws `Refused` with what was answered instead. */
export async function read(path) {
  const options = { headers: credentials(), cache: "no-store", signal: AbortSignal.timeout(15000) };
  const answer = await fetch(path, options);
  const body = await answer.json();
  if (!answer.ok) throw new Refused(answer.status, body.error.message);
  return body;
}
