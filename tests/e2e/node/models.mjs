// The models through OpenAI's SDK; prints what it saw as JSON. Arguments: base URL, key, a model's id.
import OpenAI from "openai";

const [baseURL, apiKey, id] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey });

const list = [];
for await (const model of client.models.list()) list.push(model);

const one = await client.models.retrieve(id);

let failure = null;
try {
  await client.models.retrieve("b3os/none");
} catch (error) {
  failure = { status: error.status, code: error.code, param: error.param };
}

console.log(JSON.stringify({ list, one, failure }));
