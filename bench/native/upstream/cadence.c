/* When tokens are written: one timer for all streams, one write per connection and wake-up. */
#include "server.h"
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>

enum { AGAIN = 1000000 }; /* ns after which a stream is looked at again whose client has closed its window */

Cadence cadence = {0, 0, 1, 0};
int timer;

int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Streams by the moment at which they are due, in a heap. */

static Stream **heap;
static size_t heap_size, heap_room;

static void push(Stream *stream) {
    if (heap_size == heap_room) {
        heap_room = heap_room ? 2 * heap_room : 1024;
        heap = realloc(heap, heap_room * sizeof *heap);
        if (!heap) fail("realloc");
    }
    size_t at = heap_size++;
    for (; at && heap[(at - 1) / 2]->due > stream->due; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = stream;
}

static Stream *pop(void) {
    Stream *first = heap[0], *last = heap[--heap_size];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < heap_size) {
        if (child + 1 < heap_size && heap[child + 1]->due < heap[child]->due) child++;
        if (heap[child]->due >= last->due) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return first;
}

void set_timer(void) {
    if (!heap_size) return;
    int64_t due = heap[0]->due;
    struct itimerspec when = {.it_value = {due / 1000000000, due % 1000000000 + 1}};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* Streams. */

void begin(Stream *stream) {
    int64_t first = now_ns() + cadence.ttft;
    if (cadence.in_step && cadence.interval) first += cadence.interval - first % cadence.interval;
    stream->due = first;
    stream->left = cadence.tokens;
    stream->called = 1;
    push(stream);
}

Stream *open_stream(Connection *connection, const Face *face, uint32_t id) {
    Stream *stream = calloc(1, sizeof *stream);
    *stream = (Stream){.connection = connection, .next = connection->streams, .face = face, .id = id,
                       .window = connection->initial_window};
    return connection->streams = stream;
}

void forget(Stream *stream) {
    Stream **link = &stream->connection->streams;
    while (*link != stream) link = &(*link)->next;
    *link = stream->next;
    stream->connection = NULL;
}

/* Writes the next message of a stream that is due, or its end: whether it goes on. */
static int write_next(Stream *stream) {
    const Face *face = stream->face;
    Buffer *out = &stream->connection->out;
    int grpc = face == &faces[GRPC];
    Blob none = {NULL, 0};
    if (!stream->begun) { /* as with real servers, the head leaves with the first token */
        if (grpc) head_http2(stream);
        else append_blob(out, face->head);
        if (face->first.size) write_http1(stream, face->first, none, none);
        stream->begun = 1;
    }
    int64_t now = now_ns();
    if (stream->left) {
        uint32_t tick = (uint64_t)now * TICKS / 1000000000 % TICKS;
        if (!grpc) write_http1(stream, face->prefix, words[tick], face->suffix);
        else if (!write_http2(stream, face->prefix, (Blob){ids.data + 4 * tick, 4}, face->suffix))
            return stream->due = now + AGAIN, 1;
        if (--stream->left) stream->due += cadence.interval;
        return 1;
    }
    if (!grpc) {
        write_http1(stream, face->last, none, none);
        append_blob(out, face->end);
        return 0;
    }
    if (!write_http2(stream, face->last, none, none)) return stream->due = now + AGAIN, 1;
    end_http2(stream);
    return 0;
}

void tick(void) {
    static Connection *dirty[4096];
    size_t count = 0;
    int64_t now = now_ns();
    while (heap_size && heap[0]->due <= now) {
        Stream *stream = pop();
        Connection *connection = stream->connection;
        if (connection && !connection->dirty && count < 4096) dirty[count++] = connection, connection->dirty = 1;
        if (connection && write_next(stream)) push(stream);
        else {
            if (connection) forget(stream);
            free(stream);
        }
    }
    while (count) dirty[--count]->dirty = 0, flush(dirty[count]);
    set_timer();
}
