// Server-sent events out of the bytes of an answer, in any split: https://html.spec.whatwg.org/multipage/server-sent-events.html

/** The events in `stream` as they are complete: `{type, data, raw}`; of a comment `type` is empty. */
export async function* events(stream) {
  let rest = "";
  for await (const text of stream.pipeThrough(new TextDecoderStream())) {
    const blocks = (rest + text).replaceAll("\r\n", "\n").split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) yield parsed(block);
  }
  if (rest.trim() !== "") yield parsed(rest);
}

function parsed(raw) {
  let type = "";
  const data = [];
  for (const line of raw.split("\n")) {
    const [, field, value] = /^([^:]*):? ?(.*)$/.exec(line);
    if (field === "event") type = value;
    if (field === "data") data.push(value);
  }
  return { type: type || (data.length > 0 ? "message" : ""), data: data.join("\n"), raw };
}
