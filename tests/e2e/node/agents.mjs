// An agent of OpenAI's Agents SDK with two tools hands over to one that reports; prints each run by way of running.
// Arguments: base URL, key, model, the question, what the tools get_weather and get_time say.
import { Agent, OpenAIResponsesModel, run, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";

const [baseURL, apiKey, name, question, weather, time] = process.argv.slice(2);
// Traces would go to OpenAI.
setTracingDisabled(true);
const model = new OpenAIResponsesModel(new OpenAI({ baseURL, apiKey }), name);

const parameters = z.object({ city: z.string() });
const tools = [
  tool({ name: "get_weather", description: "The weather of a city.", parameters, execute: () => weather }),
  tool({ name: "get_time", description: "The time in a city.", parameters, execute: () => time }),
];
const Report = z.object({ city: z.string(), sky: z.string(), hour: z.int() });
const reporter = new Agent({ name: "Reporter", instructions: "Report what is known.", model, outputType: Report });
const asker = Agent.create({ name: "Asker", instructions: "Ask the tools.", model, tools, handoffs: [reporter] });

const ways = {
  run: () => run(asker, question),
  run_streamed: async () => {
    const result = await run(asker, question, { stream: true });
    await result.completed;
    return result;
  },
};

const runs = {};
for (const [way, start] of Object.entries(ways)) {
  const result = await start();
  runs[way] = {
    calls_by_answer: result.rawResponses.map(({ output }) =>
      output.filter(({ type }) => type === "function_call").map(({ name }) => name),
    ),
    last_agent: result.lastAgent.name,
    report: Report.parse(result.finalOutput),
  };
}
console.log(JSON.stringify(runs));
