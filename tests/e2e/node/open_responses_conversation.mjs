// Two turns through the AI SDK's Open Responses provider, the second with the first one's output; prints the answers of
// both by way of asking. Arguments: base URL, key, model, the two questions.
import { createOpenResponses } from "@ai-sdk/open-responses";
import { generateText, streamText } from "ai";

const [baseURL, apiKey, name, first, second] = process.argv.slice(2);
const model = createOpenResponses({ name: "node", url: `${baseURL}/responses`, apiKey })(name);

const ways = {
  generateText: async (messages) => {
    const answer = await generateText({ model, messages, maxRetries: 0 });
    return { text: answer.text, messages: answer.response.messages };
  },
  streamText: async (messages) => {
    const answer = streamText({ model, messages, maxRetries: 0 });
    let text = "";
    for await (const delta of answer.textStream) text += delta;
    return { text, messages: (await answer.response).messages };
  },
};

const answers = {};
for (const [way, ask] of Object.entries(ways)) {
  const question = [{ role: "user", content: first }];
  const answer = await ask(question);
  const next = await ask([...question, ...answer.messages, { role: "user", content: second }]);
  answers[way] = [answer.text, next.text];
}
console.log(JSON.stringify(answers));
