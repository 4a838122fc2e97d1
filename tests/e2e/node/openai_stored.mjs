// What OpenAI's SDK does with stored responses; prints what it saw as JSON.
// Arguments: base URL, key, model, the two questions.
import OpenAI from "openai";

const [baseURL, apiKey, model, first, second] = process.argv.slice(2);
const { responses } = new OpenAI({ baseURL, apiKey });

const failureOf = async (attempt) => {
  try {
    await attempt;
  } catch ({ constructor, status, code, param }) {
    return { name: constructor.name, status, code, param };
  }
};

const made = await responses.create({ model, input: first, store: true });
const kept = await responses.retrieve(made.id);
const streamed = await responses.stream({ model, input: second, previous_response_id: made.id }).finalResponse();
const last = await responses.create({ model, input: second, previous_response_id: streamed.id });

const pages = [];
for await (const page of (await responses.inputItems.list(last.id, { limit: 2, order: "asc" })).iterPages()) {
  pages.push(page.data.map(({ content: [{ text }] }) => text));
}

await responses.delete(streamed.id);
const failures = [
  await failureOf(responses.retrieve(streamed.id)),
  await failureOf(responses.inputItems.list(streamed.id)),
  await failureOf(responses.delete(streamed.id)),
  await failureOf(responses.create({ model, input: second, previous_response_id: last.id })),
];

console.log(
  JSON.stringify({
    made,
    kept,
    answers: [made, streamed, last].map(({ output_text }) => output_text),
    previous: last.previous_response_id === streamed.id && streamed.previous_response_id === made.id,
    pages,
    failures,
  }),
);
