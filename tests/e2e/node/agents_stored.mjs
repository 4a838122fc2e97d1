// Turns through OpenAI's Agents SDK, each of which continues the response before; prints them by way of running.
// Arguments: base URL, key, model, what the tool get_weather says, the questions.
import { Agent, OpenAIResponsesModel, run, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";

const [baseURL, apiKey, name, weather, ...questions] = process.argv.slice(2);
// Traces would go to OpenAI.
setTracingDisabled(true);
const model = new OpenAIResponsesModel(new OpenAI({ baseURL, apiKey }), name);
const parameters = z.object({ city: z.string() });
const tools = [tool({ name: "get_weather", description: "The weather of a city.", parameters, execute: () => weather })];
const agent = new Agent({ name: "Asker", model, tools, modelSettings: { store: true } });

const ways = {
  run: (question, previousResponseId) => run(agent, question, { previousResponseId }),
  run_streamed: async (question, previousResponseId) => {
    const result = await run(agent, question, { previousResponseId, stream: true });
    await result.completed;
    return result;
  },
};

const conversations = {};
for (const [way, ask] of Object.entries(ways)) {
  const answers = [];
  let last;
  for (const question of questions) {
    const result = await ask(question, last);
    last = result.lastResponseId;
    answers.push(result.finalOutput);
  }
  conversations[way] = { answers, last };
}
console.log(JSON.stringify(conversations));
