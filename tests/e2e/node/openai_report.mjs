// An answer of a zod object through OpenAI's SDK; prints it by way of asking. Arguments: base URL, key, model, question.
import OpenAI from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const [baseURL, apiKey, model, input] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey });
const Report = z.object({ city: z.enum(["Paris", "Rome"]), sunny: z.boolean() });
const request = { model, input, temperature: 0, text: { format: zodTextFormat(Report, "report") } };

const parse = await client.responses.parse(request);
const stream = await client.responses.stream(request).finalResponse();
console.log(JSON.stringify({ parse: parse.output_parsed, stream: stream.output_parsed }));
