// One non-streamed and one streamed answer through OpenAI's SDK; prints what it saw as JSON.
// Arguments: base URL, key, model, input.
import OpenAI from "openai";

const [baseURL, apiKey, model, input] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey });

const whole = await client.responses.create({ model, input, max_output_tokens: 20, temperature: 0 });

const raw = { types: [], text: "" };
for await (const event of await client.responses.create({
  model,
  input,
  max_output_tokens: 20,
  temperature: 0,
  stream: true,
})) {
  raw.types.push(event.type);
  if (event.type === "response.output_text.delta") raw.text += event.delta;
}

const helper = client.responses.stream({ model, input, max_output_tokens: 20, temperature: 0 });
const final = await helper.finalResponse();

let failure = null;
try {
  await client.responses.create({ model: "no-such-model", input });
} catch (error) {
  failure = { name: error.constructor.name, status: error.status, code: error.code, param: error.param };
}

console.log(
  JSON.stringify({
    whole: { text: whole.output_text, usage: whole.usage, status: whole.status },
    raw,
    final: { text: final.output_text, usage: final.usage, status: final.status },
    failure,
  }),
);
