/* HTTP/1.1: Chat Completions, Responses, the cadence, and the list of models for whatever else is asked. */
#define _GNU_SOURCE
#include "server.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void write_http1(Stream *stream, Blob before, Blob word, Blob after) {
    char size[16];
    Buffer *out = &stream->connection->out;
    append(out, size, sprintf(size, "%x\r\n", before.size + word.size + after.size));
    append_blob(out, before), append_blob(out, word), append_blob(out, after);
    append(out, "\r\n", 2);
}

size_t read_http1(Connection *connection) {
    Buffer *in = &connection->in, *out = &connection->out;
    append(in, "", 1), in->size--; /* so that it reads as a string */
    char *request = (char *)in->data, *end = memmem(request, in->size, "\r\n\r\n", 4), head[256];
    if (!end) return 0;
    char *length = strcasestr(request, "\r\ncontent-length:");
    size_t whole = end + 4 - request + (length && length < end ? strtoul(length + 17, NULL, 10) : 0);
    if (in->size < whole) return 0;
    long long interval, ttft;
    unsigned tokens;
    int in_step;
    if (sscanf(request, "POST /cadence/%lld/%lld/%u/%d", &interval, &ttft, &tokens, &in_step) == 4) {
        cadence.interval = interval, cadence.ttft = ttft, cadence.tokens = tokens, cadence.in_step = in_step;
        append(out, head, sprintf(head, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
    } else if (!strncmp(request, "POST /v1/chat/completions", 25)) begin(open_stream(connection, &faces[CHAT], 1));
    else if (!strncmp(request, "POST /v1/responses", 18)) begin(open_stream(connection, &faces[RESPONSES], 1));
    else {
        append(out, head, sprintf(head, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %u\r\n\r\n",
                                  models.size));
        append_blob(out, models);
    }
    return whole;
}
