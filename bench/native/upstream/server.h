/* What the parts of the fake model server share. */
#ifndef SERVER_H
#define SERVER_H
#include <stddef.h>
#include <stdint.h>

enum { TICKS = 20000, FACES = 3, MAX_UNARY = 8, READ_SIZE = 1 << 16 };
enum { GRPC, CHAT, RESPONSES };

typedef struct { const uint8_t *data; uint32_t size; } Blob;
typedef struct { Blob head, first, prefix, suffix, last, end; } Face;
typedef struct { Blob plain, huffman, answer; } Unary;
typedef struct { uint8_t *data; size_t size, room; } Buffer;
typedef struct Connection Connection;
typedef struct Stream {
    Connection *connection; /* NULL once the client has gone */
    struct Stream *next;
    const Face *face;
    uint32_t id;
    uint32_t left;
    size_t missing; /* bytes of the request that are still to come */
    int64_t due, window;
    int begun, called;
} Stream;
struct Connection {
    int fd, http1, dirty, waits;
    Buffer in, out;
    int64_t window, initial_window;
    Stream *streams;
};

/* script.c */
extern Face faces[FACES];
extern Blob words[TICKS], ids, models;
extern Unary unary[MAX_UNARY];
extern uint32_t unaries;
void read_script(const char *path);

/* cadence.c */
typedef struct { int64_t interval, ttft; uint32_t tokens; int in_step; } Cadence; /* times in ns */
extern Cadence cadence;
extern int timer;
int64_t now_ns(void);
Stream *open_stream(Connection *connection, const Face *face, uint32_t id);
void begin(Stream *stream);
void forget(Stream *stream);
void tick(void);
void set_timer(void);

/* http1.c and http2.c: the reading ones return how many bytes they have used, the writing ones go on to the buffer */
size_t read_http1(Connection *connection);
size_t read_http2(Connection *connection);
void greet_http2(Connection *connection);
void write_http1(Stream *stream, Blob before, Blob word, Blob after);
int write_http2(Stream *stream, Blob before, Blob id, Blob after); /* whether the windows allow it */
void head_http2(Stream *stream);
void end_http2(Stream *stream);

/* main.c */
void fail(const char *what);
void append(Buffer *buffer, const void *data, size_t size);
void append_blob(Buffer *buffer, Blob blob);
int flush(Connection *connection); /* whether the connection still lives */
#endif
