/* The bench's load driver, compiled: what its arguments mean is told in bench/driver.py.
 *
 *   load SCRIPT PORT STREAMS RAMP REPEAT LIMIT START < REQUEST
 *
 * Prints one JSON object per request, with the moments at which its tokens arrived and the ticks that they tell.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { TICKS = 20000, SLOTS = 1 << 16, READ_SIZE = 1 << 16 };
enum { HEAD, SIZE, CONTENT, AFTER, END }; /* what the next byte of an answer belongs to */
enum { OTHER, DELTA, TERMINAL, ERROR };   /* the event whose data comes next */

typedef struct Answer {
    struct Answer *next;
    double started, *arrivals;
    int *ticks, tokens, room, terminal;
    char failure[64];
} Answer;
typedef struct { char *text; size_t size, room; } Line;
typedef struct {
    int fd, state, event;
    double at;   /* when its next request is sent; 0 while one runs */
    size_t left; /* of the chunk */
    Line frame, line; /* of HTTP, and of the event stream in it */
    Answer *answer;
} Stream;

static struct { char *word; size_t size; int tick; } table[SLOTS];
static Answer *answers, **last_answer = &answers;
static char *request;
static size_t request_size;
static struct sockaddr_in server = {.sin_family = AF_INET};
static int poller;

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static void fail(const char *what) { perror(what); exit(1); }

/* The words. */

static uint32_t slot_of(const char *word, size_t size) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < size; i++) hash = (hash ^ (uint8_t)word[i]) * 16777619u;
    hash %= SLOTS;
    while (table[hash].word && (table[hash].size != size || memcmp(table[hash].word, word, size))) hash = (hash + 1) % SLOTS;
    return hash;
}

static void read_words(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) fail(path);
    for (int tick = 0; tick < TICKS; tick++) {
        uint32_t size;
        if (fread(&size, 4, 1, file) != 1) fail("script");
        char *word = malloc(size);
        if (fread(word, 1, size, file) != size) fail("script");
        uint32_t slot = slot_of(word + 1, size - 1); /* without its blank */
        table[slot].word = word + 1, table[slot].size = size - 1, table[slot].tick = tick;
    }
    fclose(file);
}

/* Answers. */

static void begin(Stream *stream) {
    Answer *answer = calloc(1, sizeof *answer);
    *last_answer = answer, last_answer = &answer->next;
    strcpy(answer->failure, "unfinished");
    stream->answer = answer, stream->state = HEAD, stream->event = OTHER, stream->at = 0;
    stream->frame.size = stream->line.size = 0;
    answer->started = now_s();
    if (write(stream->fd, request, request_size) != (ssize_t)request_size) strcpy(answer->failure, "request not sent");
}

static void token(Answer *answer, const char *word, size_t size, double now) {
    uint32_t slot = slot_of(word, size);
    if (!table[slot].word) { strcpy(answer->failure, "unknown word"); return; }
    if (answer->tokens == answer->room) {
        answer->room = answer->room ? 2 * answer->room : 128;
        answer->arrivals = realloc(answer->arrivals, answer->room * sizeof *answer->arrivals);
        answer->ticks = realloc(answer->ticks, answer->room * sizeof *answer->ticks);
    }
    answer->arrivals[answer->tokens] = now, answer->ticks[answer->tokens++] = table[slot].tick;
}

static void delta(Answer *answer, const char *data, double now) {
    const char *at = strstr(data, "\"delta\":\"");
    for (at = at ? at + 9 : ""; *at && *at != '"'; at += *at == ' ') {
        size_t size = strcspn(at, " \"");
        if (size) token(answer, at, size, now);
        at += size;
    }
}

static int starts(const Line *line, const char *with) { return !strncmp(line->text, with, strlen(with)); }

static void event_line(Stream *stream, double now) {
    const Line *line = &stream->line;
    Answer *answer = stream->answer;
    if (starts(line, "event: response.output_text.delta")) stream->event = DELTA;
    else if (starts(line, "event: response.completed") || starts(line, "event: response.incomplete")) stream->event = TERMINAL;
    else if (starts(line, "event: error")) stream->event = ERROR;
    else if (starts(line, "event: ")) stream->event = OTHER;
    else if (!starts(line, "data: ")) return;
    else if (stream->event == DELTA) delta(answer, line->text + 6, now);
    else if (stream->event == TERMINAL) answer->terminal = 1;
    else if (stream->event == ERROR) strcpy(answer->failure, "error event");
}

/* Moves bytes up to the end of a line into it: whether there it is. */
static int collect(Line *line, const char **data, size_t *size) {
    const char *newline = memchr(*data, '\n', *size);
    size_t used = newline ? (size_t)(newline - *data) + 1 : *size;
    if (line->size + used + 1 > line->room) {
        line->room = 2 * (line->size + used + 1);
        line->text = realloc(line->text, line->room);
    }
    memcpy(line->text + line->size, *data, used);
    line->size += used, *data += used, *size -= used;
    line->text[line->size] = 0;
    return newline != NULL;
}

static void content(Stream *stream, const char *data, size_t size, double now) {
    while (size && collect(&stream->line, &data, &size)) {
        event_line(stream, now);
        stream->line.size = 0;
    }
}

/* Takes bytes of an answer in the chunked coding: whether it is over. */
static int feed(Stream *stream, const char *data, size_t size, double now) {
    Line *line = &stream->frame;
    while (size) {
        if (stream->state == CONTENT) {
            size_t part = stream->left < size ? stream->left : size;
            content(stream, data, part, now);
            data += part, size -= part;
            if (!(stream->left -= part)) stream->state = AFTER;
            continue;
        }
        if (!collect(line, &data, &size)) return 0;
        int blank = line->size <= 2;
        line->size = 0;
        switch (stream->state) {
        case HEAD:
            if (starts(line, "HTTP/1.1 ") && !starts(line, "HTTP/1.1 200")) {
                snprintf(stream->answer->failure, sizeof stream->answer->failure, "HTTP %.3s", line->text + 9);
                return 1;
            }
            if (blank) stream->state = SIZE;
            break;
        case SIZE:
            stream->left = strtoul(line->text, NULL, 16);
            stream->state = stream->left ? CONTENT : END;
            break;
        case AFTER: stream->state = SIZE; break;
        case END:
            if (blank && !strcmp(stream->answer->failure, "unfinished"))
                strcpy(stream->answer->failure, stream->answer->terminal ? "" : "no terminal event");
            return blank;
        }
    }
    return 0;
}

/* Streams. */

static void open_connection(Stream *stream) {
    int yes = 1;
    stream->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(stream->fd, (struct sockaddr *)&server, sizeof server)) fail("connect");
    setsockopt(stream->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    struct epoll_event event = {EPOLLIN, {.ptr = stream}};
    epoll_ctl(poller, EPOLL_CTL_ADD, stream->fd, &event);
}

/* Whether the stream's answer is over, or its connection. */
static int receive(Stream *stream) {
    static char bytes[READ_SIZE];
    ssize_t size = recv(stream->fd, bytes, sizeof bytes, 0);
    int idle = stream->at || !stream->answer, over = size > 0 && !idle && feed(stream, bytes, size, now_s());
    if (size <= 0 || (over && stream->answer->failure[0])) {
        if (!idle && !over) strcpy(stream->answer->failure, "connection closed");
        close(stream->fd);
        open_connection(stream);
        return !idle;
    }
    return over;
}

static void print_answers(void) {
    for (Answer *answer = answers; answer; answer = answer->next) {
        printf("{\"started\":%.6f,\"failure\":", answer->started);
        printf(answer->failure[0] ? "\"%s\"" : "null", answer->failure);
        printf(",\"ticks\":[");
        for (int i = 0; i < answer->tokens; i++) printf(i ? ",%d" : "%d", answer->ticks[i]);
        printf("],\"arrivals\":[");
        for (int i = 0; i < answer->tokens; i++) printf(i ? ",%.6f" : "%.6f", answer->arrivals[i]);
        printf("]}\n");
    }
}

int main(int argc, char **argv) {
    static char whole[1 << 20];
    if (argc != 8) return fprintf(stderr, "usage: load SCRIPT PORT STREAMS RAMP REPEAT LIMIT START < REQUEST\n"), 2;
    read_words(argv[1]);
    request = whole, request_size = fread(whole, 1, sizeof whole, stdin);
    server.sin_port = htons(atoi(argv[2])), server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int count = atoi(argv[3]), running = count;
    double ramp = atof(argv[4]), repeat = atof(argv[5]), limit = atof(argv[6]), start = atof(argv[7]);
    poller = epoll_create1(0);
    Stream *streams = calloc(count, sizeof *streams);
    for (int i = 0; i < count; i++) open_connection(&streams[i]), streams[i].at = start + ramp * i / count;
    int waiting = 0; /* the first stream that has not begun; they begin in order */
    for (double now; running && (now = now_s()) < start + limit;) {
        for (; waiting < count && streams[waiting].at <= now; waiting++) begin(&streams[waiting]);
        double until = (waiting < count ? streams[waiting].at : start + limit) - now;
        struct epoll_event events[64];
        int ready = epoll_wait(poller, events, 64, until < 0.001 ? 1 : (int)(until * 1000));
        for (int i = 0; i < ready; i++) {
            Stream *stream = events[i].data.ptr;
            if (!receive(stream)) continue;
            if (now_s() < start + repeat) begin(stream);
            else stream->answer = NULL, running--;
        }
    }
    print_answers();
    return 0;
}
