// Two turns through OpenAI's SDK, the second with the first one's output; prints the answers of both by way of asking.
// Arguments: base URL, key, model, the two questions.
import OpenAI from "openai";

const [baseURL, apiKey, model, first, second] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey });

const ways = {
  create: (input) => client.responses.create({ model, input }),
  stream: (input) => client.responses.stream({ model, input }).finalResponse(),
  parse: (input) => client.responses.parse({ model, input }),
};

const answers = {};
for (const [way, ask] of Object.entries(ways)) {
  const question = [{ role: "user", content: first }];
  const answer = await ask(question);
  const next = await ask([...question, ...answer.output, { role: "user", content: second }]);
  answers[way] = [answer.output_text, next.output_text];
}
console.log(JSON.stringify(answers));
